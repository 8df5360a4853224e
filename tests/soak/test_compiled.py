"""Compiled execution on a CPU: the same steps, exact resumption, compiled once for all domains."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from farshore import Learner
from farshore.learner.loading import load
from farshore.methods.gradient import gradients_of
from farshore.testing import differences
from farshore.training.execution.execution import Way, cannot_compile
from farshore.training.execution.extractor import extraction

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(
        bool(cannot_compile(torch.device("cpu"))), reason="no C++ compiler is installed"
    ),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # from PyTorch's compiler itself
]


def learner(method: str, execution: str, **settings: object) -> Learner:
    all_settings = {"batch_size": 8, "execution": execution, **settings}
    return Learner("cnn", method, memory=20, settings=all_settings, network_settings={"width": 8})


@pytest.mark.parametrize("method", ["er", "cl-coral", "cl-fishr"])
def test_compiled_steps_agree_with_eager_ones(method: str, pictures) -> None:
    eager, compiled = (
        learner(method, "eager", optimizer="sgd"),
        learner(method, "compiled", optimizer="sgd"),
    )
    start = None
    for domain in range(3):
        for trained in (eager, compiled):
            trained.learn(*pictures(domain), domain=str(domain), steps=4)
            start = weights(trained) if start is None else start
    assert compiled.system.way.execution == "compiled"
    distance = float((weights(eager) - start).norm())
    assert distance > 0
    assert float((weights(compiled) - weights(eager)).norm()) < 1e-4 * distance


def test_gradients_of_single_domains_agree(pictures) -> None:
    """Compare the gradients that CL-ANDMask votes on.

    It votes by their signs, so an entry that is 0 up to rounding may vote differently.
    """
    trained = learner("cl-andmask", "eager")
    trained.learn(*pictures(0), domain="a", steps=4)
    network, (inputs, labels) = trained.system.method.network.train(), pictures(1)
    gradients = []
    for way in ("eager", "compiled"):
        with extraction(network, Way(way), torch.device("cpu"), pytest.fail):
            parts = zip(inputs.split(8)[:2], labels.split(8)[:2], strict=True)
            losses = [torch.nn.functional.cross_entropy(network(x), y) for x, y in parts]
            gradients.append(
                [
                    torch.cat([g.flatten() for g in gradients_of(loss, list(network.parameters()))])
                    for loss in losses
                ]
            )
    for plain, compiled in zip(*gradients, strict=True):
        assert float((compiled - plain).norm()) < 1e-4 * float(plain.norm())


def weights(trained: Learner) -> torch.Tensor:
    return torch.cat(
        [parameter.detach().flatten() for parameter in trained.system.method.network.parameters()]
    )


def test_a_resumed_compiled_run_is_the_same(pictures, tmp_path: Path) -> None:
    straight, resumed = learner("cl-coral", "compiled"), learner("cl-coral", "compiled")
    for domain in range(3):
        straight.learn(*pictures(domain), domain=str(domain), steps=4)
        resumed.learn(*pictures(domain), domain=str(domain), steps=4)
        resumed.save(tmp_path)
        resumed = load(tmp_path)
    assert differences(straight.state_dict(), resumed.state_dict()) == []


def test_new_domains_and_batch_sizes_do_not_recompile(pictures) -> None:
    from torch._dynamo.utils import counters

    first = learner("er", "compiled")
    for domain in range(3):
        first.learn(*pictures(domain), domain=str(domain), steps=2)
    before = counters["stats"]["unique_graphs"]
    for size in (9, 11):
        other = learner("er", "compiled", batch_size=size)
        for domain in range(3):
            other.learn(*pictures(domain), domain=str(domain), steps=2)
    # The CPU compiler may create one more graph for large batches, but not more.
    assert counters["stats"]["unique_graphs"] <= max(2, before)
