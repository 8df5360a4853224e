"""farshore.testing: our own benchmarks, networks and memories pass their batteries, and each check
finds what it is there to find.
"""

from __future__ import annotations

import inspect
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any
from unittest import SkipTest

import pytest
import torch
from pydantic import Field
from torch import Tensor, nn

import farshore
from farshore.benchmarks import Benchmark
from farshore.errors import FarshoreError
from farshore.memory import MEMORIES, PartitionedMemory, ReservoirMemory
from farshore.methods import METHODS, Method
from farshore.methods.er import ER
from farshore.methods.finetune import Finetune
from farshore.networks import Network
from farshore.testing import (
    Check,
    benchmark_checks,
    check_benchmark,
    check_memory,
    check_method,
    check_network,
    memory_checks,
    method_checks,
    network_checks,
    parametrize_benchmark_checks,
    parametrize_memory_checks,
    parametrize_network_checks,
)
from farshore.testing.toys import ToyShift

HEART = Path(farshore.__file__).parent / "benchmarks" / "files" / "heart.csv"


@parametrize_benchmark_checks(
    ["rotated-digits", "rotated-digits-stream", "coloured-digits", "heart-hospitals", ToyShift]
)
def test_benchmark(benchmark: str | type[Benchmark], check: Check) -> None:
    check(benchmark)


@parametrize_benchmark_checks(
    ["table"], options={"path": str(HEART), "domain": "hospital", "label": "num"}
)
def test_own_data(benchmark: str, check: Check) -> None:
    check(benchmark)


@parametrize_network_checks(["mlp", "cnn"], settings={"width": 16})
def test_network(network: str, check: Check) -> None:
    check(network)


@parametrize_network_checks(
    ["resnet18"], settings={"width": 8, "weights": "none"}, shapes=[(6,), (1, 32, 32)]
)
def test_residual_network(network: str, check: Check) -> None:
    check(network)


@parametrize_memory_checks(MEMORIES.names())
def test_memory(memory: str, check: Check) -> None:
    check(memory)


@pytest.mark.parametrize(
    "settings", [{"memory_fill": "reservoir"}, {"class_balanced_memory": True}]
)
def test_partitions_filled_in_other_ways(settings: dict[str, Any]) -> None:
    check_memory("partitions", settings=settings)


# ---- each check finds what it is there to find ---------------------------------------------------


class Undocumented(Finetune):
    """Nothing."""

    name = "undocumented"


class Silent(Finetune):
    __doc__ = Finetune.__doc__
    name = "silent"

    class Settings(Finetune.Settings):
        strength: float = 1.0


class Lazy(Finetune):
    __doc__ = Finetune.__doc__
    name = "lazy"

    def update(self, batch: Any) -> dict[str, Tensor]:
        return {"erm": torch.zeros(())}


class Careless(Finetune):
    __doc__ = Finetune.__doc__
    name = "careless"

    def after_step(self, batch: Any) -> None:
        torch.rand(1)


class Waits(Finetune):
    __doc__ = Finetune.__doc__
    name = "waits"

    def after_step(self, batch: Any) -> None:
        float(batch.inputs.sum())


class Forgetful(ER):
    __doc__ = ER.__doc__
    name = "forgetful"
    steps = 0

    def terms(self, batch: Any) -> dict[str, Tensor]:
        self.steps += 1
        terms = super().terms(batch)
        return {"erm": terms["erm"] * (1 + 0.1 * self.steps)}


class Hoarder(Finetune):
    __doc__ = Finetune.__doc__
    name = "hoarder"

    remembers = ("held",)

    def setup(self) -> None:
        self.held: list[Tensor] = []

    def after_domain(self, domain: str, rows: Any) -> None:
        self.held = [*self.held, torch.zeros(100 * 2 ** len(self.domains))]


class Diverges(Finetune):
    __doc__ = Finetune.__doc__
    name = "diverges"

    def terms(self, batch: Any) -> dict[str, Tensor]:
        terms = super().terms(batch)
        return {**terms, "extra": (batch.labels.sum() * float("nan")).detach()}

    def weights(self) -> dict[str, float]:
        return {"extra": 0.0}


class NoReduction(ER):
    __doc__ = ER.__doc__
    name = "no-reduction"
    reduces_to = ("finetune", {})


