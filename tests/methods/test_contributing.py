"""The sixth invariance that CONTRIBUTING shows works as it stands there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
import torch
from torch import nn

from farshore.methods import METHODS
from farshore.testing import toy_learned

TEXT = (Path(__file__).parents[2] / "CONTRIBUTING.md").read_text()


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
    assert "scale_gradient" in made.system.method.priors.by_domain["d0"]
