"""The only ranking, mean, error and paired difference: pure functions of one frame of runs.

A method is described by the mean over units of evidence, and two methods are compared unit by unit.

- The unit is the coarsest of these of which there are several: data set, target, last source, order
  of the sources, seed. Where a target is the unit, its orders and seeds only make it more exact.
- The score of a method at a unit is the mean over targets of the mean over last sources of the mean
  over orders of the mean over seeds, as far as the unit contains several of them.
- A paired difference d_u at a unit is the same mean of differences between runs with the same
  target, order and seed. Methods that learn all sources at once have no order: their run at a
  target with a seed is paired with every order.
- The error of a mean over n units is their standard deviation (divisor n - 1) over √n. Its 95%
  interval is Student's, mean ± t(n - 1) · error, cut off at the metric's limits. There is neither
  an error nor an interval from fewer than three units, and no interval wider than the metric.

Only continual methods are ranked, and only those without a gap: wherever another one has a score,
they have one too, and none of their planned runs there lacks it. Rank 1 is best; equal scores share
the better rank. Over several data sets, the mean of the ranks on the data sets decides.
"""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import StrEnum
from itertools import groupby
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from ..methods import usual_among
from ..runs.catalog import KINDS
from ..tasks.metrics import BALANCED, METRICS, MIXED, Metric, in_unit, is_guessing
from .frame import SEPARATOR
from .select import observed, scored
from .tests import DECIMALS, rank_methods

# With fewer units, an error or an interval says nothing: the units are shown one by one.
FEWEST_UNITS = 3
LEVEL = 0.95
# Standard errors below this are rounding.
SMALLEST_ERROR = 1e-9
# What a method is compared with: the first of these that has a score everywhere.
REFERENCES = ("er", "finetune")

# Data set, target, last source, order and seed of a run.
Place = tuple[str, str, str, str, int]
PLACE = ("benchmark", "target", "last_source", "order", "seed")
Scores = Mapping[Place, float]


class Unit(StrEnum):
    """What one observation is."""

    DATASET = "data set"
    TARGET = "target"
    LAST_SOURCE = "last source"
    ORDER = "order"
    SEED = "seed"

    @property
    def level(self) -> int:
        """Its position in a `Place`."""
        return list(Unit).index(self)


@dataclass(frozen=True)
class Estimate:
    """A mean over units.

    error, low, high: standard error and 95% interval; None if `note` says why there is none.
    worst, best: the units with the worst and the best mean, by name.
    values: the score at each unit.
    """

    mean: float
    error: float | None
    low: float | None
    high: float | None
    unit: Unit
    values: Mapping[str, float]
    worst: str
    best: str
    runs: int
    note: str = ""

    @property
    def units(self) -> int:
        """How many units there are."""
        return len(self.values)


@dataclass(frozen=True)
class Difference(Estimate):
    """A paired difference over the units and runs that both methods have.

    won: in how many of the units the first method is better; better: whether it is on average.
    """

    won: int = 0
    better: bool = False

    @property
    def certain(self) -> bool:
        """Whether the interval excludes zero."""
        if self.low is None or self.high is None:
            return False
        return round(self.low, DECIMALS) > 0 or round(self.high, DECIMALS) < 0

    @property
    def clear(self) -> bool:
        """Whether the first is certainly better."""
        return self.certain and self.better

    @property
    def p(self) -> float | None:
        """Two-sided p-value of Student's paired test over units; None without an error."""
        if self.error is None:
            return None
        if self.error < SMALLEST_ERROR:  # the same difference in every unit
            return 0.0 if abs(self.mean) > SMALLEST_ERROR else 1.0
        return float(2 * stats.t.sf(abs(self.mean) / self.error, self.units - 1))


