"""The sixth invariance that CONTRIBUTING shows works as it stands there."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from bench.executed_files import SOURCE, Executed, executed, one_step
from farshore.methods import METHODS
from farshore.testing import check_method, toy_learned

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "CONTRIBUTING.md").read_text()


@pytest.fixture
def irm():
    code = re.search(r"```python\n(.*?)```", TEXT, flags=re.DOTALL).group(1)
    assert len(code.splitlines()) < 60
    names: dict = {"__name__": "cl_irm"}
    exec(compile(code, "CONTRIBUTING.md", "exec"), names)
    METHODS.add("cl-irm", names["CLIRM"])
    yield names
    METHODS.remove("cl-irm")


def test_its_statistic_is_the_derivative_in_a_scale(irm) -> None:
    logits = torch.randn(3, 5, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(0))
    labels = torch.randint(4, (3, 5), generator=torch.Generator().manual_seed(1))
    found = irm["ScaleGradient"]().statistic(logits, logits, labels)["scale_gradient"]
    for e in range(3):
        scale = torch.ones((), dtype=torch.float64, requires_grad=True)
        (gradient,) = torch.autograd.grad(
            nn.functional.cross_entropy(scale * logits[e], labels[e]), scale
        )
        assert float(found[e]) == pytest.approx(float(gradient))


def test_it_learns_as_a_method(irm, blobs) -> None:
    made = toy_learned("cl-irm", steps=20)
    x, y = blobs(2)
    assert float(torch.from_numpy(made.predict(x) == y.numpy()).double().mean()) > 0.8
    assert "scale_gradient" in made.system.method.priors.stacked()


def test_it_imports_public_names_only(irm) -> None:
    code = re.search(r"```python\n(.*?)```", TEXT, flags=re.DOTALL).group(1)
    imports = re.findall(r"^from (farshore[\w.]*) import (.*)$", code, flags=re.MULTILINE)
    assert len(imports) == 3
    for package, names in imports:
        public = getattr(importlib.import_module(package), "__all__", ["Power", "setting"])
        assert set(names.split(", ")) <= set(public), package


def test_it_passes_the_battery(irm) -> None:
    check_method("cl-irm")
    with pytest.raises(AssertionError, match="registered as 'cl-irm-2'"):
        check_renamed(irm["CLIRM"])


def check_renamed(kind: type) -> None:
    """The battery finds that a method is registered under another name than its own."""
    METHODS.add("cl-irm-2", kind)
    try:
        check_method("cl-irm-2")
    finally:
        METHODS.remove("cl-irm-2")


def test_follow_one_step_names_the_files_that_a_step_executes() -> None:
    section = TEXT.partition("## Follow one step")[2].partition("\n## ")[0]
    items = re.findall(r"^\d+\. `src/farshore/([\w/]+\.py)`: (.*(?:\n   .*)*)", section, flags=re.M)
    executed = one_step()
    assert [file for file, _ in items] == list(executed)
    for file, text in items:
        functions = re.findall(r"`([\w.]+)\(\)`", text)
        assert functions, file
        assert set(functions) <= set(executed[file]), file


def test_only_calls_count_as_executed_not_what_defines_a_module() -> None:
    found: Executed = {}
    text = "class A:\n    def call(self):\n        return 1\nA().call()"
    names: dict = {"__name__": "made"}
    with executed(found):
        exec(compile(text, f"{SOURCE}/made.py", "exec"), names)
    assert found == {}
    with executed(found):
        names["A"]().call()
    names["A"]().call()
    assert found == {"made.py": ["A.call"]}


@pytest.mark.soak  # each is measured in a process of its own
def test_a_run_and_its_report_execute_few_files() -> None:
    done = subprocess.run(
        [sys.executable, "bench/executed_files.py"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=300,
    )
    counts = {name: int(count) for name, count in re.findall(r"(\w+): (\d+) files", done.stdout)}
    assert counts.keys() == {"run", "report", "step"}
    assert 50 < counts["run"] <= 75
    assert 15 < counts["report"] <= 34
