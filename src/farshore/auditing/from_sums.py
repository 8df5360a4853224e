"""What the sums of the sites say about the next one, before any network is trained.

A closed-form learner is computed from one set of sums per site. So the model without a site, or of
any subset of sites, is a sum and a solve: no row is read again. With this, every site is left out;
every pair of sites, for the value of each site to the others; random subsets, for the curve over
the number of sites; and sites are drawn again with replacement.

The columns are scaled by the first site, as in every run; where the first one is left out, by the
second. The rows of a left-out site touch nothing but its scores: they are not in the sums, and the
strength and the temperature are chosen anew without them.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..base.randomness import derive
from ..base.trees import same
from ..benchmarks.benchmark import Benchmark
from ..data.domain import Domain
from ..data.scenario import Scenario
from ..data.seal import FrozenModel
from ..data.tables.table import TablePreprocessing
from ..learner.learner import Learner
from ..results.summary import FEWEST_UNITS
from ..results.text import points
from ..runs import catalog
from ..settings import RunSettings
from ..systems.closed_form.entry import ClosedForm
from ..systems.closed_form.head import Head
from ..systems.closed_form.predictor import UNSEEN
from ..systems.closed_form.sums import DomainSums, SumsOfDomain
from ..systems.closed_form.system import ClosedFormSystem
from ..tasks.metrics import METRICS, Metric, in_unit, several
from .curve import Curve, Point, fit_curve

METHODS = ("ridge", "slda", "ncm")
# At most so many pairs of sites are left out; of more, a fixed sequence.
MOST_PAIRS = 60
PERMUTATIONS = 4
# Cubes of the width, over all heads: about a minute. The same on every machine.
MOST_WORK = 2e10
RESAMPLES = 20
LEVEL = 0.9


@dataclass(frozen=True)
class SiteValue:
    """How much better other, unseen sites score by learning a site too: mean, and sites."""

    mean: float
    sites: int


@dataclass(frozen=True)
class FromSums:
    """scores: at each left-out site. values: of each site for the others. low, high: of the mean
    score, if the sites that are learned are drawn again with replacement; None below three sites.
    """

    method: str
    metric: str
    scores: dict[str, float]
    values: dict[str, SiteValue]
    curve: Curve | None
    low: float | None
    high: float | None
    unit: str = ""
    level: float = LEVEL

    @property
    def shown(self) -> Metric:
        """The metric in the label's unit."""
        return in_unit(METRICS[self.metric], self.unit)

    @property
    def mean(self) -> float:
        """The mean over left-out sites."""
        return fmean(self.scores.values())

    def plain(self) -> dict[str, Any]:
        """All numbers as plain values, for JSON."""
        return {"mean": self.mean, **asdict(self)}

    def line(self) -> str:
        """The answer in one line."""
        metric = self.shown
        text = (
            f"{self.method}, from sums: {metric.text(self.mean)}{metric.unit} on average over "
            f"{several(len(self.scores), 'left-out site')}"
        )
        least = min(self.values, key=lambda site: self.values[site].mean, default=None)
        enough = least is not None and self.values[least].sites >= FEWEST_UNITS
        if least is not None and enough and self.values[least].mean < 0:
            gain = f"{metric.text(-self.values[least].mean)} {points(metric)}"
            text += f"; without {least}, other new sites gain {gain}"
        return text


QUESTION = "What does each site add?"


def answer_from_sums(sums: Mapping[str, FromSums]) -> dict[str, str]:
    """The question and its answer, by the first method; empty if nothing was computed."""
    if not sums:
        return {}
    found = next(iter(sums.values()))
    metric, text = found.shown, f"{found.line()}."
    if found.low is not None and found.high is not None:
        text += (
            f" If the sites to learn from are drawn again at random, this mean is between "
            f"{metric.text(found.low)}{metric.unit} and {metric.text(found.high)}{metric.unit} in "
            f"{100 * found.level:.0f} of 100 draws."
        )
    ranked = sorted(found.values, key=lambda site: -found.values[site].mean)
    shown = ", ".join(
        f"{site} {metric.text(found.values[site].mean, sign=True)}" for site in ranked[:10]
    )
    if shown:
        text += (
            f" Learning a site changes the mean score at other unseen sites by ({points(metric)}"
            f"{'' if metric.higher_is_better else ' less'}): {shown}"
        )
        text += f" and {len(ranked) - 10} more sites" if len(ranked) > 10 else ""
        fewest = min(each.sites for each in found.values.values())
        text += f". Each is a mean over {several(fewest, 'site')} or more, without an interval."
    return {QUESTION: text}