@dataclass(frozen=True)
class Standing:
    """A row of the ranking.

    rank: None for methods that are never ranked, and for those that lack a score.
    complete: whether every planned run has a score.
    guessing: whether it tells the classes apart no better than guessing, at every place.
    difference: from the reference; None for the reference itself.
    runs, planned: how many of the planned runs have a score.
    """

    row: str
    method: str
    variant: str
    group: str
    kind: str
    rank: int | None
    complete: bool
    guessing: bool
    estimate: Estimate | None
    difference: Difference | None
    runs: int
    planned: int

    def plain(self) -> dict[str, Any]:
        """The row as plain values, for JSON."""
        found, difference = self.estimate, self.difference
        same = ("kind", "rank", "guessing", "runs", "planned")
        return {
            "method": self.row,
            **{name: getattr(self, name) for name in same},
            "mean": found.mean if found is not None else None,
            "error": found.error if found is not None else None,
            "worst": found.values[found.worst] if found is not None else None,
            "worst_site": found.worst if found is not None else None,
            "by_site": dict(found.values) if found is not None else {},
            "difference": asdict(difference) if difference is not None else None,
        }


@dataclass(frozen=True)
class Ranking:
    """All rows under one metric: ranked ones best first, then the others by kind and score."""

    metric: Metric
    unit: Unit
    reference: str
    standings: tuple[Standing, ...]

    def find(self, row: str) -> Standing | None:
        """The standing of a row."""
        return next((each for each in self.standings if each.row == row), None)

    @property
    def ranked(self) -> list[Standing]:
        """The rows with a rank, best first."""
        return [each for each in self.standings if each.rank is not None]

    @property
    def usable(self) -> list[Standing]:
        """The ranked rows that do better than guessing, best first."""
        return [each for each in self.ranked if not each.guessing]


def rank(frame: pd.DataFrame, metric: str = "") -> Ranking:
    """The ranking of the selected runs; by default under the main metric of each data set."""
    frame = observed(frame)
    unit, scale = unit_of(frame), metric_of(frame, metric)
    scores = {row: scores_of(frame, row, metric) for row in dict.fromkeys(frame["row"])}
    complete = _complete(frame, scores)
    found = ranks({row: scores[row] for row in scores if row in complete}, unit, scale)
    reference = next((row for row in (*REFERENCES, *found) if row in found), "")
    standings = []
    for row in scores:
        of_row = frame[frame["row"] == row]
        first = of_row[["method", "variant", "group", "kind"]].iloc[0]
        method, variant, group, kind = map(str, first)
        compared, ended = None, of_row["score"].notna()
        if reference and row != reference:
            pair = _in_any_order(scores[row], scores[reference], kind, "continual")
            compared = difference(*pair, unit, scale)
        standing = Standing(
            *(row, method, variant, group, kind),
            rank=found.get(row),
            complete=row in complete if kind == "continual" else bool(ended.all()),
            guessing=guessing(of_row, row),
            estimate=estimate(scores[row], unit, scale),
            difference=compared,
            runs=int(ended.sum()),
            planned=len(of_row),
        )
        standings.append(standing)
    standings.sort(key=lambda each: _order(each, scale))
    return Ranking(scale, unit, reference, tuple(standings))


def paired(frame: pd.DataFrame, first: str, second: str, metric: str = "") -> Difference | None:
    """How much higher the first row scores than the second; None if they share no run."""
    frame = observed(frame)
    scale = metric_of(frame, metric)
    kinds = dict(zip(frame["row"], frame["kind"], strict=True))
    ours, theirs = (scores_of(frame, row, metric) for row in (first, second))
    pair = _in_any_order(ours, theirs, kinds.get(first, ""), kinds.get(second, ""))
    return difference(*pair, unit_of(frame), scale)


def guessing(frame: pd.DataFrame, row: str) -> bool:
    """Whether a row is at the level of chance at every place, a target in one order."""
    places = at_chance(frame, row)
    return bool(places) and all(places.values())


def at_chance(frame: pd.DataFrame, row: str) -> dict[tuple[str, str, str], bool]:
    """Whether a row does no better than guessing, by data set, target and order."""
    of_row = observed(frame)
    level = of_row[BALANCED].where(of_row[BALANCED].notna(), of_row["skill"])
    of_row = of_row.assign(level=level)[(of_row["row"] == row) & level.notna()]
    found = {}
    for place, runs in of_row.groupby(["benchmark", "target", "order"], sort=False):
        mean = float(runs["level"].astype(float).mean())
        found[place] = is_guessing(mean, int(runs["classes"].iloc[0]))
    return found  # type: ignore[return-value]