@pytest.mark.parametrize(
    ("method", "sentence"),
    [
        (Undocumented, "has no 'Equation:'"),
        (Silent, "settings without a help text: strength"),
        (Lazy, "the loss does not fall"),
        (Careless, "global generator"),
        (Waits, "waits for the device: _local_scalar_dense"),
        (Forgetful, "name everything it remembers"),
        (Hoarder, "grows faster from domain to domain"),
        (Diverges, "the term 'extra' is nan in step 0 of d0"),
        (NoReduction, "its weights are not those of 'finetune'"),
    ],
)
def test_a_broken_method_is_found(method: type[Method], sentence: str) -> None:
    with pytest.raises((AssertionError, FarshoreError), match=sentence):
        check_method(method)
    assert method.name not in METHODS  # taken back, whatever happens


class MovesTheData(Finetune):
    __doc__ = Finetune.__doc__
    name = "moves-the-data"


def test_a_method_that_draws_from_the_datas_generator_is_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from farshore.training.trainer import Trainer

    usual = Trainer.__init__

    def share(self: Trainer, setup: Any) -> None:
        usual(self, setup)
        if self.method.name == "moves-the-data":
            self.method.generator = self.generators.data

    monkeypatch.setattr(Trainer, "__init__", share)
    monkeypatch.setattr(
        MovesTheData,
        "after_step",
        lambda self, batch: torch.rand(1, generator=self.generator),
        raising=False,
    )
    with pytest.raises(AssertionError, match="sees other rows than `finetune`"):
        check_method(MovesTheData)


class Peeking(ToyShift):
    name = "peeking"

    def make(self, sources: Any, target: str, seed: int) -> Any:
        domains, make_target, notes = super().make(sources, target, seed)
        return [*domains[:-1], make_target()], make_target, notes


class SameForEverySeed(ToyShift):
    name = "same-for-every-seed"

    def make(self, sources: Any, target: str, seed: int) -> Any:
        return super().make(sources, target, 0)


class Unseeded(ToyShift):
    name = "unseeded"

    def make(self, sources: Any, target: str, seed: int) -> Any:
        return super().make(sources, target, int(torch.randint(1000, ())))


class IgnoresOrder(ToyShift):
    name = "ignores-order"

    def make(self, sources: Any, target: str, seed: int) -> Any:
        return super().make(sorted(sources), target, seed)


class LabelsBeyond(ToyShift):
    name = "labels-beyond"
    classes = ("only", "two")

    def make(self, sources: Any, target: str, seed: int) -> Any:
        domains, make_target, notes = super().make(sources, target, seed)
        for domain in domains:
            domain.labels[0] = 2
        return domains, make_target, notes


class NoValidation(ToyShift):
    name = "no-validation"

    def make(self, sources: Any, target: str, seed: int) -> Any:
        domains, make_target, notes = super().make(sources, target, seed)
        for domain in domains:
            object.__setattr__(domain, "validation", domain.validation[:0])
        return domains, make_target, notes


class UnknownProfile(ToyShift):
    name = "unknown-profile"
    profile = "no such profile"


class UnknownNetwork(ToyShift):
    name = "unknown-network"
    network = "no such network"


class SilentOptions(ToyShift):
    name = "silent-options"

    class Options(farshore.BenchmarkOptions):
        size: int = Field(3)


@pytest.mark.parametrize(
    ("benchmark", "sentence"),
    [
        (Peeking, "the sources are"),
        (SameForEverySeed, "seed_changes_data is True"),
        (Unseeded, "global generator"),
        (IgnoresOrder, "is not respected"),
        (LabelsBeyond, "labels from 0 to 2; there are 2 classes"),
        (NoValidation, "no validation rows"),
        (UnknownProfile, "unknown profile"),
        (UnknownNetwork, "unknown network"),
        (SilentOptions, "options without a description: size"),
    ],
)
def test_a_broken_benchmark_is_found(benchmark: type[Benchmark], sentence: str) -> None:
    with pytest.raises((AssertionError, FarshoreError), match=sentence):
        check_benchmark(benchmark)


def test_a_benchmark_may_declare_that_the_seed_changes_nothing() -> None:
    class Fixed(SameForEverySeed):
        name = "fixed"
        seed_changes_data = False

    check_benchmark(Fixed)


def layers(shape: tuple[int, ...], width: int = 8) -> nn.Sequential:
    return nn.Sequential(nn.Flatten(), nn.Linear(torch.Size(shape).numel(), width))


def wrong_features(shape: tuple[int, ...], classes: int) -> Network:
    return Network(layers(shape), nn.Sequential(nn.Linear(8, classes)), feature_dim=5)