class SiteSums:
    """The sums of all sites in one scaling, and their features to score heads on."""

    def __init__(self, scenario: Scenario, method: str, settings: Mapping[str, Any]) -> None:
        entry = catalog.find(method)
        known = {*entry.Settings.model_fields, *RunSettings.model_fields}
        given = {name: value for name, value in settings.items() if name in known}
        source = entry.source_training({**scenario.settings, **given})
        learner = Learner(
            network=scenario.network,
            method=source.method,
            memory=scenario.memory,
            settings={**RunSettings().model_dump(), **source.settings},
            network_settings=scenario.network_settings,
            task=scenario.task,
            metric=scenario.metric,
            profile=scenario.profile,
        )
        learner.begin(scenario.sources[0], None)
        assert isinstance(learner.system, ClosedFormSystem)
        self.system: ClosedFormSystem = learner.system
        self.task, self.metric = learner.known_task, scenario.metric
        self.sums: dict[str, SumsOfDomain] = {}
        self.features: dict[str, Tensor] = {}
        self.labels: dict[str, Tensor] = {}
        for domain in scenario.sources:
            self.add(domain)

    def add(self, domain: Domain) -> None:
        """Sum a site's training rows, and keep the features of all its rows to be scored."""
        self.sums[domain.name] = self.system.summed(domain)
        self.see(domain)

    def see(self, domain: Domain) -> None:
        """Keep the features of a site that is only scored."""
        inputs, labels = domain.split("all").take(torch.arange(len(domain)))
        with torch.no_grad():
            self.features[domain.name] = self.system.model.extract(inputs)
        self.labels[domain.name] = labels

    def head(self, names: Iterable[str]) -> tuple[Head, Tensor]:
        """The head of these sites, one that is named twice counting twice; which classes it saw."""
        entry: ClosedForm = self.system.entry
        parts = {}
        for name, count in Counter(names).items():
            own = self.sums[name]
            parts[name] = {key: count * of for key, of in own.items()} if count > 1 else own
        sums = DomainSums(parts)
        with torch.no_grad():
            return entry.fit(sums), self.task.seen(sums.added()["counts"])

    def outputs(self, head: tuple[Head, Tensor], site: str) -> Tensor:
        """What a head says about a site."""
        (solved, seen), features = head, self.features[site]
        logits = features @ solved.weight.float() + solved.bias.float()
        return torch.where(seen, logits, logits.amin(dim=1, keepdim=True) - UNSEEN)

    def score(self, head: tuple[Head, Tensor], site: str) -> float:
        """The score of a head at a site."""
        return self.task.score(self.metric, self.outputs(head, site), self.labels[site])


def from_sums(
    benchmark: Benchmark, method: str, settings: Mapping[str, Any] | None = None, seed: int = 0
) -> FromSums | None:
    """The answers of a method; None where runs would differ: see `_comparable`."""
    names = list(benchmark.learnable_names())
    first = benchmark.scenario(target=names[-1], seed=seed)
    second = benchmark.scenario(target=names[1], seed=seed)
    other = benchmark.scenario(target=names[0], seed=seed)
    # The sources' mean is not among the sums.
    if first.metric == "skill" or not _comparable(benchmark, first, second, other):
        return None
    chosen = dict(settings or {})
    sites, without_first = SiteSums(first, method, chosen), SiteSums(other, method, chosen)
    sites.add(second.sources[-1])
    solves = 2 * len(names) + MOST_PAIRS + RESAMPLES
    if len(sites.system.model.weight) ** 3 * solves > MOST_WORK:
        return None
    scores = {}
    for left_out in names:
        used = without_first if left_out == names[0] else sites
        head = used.head(name for name in names if name != left_out)
        if used is without_first:
            used.system.model.install(*head)
            used.see(other.target.open(FrozenModel(used.system.predictor())))
        scores[left_out] = used.score(head, left_out)
    low, high = _drawn_again(sites, names)
    found = method, sites.metric, scores, _values(sites, names, scores), _curve(sites, names)
    return FromSums(*found, low, high, str(sites.task.state_dict().get("unit", "")))


