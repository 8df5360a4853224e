"""The battery of benchmarks: data that depend on the seed and the options alone, and a sealed
target.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..benchmarks import BENCHMARKS, Benchmark
from ..benchmarks.benchmark import Made
from ..data.domain import Domain, Rows
from ..data.scenario import Scenario
from ..data.seal import FrozenModel
from ..networks.build import build_network
from ..settings import MethodSettings, RunSettings
from ..tasks.scores import all_scores
from ..training.profiles import PROFILES
from .battery import Battery, ensure, not_for, refused


@dataclass(frozen=True)
class BenchmarkCase:
    """The benchmark that is checked, with its options."""

    name: str
    options: Mapping[str, Any] = field(default_factory=dict)

    def make(self) -> Benchmark:
        """The benchmark; where its data are not here, the check does not apply."""
        benchmark = BENCHMARKS.get(self.name)(self.options)
        missing = benchmark.missing()
        if missing is not None:
            raise not_for(missing)
        return benchmark

    @property
    def target(self) -> str:
        """The usual target, or the last domain where there is none."""
        benchmark = self.make()
        return benchmark.usual_target() or benchmark.domain_names()[-1]

    def scenario(self, **asked: Any) -> Scenario:
        """A scenario with the usual target, unless another one is asked for."""
        return self.make().scenario(**{"target": self.target, **asked})


BATTERY: Battery[type[Benchmark], BenchmarkCase] = Battery(BENCHMARKS, BenchmarkCase)
benchmark_checks = BATTERY.checks
parametrize_benchmark_checks = BATTERY.parametrize


def check_benchmark(
    benchmark: str | type[Benchmark], *, options: Mapping[str, Any] | None = None
) -> None:
    """Run every check on a benchmark, given by its name or as a class. The first failure raises."""
    BATTERY.run(benchmark, options=options)


# ---- what it says of itself ----------------------------------------------------------------------


@BATTERY.check
def names_itself(case: BenchmarkCase) -> None:
    """Name, summary, reference and licence are there, and the name is the registered one."""
    kind = BENCHMARKS.get(case.name)
    ensure(kind.name == case.name, f"registered as {case.name!r}, its `name` is {kind.name!r}")
    for attribute in ("summary", "reference", "licence"):
        ensure(getattr(kind, attribute, ""), f"{kind.__name__}.{attribute} is empty")
    message = f"results_version = {kind.results_version!r} is not a whole number from 1"
    ensure(isinstance(kind.results_version, int) and kind.results_version >= 1, message)
    ensure(all(map(all, kind.facts())), "facts() has an empty entry")


@BATTERY.check
def domains_and_default_target(case: BenchmarkCase) -> None:
    """At least two domains with different names; the usual target, if any, is among them."""
    benchmark = case.make()
    names = benchmark.domain_names()
    ensure(len(names) >= 2, f"it has {len(names)} domains: at least a source and a target")
    ensure(len(set(names)) == len(names), f"two domains have one name: {', '.join(names)}")
    target = benchmark.usual_target()
    known = target is None or target in names
    ensure(known, f"the default target {target!r} is not a domain: {', '.join(names)}")
    with refused("an unknown target"):
        benchmark.scenario(target="no such domain")


@BATTERY.check
def options_are_validated(case: BenchmarkCase) -> None:
    """Unknown options are refused, defaults need not be given, and what is given comes back."""
    kind = BENCHMARKS.get(case.name)
    with refused("an unknown option"):
        kind({**case.options, "no_such_option": 1})
    built = kind.Options.build(case.options, case.name)
    again = kind.Options.build(built.plain(), case.name)
    ensure(again == built, f"options do not survive a round trip: {built} becomes {again}")
    silent = [name for name, info in kind.Options.model_fields.items() if not info.description]
    ensure(not silent, f"options without a description: {', '.join(silent)}")
    unknown = set(kind.path_options) - set(kind.Options.model_fields)
    ensure(not unknown, f"path_options names no option: {', '.join(sorted(unknown))}")


@BATTERY.check
def defaults_of_a_run_are_allowed(case: BenchmarkCase) -> None:
    """Steps, memory, profile, settings and metric are what a run can begin with."""
    scenario = case.scenario()
    ensure(scenario.steps >= 1, f"steps = {scenario.steps}: at least 1")
    enough = scenario.memory >= len(scenario.sources)
    ensure(enough, f"memory = {scenario.memory} is smaller than the number of sources")
    PROFILES.get(scenario.profile)
    known = {**MethodSettings.model_fields, **RunSettings.model_fields}
    unknown = [name for name in scenario.settings if name not in known]
    ensure(not unknown, f"`settings` names what not every method has: {', '.join(unknown)}")
    scores = all_scores(torch.eye(len(scenario.classes)), torch.arange(len(scenario.classes)))
    ensure(scenario.metric in scores, f"metric = {scenario.metric!r} is none of {list(scores)}")


@BATTERY.check
def data_facts_say_which_data(case: BenchmarkCase) -> None:
    """The result records which data these are, as texts."""
    facts = case.scenario().data
    ensure(facts, "data_facts() is empty: say at least which set it is")
    wrong = [key for key, value in facts.items() if not isinstance(value, str) or not value]
    ensure(not wrong, f"data_facts() has entries that are not text: {', '.join(wrong)}")


# ---- its data ------------------------------------------------------------------------------------


@BATTERY.check
def rows_are_whole(case: BenchmarkCase) -> None:
    """Labels are class numbers, inputs of one form and finite, in every source and the target."""
    scenario = case.scenario()
    domains = [*scenario.sources, _opened(scenario)]
    ensure(len(scenario.classes) >= 2, f"it has {len(scenario.classes)} classes: at least 2")
    form = _form(domains[0])
    for domain in domains:
        what = f"domain {domain.name!r}"
        ensure(len(domain.inputs) == len(domain.labels) > 0, f"{what} has no rows, or not a label")
        ensure(domain.labels.dtype == torch.long, f"{what} has labels of {domain.labels.dtype}")
        least, most = int(domain.labels.min()), int(domain.labels.max())
        ensure(
            least >= 0 and most < len(scenario.classes),
            f"{what} has labels from {least} to {most}; there are {len(scenario.classes)} classes",
        )
        ensure(_form(domain) == form, f"{what} has rows {_form(domain)}, the first {form}")
        ensure(form[0] in ("uint8", "float32"), f"inputs are {form[0]}: use uint8 or float32")
        ensure(np.isfinite(_array(domain)).all(), f"{what} has NaN or infinite inputs")


@BATTERY.check
def splits_are_disjoint(case: BenchmarkCase) -> None:
    """Every source has training and validation rows, and no row is both."""
    for domain in case.scenario().sources:
        train, held = set(domain.train.tolist()), set(domain.validation.tolist())
        ensure(train, f"domain {domain.name!r} has no training rows")
        ensure(held, f"domain {domain.name!r} has no validation rows")
        ensure(not train & held, f"domain {domain.name!r}: {len(train & held)} rows are in both")
        there = train | held <= set(range(len(domain)))
        ensure(there, f"domain {domain.name!r}: a split names rows that are not there")


@BATTERY.check
def every_domain_can_be_the_target(case: BenchmarkCase) -> None:
    """Whichever is the target, the sources are all others; in time, those before it."""
    benchmark = case.make()
    names = list(benchmark.domain_names())
    targets = benchmark.each_target() if benchmark.ordered_by_time else dict.fromkeys(names, ())
    for target, left_out in targets.items():
        scenario = case.scenario(target=target)
        sources = [domain.name for domain in scenario.sources]
        expected = [name for name in names if name not in (target, *left_out)]
        message = f"with the target {target!r} the sources are {sources}: {expected} are expected"
        ensure(sorted(sources) == sorted(expected), message)
        got = scenario.target.name
        ensure(got == target, f"asked for {target!r}, got {got!r}")


@BATTERY.check
def same_seed_gives_the_same_data(case: BenchmarkCase) -> None:
    """Data depend on the seed alone, and do so unless `seed_changes_data` is False."""
    state = torch.random.get_rng_state()
    first, same, other = (case.scenario(seed=seed) for seed in (0, 0, 1))
    message = "it draws from PyTorch's global generator: derive a generator from the seed"
    ensure(torch.equal(state, torch.random.get_rng_state()), message)
    ensure(_same(first.sources, same.sources), "two scenarios with one seed differ")
    ensure(_same([_opened(first)], [_opened(same)]), "with one seed the target is made in two ways")
    changes = not _same(first.sources, other.sources)
    declared = case.make().seed_changes_data
    what = f"another scenario seed gives {'other' if changes else 'the same'} data"
    ensure(changes == declared, f"seed_changes_data is {declared}, but {what}")


@BATTERY.check
def order_is_respected(case: BenchmarkCase) -> None:
    """Sources come in the order that is asked for, with the same rows and splits in any order."""
    listed = case.scenario().sources
    if len(listed) < 2:
        raise not_for("has one source only")
    order = [domain.name for domain in listed][::-1]
    turned = case.scenario(order=order).sources
    ensure([domain.name for domain in turned] == order, f"the order {order} is not respected")
    for domain, other in zip(listed, turned[::-1], strict=True):
        # Inputs may be scaled by the first domain, so only labels and splits must be equal.
        ensure(
            torch.equal(domain.labels, other.labels)
            and torch.equal(domain.train, other.train)
            and torch.equal(domain.validation, other.validation),
            f"the rows or the split of {domain.name!r} depend on the order",
        )
    with refused("an order that names a source twice"):
        case.scenario(order=[order[0]] * len(order))


@BATTERY.check
def target_stays_sealed(case: BenchmarkCase) -> None:
    """The target is not made before it is opened, and opening it again gives the same data."""
    benchmark, opened = case.make(), []
    make = benchmark.make

    def recording(sources: Sequence[str], target: str, seed: int) -> Made:
        domains, make_target, notes = make(sources, target, seed)

        def make_and_record() -> Domain:
            opened.append(target)
            return make_target()

        return domains, make_and_record, notes

    benchmark.make = recording  # type: ignore[method-assign]
    scenario = benchmark.scenario(target=case.target)
    ensure(not opened, "the target is made before it is opened")
    names = [domain.name for domain in scenario.sources]
    ensure(case.target not in names, "the target is among the sources")
    target = _opened(scenario)
    ensure(target.name == case.target, f"the target {case.target!r} calls itself {target.name!r}")
    ensure(len(scenario.target.opened) == 1, "that the target was opened is not recorded")


@BATTERY.check
def left_out_domains_are_never_made(case: BenchmarkCase) -> None:
    """A domain that is left out is neither source nor target."""
    benchmark = case.make()
    sources = benchmark.listed(case.target)
    if len(sources) < 2:
        raise not_for("has one source only")
    left_out = sources[-1]
    asked: list[str] = []
    make = benchmark.make

    def recording(sources: Sequence[str], target: str, seed: int) -> Made:
        asked.extend([*sources, target])
        return make(sources, target, seed)

    benchmark.make = recording  # type: ignore[method-assign]
    scenario = benchmark.scenario(target=case.target, left_out=[left_out])
    ensure(
        left_out not in asked and left_out not in [domain.name for domain in scenario.sources],
        f"the domain {left_out!r} is made although it is left out",
    )
    with refused("leaving out a domain that does not exist"):
        case.scenario(left_out=["no such domain"])


@BATTERY.check
def its_network_takes_its_inputs(case: BenchmarkCase) -> None:
    """The network that it names exists and gives a logit per class for its rows."""
    scenario = case.scenario()
    rows: Rows = scenario.sources[0].split("train")
    inputs, _ = rows.take(torch.arange(min(2, len(rows))))
    settings = scenario.network_settings
    shape = tuple(inputs.shape[1:])
    with torch.random.fork_rng(devices=[]):
        sizes = (shape, len(scenario.classes))
        network = build_network(scenario.network, *sizes, settings, restored=True)
    with torch.inference_mode():
        logits = network.eval()(inputs)
    made, expected = tuple(logits.shape), (len(inputs), len(scenario.classes))
    ensure(made == expected, f"network {scenario.network!r} gives {made} for {expected}")


# ---- shared --------------------------------------------------------------------------------------


def _opened(scenario: Scenario) -> Domain:
    """The target, for a model that knows nothing."""
    with torch.random.fork_rng(devices=[]):
        return scenario.target.open(FrozenModel(nn.Linear(1, 1)))


def _array(domain: Domain) -> np.ndarray:
    inputs = domain.inputs
    return inputs.cpu().numpy() if isinstance(inputs, Tensor) else np.asarray(inputs)


def _form(domain: Domain) -> tuple[str, tuple[int, ...]]:
    """Type and shape of one row."""
    array = _array(domain)
    return array.dtype.name, tuple(array.shape[1:])


def _same(first: Sequence[Domain], second: Sequence[Domain]) -> bool:
    """Whether domains have the same rows, labels and splits."""
    return len(first) == len(second) and all(
        np.array_equal(_array(a), _array(b))
        and torch.equal(a.labels, b.labels)
        and torch.equal(a.train, b.train)
        and torch.equal(a.validation, b.validation)
        for a, b in zip(first, second, strict=True)
    )
