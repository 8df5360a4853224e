"""The compiled way on a CPU, where there is a compiler: the same steps, resumed exactly,
compiled once for all domains.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from farshore import Learner
from farshore.execution import Way, cannot_compile, extraction
from farshore.learner import load
from farshore.methods.gradient import gradients_of
from farshore.testing import differences

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(
        bool(cannot_compile(torch.device("cpu"))), reason="there is no C++ compiler here"
    ),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),  # of PyTorch's compiler to itself
]


def learner(method: str, execution: str, **settings: object) -> Learner:
    chosen = {"batch_size": 8, "execution": execution, **settings}
    return Learner("cnn", method, memory=20, settings=chosen, network_settings={"width": 8})


@pytest.mark.parametrize("method", ["er", "cl-coral", "cl-fishr"])
def test_compiled_steps_agree_with_eager_ones(method: str, pictures) -> None:
    eager, compiled = (
        learner(method, "eager", optimizer="sgd"),
        learner(method, "compiled", optimizer="sgd"),
    )
    start = None
    for domain in range(3):
        for made in (eager, compiled):
            made.learn(*pictures(domain), domain=str(domain), steps=4)
            start = weights(made) if start is None else start
    assert compiled.way.execution == "compiled"
    moved = float((weights(eager) - start).norm())
    assert moved > 0
    assert float((weights(compiled) - weights(eager)).norm()) < 1e-4 * moved


def test_gradients_of_single_domains_agree(pictures) -> None:
    """CL-ANDMask votes by their signs, so an entry that is 0 but for rounding may vote
    otherwise: compared is what it is handed.
    """
    made = learner("cl-andmask", "eager")
    made.learn(*pictures(0), domain="a", steps=4)
    network, (inputs, labels) = made.system.method.network.train(), pictures(1)
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


def weights(made: Learner) -> torch.Tensor:
    return torch.cat(
        [parameter.detach().flatten() for parameter in made.system.method.network.parameters()]
    )


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
