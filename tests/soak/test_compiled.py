"""The compiled way on a CPU, where there is a compiler: the same steps, resumed exactly, compiled once for all domains."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from same import differences

from holdfast import Learner
from holdfast.execution import cannot_compile
from holdfast.learner import load

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(bool(cannot_compile(torch.device("cpu"))), reason="there is no C++ compiler here"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of PyTorch's compiler to itself
]


def learner(method: str, execution: str, **settings: object) -> Learner:
    chosen = {"batch_size": 8, "execution": execution, **settings}
    return Learner("cnn", method, memory=20, settings=chosen, network_settings={"width": 8})


@pytest.mark.parametrize("method", ["cl-coral", "cl-andmask"])
def test_compiled_steps_agree_with_eager_ones(method: str, pictures) -> None:
    eager, compiled = learner(method, "eager", optimizer="sgd"), learner(method, "compiled", optimizer="sgd")
    for domain in range(3):
        for made in (eager, compiled):
            made.learn(*pictures(domain), domain=str(domain), steps=4)
    assert compiled.way.execution == "compiled"
    for one, other in zip(eager.method.network.parameters(), compiled.method.network.parameters(), strict=True):
        torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-6)


def test_a_resumed_compiled_run_is_the_same(pictures, tmp_path: Path) -> None:
    whole, parts = learner("cl-coral", "compiled"), learner("cl-coral", "compiled")
    for domain in range(3):
        whole.learn(*pictures(domain), domain=str(domain), steps=4)
        parts.learn(*pictures(domain), domain=str(domain), steps=4)
        parts.save(tmp_path)
        parts = load(tmp_path)
    assert differences(whole.state_dict(), parts.state_dict()) == []


def test_domains_and_batch_sizes_do_not_compile_again(pictures) -> None:
    from torch._dynamo.utils import counters

    made = learner("er", "compiled")
    for domain in range(3):
        made.learn(*pictures(domain), domain=str(domain), steps=2)
    before = counters["stats"]["unique_graphs"]
    for size in (9, 11):
        other = learner("er", "compiled", batch_size=size)
        for domain in range(3):
            other.learn(*pictures(domain), domain=str(domain), steps=2)
    # The compiler of CPUs may want one more form for large batches, and no more.
    assert counters["stats"]["unique_graphs"] <= max(2, before)
