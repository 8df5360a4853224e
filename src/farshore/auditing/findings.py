"""Findings: everything that an audit says, computed from its runs and the sites' rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from ..deployment.unlike import SiteRows, SiteShift, compare_sites
from ..results.expectation import FEWEST_SITES, Expectation, expect
from ..results.over_units import Difference, over_units, paired_difference
from ..results.ranking import scores_by_target
from ..runs.averages import mean
from ..runs.catalog import find
from ..runs.result import Result
from .candidates import JOINT, MAJORITY, RECOMMENDED
from .choice import Choice, early_scores, make_choice
from .curve import Curve, fit_curve, points
from .more_rows import gain_of_rows

# A score at a site with fewer rows is mostly chance.
FEWEST_ROWS = 20
# A class needs this many rows at a site for its sensitivity there.
FEWEST_OF_CLASS = 5


@dataclass(frozen=True)
class MethodFinding:
    """The scores of a method at the left-out sites, and its difference from the chosen one."""

    method: str
    ranked: bool
    mean: float
    error: float | None
    worst: float
    worst_site: str
    by_site: dict[str, float]
    difference: Difference | None
    constant: bool


@dataclass(frozen=True)
class ClassFinding:
    """Sensitivity and specificity of one class over the left-out sites; None if unknown."""

    name: str
    rows: int
    sensitivity: float | None
    lowest_sensitivity: float | None
    lowest_at: str | None
    specificity: float | None


@dataclass(frozen=True)
class Findings:
    """What an audit found. Scores are fractions.

    scores: the score at each site, by the method that was chosen without that site.
    expectation: None if there are too few sites.
    """

    title: str
    metric: str
    sites: dict[str, int]
    orders: int
    seeds: int
    in_time: bool
    choice: Choice
    scores: dict[str, float]
    expectation: Expectation | None
    methods: tuple[MethodFinding, ...]
    classes: tuple[ClassFinding, ...]
    calibration_error: float | None
    log_loss: float | None
    source_score: float
    loss: float
    shifts: tuple[SiteShift, ...]
    forgetting: Difference | None
    unprotected: Difference | None
    order_range: float | None
    unprotected_order_range: float | None
    curve: Curve | None
    more_rows: Difference | None
    majority: float | None

    def plain(self) -> dict[str, Any]:
        """The findings as plain values, for JSON."""
        return {"status": "done", **asdict(self)}

    @property
    def chosen(self) -> MethodFinding:
        """The scores of the chosen method."""
        return next(each for each in self.methods if each.method == self.choice.method)

    @property
    def unlike(self) -> SiteShift | None:
        """The site whose inputs differ most, if any differs."""
        return next((shift for shift in self.shifts if shift.different), None)

    @property
    def outlier(self) -> str | None:
        """The site where the score is far below the others, if there is one.

        Far means below the interval that the other sites predict for a new one.
        """
        for site, score in sorted(self.scores.items(), key=lambda item: item[1]):
            others = {name: [value] for name, value in self.scores.items() if name != site}
            interval = expect(others, level=0.98)
            if interval is not None and score < interval.low:
                return site
        return None


@dataclass(frozen=True)
class TooFew:
    """Why there is too little data to say anything."""

    title: str
    sites: dict[str, int]
    reasons: tuple[str, ...]

    def plain(self) -> dict[str, Any]:
        """The reasons as plain values, for JSON."""
        return {"status": "too few data", **asdict(self)}


def check_enough(title: str, sites: Mapping[str, int], judged: Sequence[str]) -> TooFew | None:
    """Say why there is too little data, before any run; None if there is enough."""
    reasons = []
    if len(judged) < FEWEST_SITES:
        reasons.append(
            f"{len(judged)} sites can be left out, but an interval for a new site needs at least "
            f"{FEWEST_SITES}"
        )
    small = [site for site in judged if sites[site] < FEWEST_ROWS]
    if len(judged) - len(small) < FEWEST_SITES and small:
        reasons.append(
            f"{len(small)} of {len(judged)} sites have fewer than {FEWEST_ROWS} rows "
            f"({', '.join(f'{site}: {sites[site]}' for site in small[:5])}): a score there is "
            "mostly chance"
        )
    return TooFew(title, dict(sites), tuple(reasons)) if reasons else None


def find_all(
    results: Sequence[Result],
    sites: SiteRows,
    *,
    preferred: str = RECOMMENDED,
    in_time: bool = False,
) -> Findings:
    """Everything that the results of an audit and the rows of its sites say.

    preferred: the method that is chosen unless another one is clearly better.
    """
    results = [result for result in results if result.status == "done" and result.target]
    scores = scores_by_target(results)
    ranked = {name: of for name, of in scores.items() if find(name).kind == "continual"}
    early = early_scores([result for result in results if result.run.method in ranked])
    choice = make_choice(ranked, early, preferred)
    judged = {
        site: list(ranked[choice.without.get(site, choice.method)][(site,)].values())
        for (site,) in ranked[choice.method]
    }
    of_chosen = [result for result in results if result.run.method == choice.method]
    targets = [result.target for result in of_chosen if result.target is not None]
    sources = float(np.mean([result.source_score(1) or 0.0 for result in of_chosen]))
    own = _mean_over_sites(scores[choice.method])
    return Findings(
        title=results[0].title,
        metric=results[0].metric,
        sites={target.name: target.rows for target in targets},
        orders=max(
            len({tuple(r.sources) for r in of_chosen if _site(r) == site}) for site in judged
        ),
        seeds=len({result.run.seed for result in of_chosen}),
        in_time=in_time,
        choice=choice,
        scores={site: float(np.mean(values)) for site, values in judged.items()},
        expectation=expect(judged),
        methods=_methods(results, scores, choice.method),
        classes=_classes(of_chosen),
        calibration_error=mean([target.scores.get("calibration_error") for target in targets]),
        log_loss=mean([target.scores.get("log_loss") for target in targets]),
        source_score=sources,
        loss=sources - own,
        shifts=tuple(compare_sites(sites)),
        forgetting=_against(scores, JOINT, choice.method),
        unprotected=_against(scores, JOINT, "finetune"),
        order_range=_order_range(of_chosen),
        unprotected_order_range=_order_range([r for r in results if r.run.method == "finetune"]),
        curve=fit_curve(points(of_chosen)),
        more_rows=gain_of_rows(sites, list(judged)),
        majority=_mean_over_sites(scores[MAJORITY]) if MAJORITY in scores else None,
    )


def _site(result: Result) -> str:
    assert result.target is not None
    return result.target.name


def _mean_over_sites(scores: Mapping[tuple[str, ...], Mapping[Any, float]]) -> float:
    return float(np.mean([np.mean(list(of_site.values())) for of_site in scores.values()]))


def _against(scores: Mapping[str, Any], first: str, second: str) -> Difference | None:
    if first not in scores or second not in scores:
        return None
    return paired_difference(scores[first], scores[second])


def _methods(
    results: Sequence[Result], scores: Mapping[str, Any], chosen: str
) -> tuple[MethodFinding, ...]:
    """All methods, sorted by mean score with the best first; references come last."""
    methods = []
    for method, of_method in scores.items():
        summary = over_units(of_method)
        assert summary is not None
        methods.append(
            MethodFinding(
                method=method,
                ranked=find(method).kind == "continual",
                mean=summary.mean,
                error=summary.error,
                worst=summary.worst,
                worst_site=summary.worst_unit[0],
                by_site={
                    site: float(np.mean(list(of.values()))) for (site,), of in of_method.items()
                },
                difference=_against(scores, method, chosen) if method != chosen else None,
                constant=_constant([result for result in results if result.run.method == method]),
            )
        )
    return tuple(sorted(methods, key=lambda each: (not each.ranked, -each.mean)))


def _constant(results: Sequence[Result]) -> bool:
    """Whether a method predicts one class for nearly all rows of most sites."""
    shares = []
    for result in results:
        if result.target is not None:
            predicted = np.asarray(result.target.confusion).sum(axis=0)
            shares.append(predicted.max() / predicted.sum())
    return bool(shares) and float(np.median(shares)) > 0.97


def _classes(results: Sequence[Result]) -> tuple[ClassFinding, ...]:
    """Per class, the mean over sites that have enough rows of it, and the worst of them."""
    by_site: dict[str, np.ndarray] = {}
    for result in results:
        if result.target is not None:
            confusion = np.asarray(result.target.confusion, dtype=float)
            by_site[result.target.name] = by_site.get(result.target.name, 0) + confusion
    runs = len(results) / max(1, len(by_site))
    found = []
    for number, name in enumerate(results[0].classes):
        sensitivity: dict[str, float] = {}
        specificity: list[float] = []
        rows = 0.0
        for site, confusion in by_site.items():
            positives = confusion[number].sum()
            negatives = confusion.sum() - positives
            rows += positives / runs
            if positives >= FEWEST_OF_CLASS * runs:
                sensitivity[site] = confusion[number, number] / positives
            if negatives >= FEWEST_OF_CLASS * runs:
                wrong = confusion[:, number].sum() - confusion[number, number]
                specificity.append(1 - wrong / negatives)
        lowest = min(sensitivity, key=lambda site: sensitivity[site], default=None)
        found.append(
            ClassFinding(
                name=name,
                rows=round(rows),
                sensitivity=mean(list(sensitivity.values())),
                lowest_sensitivity=sensitivity[lowest] if lowest is not None else None,
                lowest_at=lowest,
                specificity=mean(specificity),
            )
        )
    return tuple(found)


def _order_range(results: Sequence[Result]) -> float | None:
    """The mean over sites of the best minus the worst order; None with a single order."""
    by_site: dict[str, dict[tuple[str, ...], list[float]]] = {}
    for result in results:
        if result.target_score is not None:
            of_site = by_site.setdefault(_site(result), {})
            of_site.setdefault(tuple(result.sources), []).append(result.target_score)
    ranges = []
    for of_site in by_site.values():
        if len(of_site) > 1:
            means = [float(np.mean(values)) for values in of_site.values()]
            ranges.append(max(means) - min(means))
    return mean(ranges)