def _comparable(benchmark: Benchmark, *scenarios: Scenario) -> bool:
    """Whether a run without any site has the same features and classes as these scenarios.

    Not if sites are in the order of time, if a class occurs at one site only, or if a column is
    empty at the first site, so that another one scales it.
    """
    first, second, other = scenarios
    classes = {tuple(each.classes) for each in scenarios}
    if benchmark.ordered_by_time or len(classes) > 1:
        return False
    domains = {each.name: each for each in (*other.sources, *first.sources)}
    for left_out in domains:
        rest = [each.labels for name, each in domains.items() if name != left_out]
        if len(torch.cat(rest).unique()) < len(first.classes):
            return False
    for scenario in scenarios:
        columns, domain = scenario.preprocessing, scenario.sources[0]
        if isinstance(columns, TablePreprocessing):
            rows = torch.as_tensor(np.asarray(domain.inputs))[domain.train]
            for name, values in zip(columns.features, rows.T, strict=False):
                if name.endswith(" missing") and bool((values == 1).all()):
                    return False
    kept = (each.preprocessing for each in (first, second))
    return same(*(each.state_dict() if each else None for each in kept))


def _values(
    sites: SiteSums, names: Sequence[str], whole: Mapping[str, float]
) -> dict[str, SiteValue]:
    """The value of each site: scores at others, never learned, with it minus those without it."""
    judged = names[1:]  # the first one scales the columns of all
    order = np.random.default_rng(derive(0, "audit", "pairs")).permutation(len(judged)).tolist()
    pairs = [
        (judged[order[place]], judged[order[(place + step) % len(order)]])
        for step in range(1, len(order) // 2 + 1)
        for place in range(len(order))
    ]
    unique = list(dict.fromkeys(tuple(sorted(pair)) for pair in pairs if pair[0] != pair[1]))
    chosen = unique[: max(MOST_PAIRS, len(judged))]
    gains: dict[str, list[float]] = {}
    better = METRICS[sites.metric]
    for pair in chosen:
        head = sites.head(name for name in names if name not in pair)
        for removed, at in (pair, pair[::-1]):
            gain = whole[at] - sites.score(head, at)
            gains.setdefault(removed, []).append(gain if better.higher_is_better else -gain)
    return {site: SiteValue(fmean(found), len(found)) for site, found in sorted(gains.items())}


def _curve(sites: SiteSums, names: Sequence[str]) -> Curve | None:
    """Scores after 1, 2, 4, ... random sites, at those that are not learned."""
    draws = np.random.default_rng(derive(0, "audit", "subsets"))
    points = []
    sizes = [2**power for power in range(20) if 2**power < len(names)]
    for _ in range(PERMUTATIONS):
        order = [names[place] for place in draws.permutation(len(names))]
        for size in sizes:
            head = sites.head(order[:size])
            judged = [site for site in order[size:] if site != names[0]]
            points += [Point(size, site, sites.score(head, site)) for site in judged]
    return fit_curve(points)


def _drawn_again(sites: SiteSums, names: Sequence[str]) -> tuple[float | None, float | None]:
    """The interval of the mean score at sites that were not drawn."""
    if len(names) < 4:
        return None, None
    draws = np.random.default_rng(derive(0, "audit", "sites again"))
    means: list[float] = []
    while len(means) < RESAMPLES:
        drawn = [names[place] for place in draws.integers(0, len(names), len(names))]
        judged = [name for name in names[1:] if name not in drawn]
        if judged:
            head = sites.head(drawn)
            means.append(fmean(sites.score(head, site) for site in judged))
    tail = (1 - LEVEL) / 2
    low, high = np.quantile(means, [tail, 1 - tail])
    return float(low), float(high)