def guess_level(frame: pd.DataFrame) -> float | None:
    """What always predicting the most frequent class scores, averaged over the targets."""
    frame = observed(frame)
    guesses = frame[frame["guess"].notna()].drop_duplicates(["benchmark", "target"])
    return float(guesses["guess"].astype(float).mean()) if len(guesses) else None


def metric_of(frame: pd.DataFrame, metric: str = "") -> Metric:
    """The metric of this name; by default the main one of the frame."""
    names = [metric] if metric else [name for name in dict.fromkeys(frame["metric"]) if name]
    found = METRICS.get(names[0], MIXED) if len(names) == 1 else MIXED
    if found.digits is None:
        return found
    results = [result for result in frame.get("result", ()) if result is not None]
    units = {result.task.get("unit", "") for result in results}
    return in_unit(found, units.pop()) if len(units) == 1 else found


def metrics_of(frame: pd.DataFrame) -> list[str]:
    """The metrics that every run with a score has, the main one first: as `rank` takes them."""
    main, runs = metric_of(frame).name, scored(frame)
    return ["", *(name for name in METRICS if name != main and bool(runs[name].notna().all()))]


def unit_of(frame: pd.DataFrame) -> Unit:
    """What one observation is: the coarsest unit at which continual methods have several scores."""
    runs = scored(frame)
    continual = runs[runs["kind"] == "continual"]
    runs = continual if len(continual) else runs
    for unit, column in zip(Unit, PLACE[:-1], strict=False):
        if runs[column].nunique() > 1:
            return unit
    return Unit.SEED


def meaning(frame: pd.DataFrame) -> list[str]:
    """What intervals over the units of one target do not say; nothing over several targets."""
    unit, runs = unit_of(frame), scored(frame)
    if unit in (Unit.DATASET, Unit.TARGET):
        return []
    if unit is Unit.SEED:
        text = "they do not describe other orders or new targets"
        return [f"Intervals are over seeds at one target in one order: {text}."]
    orders = runs["order"].nunique()
    if orders == math.factorial(len(str(runs["sources"].iloc[0]).split(SEPARATOR))):
        text = f"these are all {orders} orders, not a sample of them, and not new targets"
    else:
        text = "they describe these orders, not new targets"
    texts = [f"Intervals are over {unit}s at one target: {text}."]
    return texts if runs["seed"].nunique() > 1 else [*texts, "One seed; seed noise not included."]


def spread(frame: pd.DataFrame) -> list[str]:
    """The mean over methods of `variance`, in words, where one target has several orders."""
    runs = scored(frame)
    runs = runs[runs["kind"] == "continual"]
    known = [variance(scores_of(runs, row)) for row in dict.fromkeys(runs["row"])]
    known = [each for each in known if each]
    if not known or unit_of(frame) not in (Unit.LAST_SOURCE, Unit.ORDER):
        return []
    levels = [unit for unit in Unit if any(unit in each for each in known)]
    shares = [float(np.mean([each.get(unit, 0.0) for each in known])) for unit in levels]
    text = ", ".join(f"{unit} {share:.0%}" for unit, share in zip(levels, shares, strict=True))
    return [f"Where the variance of a method's scores lies (mean over methods): {text}."]