def frozen_weights(shape: tuple[int, ...], classes: int) -> Network:
    network = Network(layers(shape), nn.Linear(8, classes))
    nn.init.ones_(network.classifier.weight)
    for parameter in network.parameters():
        nn.init.constant_(parameter, 0.1)
    return network


def looks_around(shape: tuple[int, ...], classes: int) -> Network:
    class Centred(nn.Module):
        def forward(self, inputs: Tensor) -> Tensor:
            return inputs - inputs.mean(dim=0)

    return Network(nn.Sequential(layers(shape), Centred()), nn.Linear(8, classes))


def unannotated(shape, classes, *, width=8):
    return Network(layers(shape, int(width)), nn.Linear(int(width), classes))


def takes_nothing(shape: tuple[int, ...], classes: int) -> Network:
    raise FarshoreError("not today")


@pytest.mark.parametrize(
    ("network", "settings", "sentence"),
    [
        (wrong_features, {}, "its features have shape"),
        (frozen_weights, {}, "another seed gives the same weights"),
        (looks_around, {}, "depend on the rows beside it"),
        (unannotated, {"width": 4}, "annotate them"),
        (takes_nothing, {}, "it takes no inputs"),
    ],
)
def test_a_broken_network_is_found(
    network: Callable[..., Network], settings: dict[str, Any], sentence: str
) -> None:
    with pytest.raises((AssertionError, FarshoreError), match=sentence):
        check_network(network, settings=settings, shapes=[(6,)])


class Overfull(PartitionedMemory):
    def __init__(self, capacity: int, **options: Any) -> None:
        super().__init__(capacity, **options)
        self.capacity = capacity + 1


class Unbounded(ReservoirMemory):
    def limit(self, rows: Any) -> int:
        return self.capacity


class LosesCount(ReservoirMemory):
    def load_state_dict(self, state: Any, device: torch.device) -> None:
        super().load_state_dict({**state, "seen": min(state["seen"], 10)}, device)


class KeepsOnForgetting(PartitionedMemory):
    """Names are gone, rows are not."""

    def forget(self, domain: str) -> None:
        if domain in self.sizes:
            sizes = {name: size for name, size in self.sizes.items() if name != domain}
            self._describe(sizes)


class Mixes(PartitionedMemory):
    def draw(self, rows: int, generator: torch.Generator, *, domains: int | None = None) -> Any:
        draw = super().draw(rows, generator, domains=domains)
        draw.labels = draw.labels.flip(-1)
        return draw


class Reads(ReservoirMemory):
    def draw(self, rows: int, generator: torch.Generator, *, domains: int | None = None) -> Any:
        assert self.items
        return super().draw(rows, generator, domains=domains)


@pytest.mark.parametrize(
    ("memory", "sentence"),
    [
        (Overfull, "are allowed"),
        (Unbounded, "its rows take"),
        (LosesCount, "a restored memory learns a further domain differently"),
        (KeepsOnForgetting, "forgetting d1|forgotten domain|forgetting a domain"),
        (Mixes, "has the label or the stored fields of another row"),
        (Reads, "waits for the device"),
    ],
)
def test_a_broken_memory_is_found(memory: type, sentence: str) -> None:
    with pytest.raises((AssertionError, FarshoreError), match=sentence):
        check_memory(memory)


# ---- as a library --------------------------------------------------------------------------------


@pytest.mark.parametrize("checks", [method_checks, benchmark_checks, network_checks, memory_checks])
def test_every_check_has_a_name_and_says_what_it_checks(checks: Callable[[], Any]) -> None:
    named = list(checks())
    assert len({name for name, _ in named}) == len(named) >= 8
    assert all(inspect.getdoc(check) for _, check in named)


def test_a_failure_names_the_check() -> None:
    with pytest.raises(AssertionError) as caught:
        check_method(Undocumented)
    assert any("docstring_gives_equation_and_paper" in note for note in caught.value.__notes__)


def test_checks_that_do_not_apply_are_skipped() -> None:
    checks = dict(method_checks())
    with pytest.raises(SkipTest, match="one domain after the other"):
        checks["same_seed_gives_the_same_bits"]("urm")
    check_method("urm")


def test_pytest_is_not_imported_before_it_is_used() -> None:
    code = (
        "import sys, farshore.testing\n"
        "farshore.testing.check_memory('reservoir')\n"
        "print('pytest' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120
    )
    assert done.stdout == "False\n"
