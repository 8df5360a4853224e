"""What a label is: one shape, and nobody outside it asks which one."""

import ast
from pathlib import Path

import pytest
import torch

import farshore
from farshore.tasks.classification import Classification, empirical_risk
from farshore.tasks.task import Task

SRC = Path(farshore.__file__).parent
KINDS = {"Classification", "Regression"}


# What one kind of task has alone: whether it is there tells the task.
OF_ONE_KIND = {"classes", "labels", "confusion"}


def conditions(node):
    """What decides a branch in this node: tests, and both sides of `and` and `or`."""
    if isinstance(node, ast.If | ast.IfExp | ast.While | ast.Assert):
        yield node.test
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        yield node.operand
    for each in getattr(node, "generators", ()):
        yield from each.ifs


def is_either(node):
    return isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "either"


def asks_for_the_task(tree):
    """The lines that branch on the task.

    isinstance of a kind; a comparison with its name; whether something is there that one kind has
    alone; and `either` of True and False, or in a condition, which is the same in other words.
    """
    for node in ast.walk(tree):
        for test in conditions(node):
            parts = test.values if isinstance(test, ast.BoolOp) else [test]
            there = any(getattr(each, "attr", "") in OF_ONE_KIND for each in parts)
            if there or any(is_either(each) for each in ast.walk(test)):
                yield test.lineno
        if is_either(node) and {getattr(each, "value", each) for each in node.args} == {
            True,
            False,
        }:
            yield node.lineno
        if isinstance(node, ast.Call) and getattr(node.func, "id", "") in {"isinstance", "type"}:
            named = {getattr(each, "id", getattr(each, "attr", "")) for each in ast.walk(node)}
            if named & KINDS:
                yield node.lineno
        if isinstance(node, ast.Compare):
            names = {getattr(each, "value", None) for each in ast.walk(node)}
            if names & {"classification", "regression"}:
                yield node.lineno


def test_no_branch_on_the_task_outside_of_its_folder():
    found = [
        f"{path.relative_to(SRC)}:{line}"
        for path in SRC.rglob("*.py")
        if path.parent.name != "tasks"
        for line in asks_for_the_task(ast.parse(path.read_text(encoding="utf-8")))
    ]
    assert found == []
    bad = [
        "if task.name == 'regression': pass",
        "if isinstance(task, (int, tasks.Regression)): pass",
        "if not learner.classes: pass",
        "x = 1 if findings.classes else 2",
        "y = [1 for _ in rows if task.classes and rows]",
        "z = task.either(False, True)",
        "if task.either(a, b)(): pass",
    ]
    assert set(asks_for_the_task(ast.parse("\n".join(bad)))) == set(range(1, len(bad) + 1))
    good = "f = task.either(one, other)(x)\nif len(rows) and given.labels is None: pass"
    assert list(asks_for_the_task(ast.parse(good))) == []


@pytest.fixture
def rows():
    torch.manual_seed(0)
    return torch.randn(7, 3, dtype=torch.float64, requires_grad=True), torch.arange(7) % 3


def test_a_classification_is_the_cross_entropy(rows):
    outputs, labels = rows
    task: Task = Classification(("a", "b", "c"))
    by_hand = -outputs.log_softmax(dim=1)[torch.arange(7), labels]
    torch.testing.assert_close(task.losses(outputs, labels), by_hand)
    assert torch.equal(task.risk(outputs, labels), empirical_risk(outputs, labels))
    (slopes,) = torch.autograd.grad(by_hand.sum(), outputs)
    torch.testing.assert_close(task.slopes(outputs, labels), slopes)
    ((value, weight),) = task.fisher_parts(outputs, labels, weighted=True)
    torch.testing.assert_close(value, -by_hand)
    torch.testing.assert_close(weight, (-by_hand).exp().detach())
    assert task.predictions(outputs[:2]).tolist() == [
        "abc"[number] for number in outputs[:2].argmax(dim=1).tolist()
    ]
    task.label_form(7).check(labels, "labels")
    assert task.blank(2, 3).shape == (2, 3)
    assert sum(map(sum, task.confusion(outputs, labels))) == 7
    outputs = outputs.detach()
    assert task.scores(outputs, labels)["accuracy"] == task.score("accuracy", outputs, labels)


def test_a_classification_needs_two_classes():
    with pytest.raises(farshore.FarshoreError, match="has one class only"):
        Classification(("a",)).check_outputs("the first domain")