def variance(scores: Scores) -> dict[Unit, float]:
    """The share of the variance over runs that each level explains within the coarser ones.

    With m_l(r) the mean of the runs whose places share the first l levels with that of run r, level
    l has Σ_r (m_l(r) - m_{l-1}(r))² of Σ_r (r - mean)². A level that divides no group of runs, such
    as the seed where there is one, is left out; there are no shares if all scores are equal.
    """
    mean = sum(scores.values()) / max(1, len(scores))
    total = sum((score - mean) ** 2 for score in scores.values())
    before, groups, shares = dict.fromkeys(scores, mean), 1, dict[Unit, float]()
    for unit in Unit:
        parts: dict[tuple[object, ...], list[float]] = {}
        for place, score in scores.items():
            parts.setdefault(place[: unit.level + 1], []).append(score)
        means = {key: sum(values) / len(values) for key, values in parts.items()}
        after = {place: means[place[: unit.level + 1]] for place in scores}
        if len(parts) > groups and total > SMALLEST_ERROR**2:
            shares[unit] = sum((after[place] - before[place]) ** 2 for place in scores) / total
        before, groups = after, len(parts)
    return shares


def scores_of(frame: pd.DataFrame, row: str, metric: str = "") -> dict[Place, float]:
    """The scores of a row by place."""
    column = metric or "score"
    of_row = frame[(frame["row"] == row) & frame[column].notna()]
    found: dict[Place, list[float]] = {}
    columns = (of_row[name] for name in (*PLACE, column))
    for benchmark, target, last, order, seed, score in zip(*columns, strict=True):
        found.setdefault((benchmark, target, last, order, int(seed)), []).append(float(score))
    return {place: float(np.mean(values)) for place, values in found.items()}


def estimate(scores: Scores, unit: Unit, metric: Metric) -> Estimate | None:
    """The mean over units; None without a score."""
    values = by_unit(scores, unit)
    return _estimated(values, unit, metric, len(scores), (metric.low, metric.high))


def difference(first: Scores, second: Scores, unit: Unit, metric: Metric) -> Difference | None:
    """The paired difference of two rows over their shared runs."""
    shared = {place: first[place] - second[place] for place in first if place in second}
    values = by_unit(shared, unit)
    found = _estimated(values, unit, metric, len(shared), (-metric.span, metric.span))
    if found is None:
        return None
    sign = 1 if metric.higher_is_better else -1
    won = sum(round(sign * value, DECIMALS) > 0 for value in values.values())
    return Difference(**vars(found), won=won, better=round(sign * found.mean, DECIMALS) > 0)


def ranks(scores: Mapping[str, Scores], unit: Unit, metric: Metric) -> dict[str, int]:
    """The rank of every row, best first; equal scores share it. All have the same places."""
    rows = list(scores)
    if not rows:
        return {}
    units = {row: by_unit(scores[row], unit) for row in rows}
    keys = {row: sum(of.values()) / len(of) for row, of in units.items()}
    sign = -1 if metric.higher_is_better else 1
    if unit is Unit.DATASET and len(rows) > 1:
        table = [[units[row][name] for name in units[rows[0]]] for row in rows]
        means = rank_methods(table, higher_is_better=metric.higher_is_better).mean(axis=1)
        keys, sign = dict(zip(rows, map(float, means), strict=True)), 1
    rounded = {row: sign * round(keys[row], DECIMALS) for row in rows}
    ordered = sorted(rows, key=lambda row: rounded[row])
    return {row: 1 + sum(rounded[other] < rounded[row] for other in rows) for row in ordered}


def choose(
    scores: Mapping[str, Scores], unit: Unit, metric: Metric, usual: str | None = None
) -> str:
    """The row to use: the usual one, unless another one is clearly better.

    Clearly better: the 95% interval of the paired difference excludes zero. Of several, the first
    is chosen. If the usual row is not among them, it is the first of all. By default it is the
    default method's, or that of plain replay.

    scores: by row, the best first.
    """
    usual = usual or usual_among(scores, metric.of_numbers)
    if usual not in scores:
        return next(iter(scores))
    for row in scores:
        if row == usual:
            break
        found = difference(scores[row], scores[usual], unit, metric)
        if found is not None and found.clear:
            return row
    return usual


def order_range(scores: Scores) -> float | None:
    """The best minus the worst order, averaged over the targets; None with a single order."""
    ranges: dict[tuple[object, ...], float] = {}
    for target, places in _grouped(scores, Unit.TARGET.level).items():
        values = by_unit({place: scores[place] for place in places}, Unit.ORDER).values()
        if len(values) > 1:
            ranges[(target,)] = max(values) - min(values)
    return _nested(ranges) if ranges else None


