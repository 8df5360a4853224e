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


def asks_for_the_task(tree):
    """The lines that branch on the task: isinstance of a kind, or a comparison with its name."""
    for node in ast.walk(tree):
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
    bad = "if task.name == 'regression': pass\nif isinstance(task, (int, tasks.Regression)): pass"
    assert list(asks_for_the_task(ast.parse(bad))) == [1, 2]


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