def by_unit(scores: Scores, unit: Unit) -> dict[str, float]:
    """The mean at every unit, nested over all other levels, the coarsest first."""
    level = unit.level
    return {
        str(name): _nested({place[:level] + place[level + 1 :]: scores[place] for place in places})
        for name, places in _grouped(scores, level).items()
    }


def _grouped(scores: Scores, level: int) -> dict[object, list[Place]]:
    groups: dict[object, list[Place]] = {}
    for place in scores:
        groups.setdefault(place[level], []).append(place)
    return groups


def _nested(scores: Mapping[tuple[object, ...], float]) -> float:
    """The mean over the first part of the keys of the mean over the second part, and so on."""
    if len(scores) == 1:
        return next(iter(scores.values()))
    ordered = sorted(scores, key=lambda key: str(key[0]))
    groups = groupby(ordered, key=lambda key: str(key[0]))
    parts = [_nested({key[1:]: scores[key] for key in keys}) for _, keys in groups]
    return sum(parts) / len(parts)


def _in_any_order(
    first: Scores, second: Scores, first_kind: str, second_kind: str
) -> tuple[Scores, Scores]:
    """Both scores; an offline row's mean at a target with a seed takes the other's orders there."""
    if first_kind == "offline":
        return _at_places(first, second), second
    if second_kind == "offline":
        return first, _at_places(second, first)
    return first, second


def _at_places(scores: Scores, places: Scores) -> Scores:
    without_order: dict[tuple[object, ...], list[float]] = {}
    for place, score in scores.items():
        without_order.setdefault((*place[:2], place[4]), []).append(score)
    found = {place: without_order.get((*place[:2], place[4])) for place in places}
    return {place: sum(values) / len(values) for place, values in found.items() if values}


def _estimated(
    values: Mapping[str, float], unit: Unit, metric: Metric, runs: int, limits: tuple[float, float]
) -> Estimate | None:
    if not values:
        return None
    mean = sum(values.values()) / len(values)
    sign = 1 if metric.higher_is_better else -1
    worst = min(values, key=lambda name: sign * values[name])
    best = max(values, key=lambda name: sign * values[name])
    error = low = high = None
    note = f"too few {unit}s for an interval"
    if len(values) >= FEWEST_UNITS:
        error = float(np.std(list(values.values()), ddof=1)) / math.sqrt(len(values))
        half = float(stats.t.ppf((1 + LEVEL) / 2, len(values) - 1)) * error
        if half < metric.span:
            low, high, note = max(limits[0], mean - half), min(limits[1], mean + half), ""
    return Estimate(mean, error, low, high, unit, dict(values), worst, best, runs, note)


def _complete(frame: pd.DataFrame, scores: Mapping[str, Scores]) -> set[str]:
    """The continual rows without a gap: no score is missing where another row has one.

    What has not run for any of them, such as a whole data set or a last seed, is no gap.
    """
    continual = frame[frame["kind"] == "continual"]
    rows = [row for row in dict.fromkeys(continual["row"]) if scores[row]]
    places = {row: {place[:4] for place in scores[row]} for row in rows}
    everywhere = set().union(*places.values()) if places else set()
    runs = {place for row in rows for place in scores[row]}
    without = continual[continual["score"].isna()]
    columns = (without[name] for name in ("row", *PLACE))
    lacking = {row for row, *place in zip(*columns, strict=True) if (*place,) in runs}
    return {row for row in rows if row not in lacking and places[row] == everywhere}


def _order(each: Standing, metric: Metric) -> tuple[bool, int, int, float]:
    """Ranked rows by rank, the others by kind and score, those without a score last."""
    kind = KINDS.index(each.kind) if each.kind in KINDS else len(KINDS)
    if each.estimate is None:
        return True, kind, 0, math.inf
    sign = -1 if metric.higher_is_better else 1
    mean = round(sign * each.estimate.mean, DECIMALS)
    return each.rank is None, kind, each.rank or 0, mean
