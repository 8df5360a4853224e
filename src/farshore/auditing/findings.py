"""Findings: everything that an audit says, from the frame of its runs and the sites' rows."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from statistics import fmean
from typing import Any

import numpy as np
import pandas as pd

from ..deployment.unlike import SiteRows, SiteShift, compare_sites
from ..errors import FarshoreError
from ..results.expectation import FEWEST_SITES, Expectation, expect_in
from ..results.frame import results_in_metric
from ..results.pooled import AllAtOnce, beside
from ..results.select import observed
from ..results.summary import (
    Difference,
    Ranking,
    Unit,
    estimate,
    order_range,
    paired,
    rank,
    scores_of,
)
from ..results.verdict import Recommendation, recommend
from ..runs.plan.select import MAJORITY
from ..tasks.labels import restored_task
from ..tasks.metrics import MIXED, guess_words, listed
from .choice import MethodChoice, make_choice
from .curve import Curve, fit_curve, gain_of_rows, points
from .decision import Decision, Evidence, decide, gather, gather_skill
from .designs import JOINT, UNPROTECTED

# A score at a site with fewer rows is mostly chance.
FEWEST_ROWS = 20
# A class needs this many rows at a site for its sensitivity there.
FEWEST_OF_CLASS = 5


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
    """What an audit found. Scores are fractions, or in the label's unit.

    recommendation: None if no candidate does better than guessing.
    choice: the recommended method, else the one with the best score.
    scores: the score at each site, by the method that was chosen without that site.
    expectation: None if there are too few sites.
    mean, source_score, loss: of the chosen method at left-out sites, on held-out rows of the sites
        that it learned, and how much worse the first is.
    pooled: the recommended method beside ordinary models that are fitted to all data at once.
    evidence, decision: how far it is above guessing, and what follows.
    forgetting, unprotected: how much better joint is than the chosen method, and than finetune.
    """

    title: str
    sites: dict[str, int]
    orders: int
    seeds: int
    in_time: bool
    ranking: Ranking
    recommendation: Recommendation | None
    choice: MethodChoice
    scores: dict[str, float]
    expectation: Expectation | None
    classes: tuple[ClassFinding, ...]
    calibration_error: float | None
    log_loss: float | None
    mean: float
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
    pooled: AllAtOnce | None
    evidence: Evidence | None
    decision: Decision

    def plain(self) -> dict[str, Any]:
        """The findings as plain values, for JSON."""
        values = asdict(self)
        del values["ranking"]
        return {
            "status": "done",
            "metric": self.ranking.metric.name,
            "reference": self.ranking.reference,
            "methods": [each.plain() for each in self.ranking.standings],
            **values,
        }

    @property
    def unlike(self) -> SiteShift | None:
        """The site whose inputs differ most, if any differs."""
        return next((shift for shift in self.shifts if shift.different), None)

    @property
    def outlier(self) -> str | None:
        """The site, if any, with a score worse than the interval that the other sites predict."""
        metric = self.ranking.metric
        sites = sorted(self.scores.items(), key=lambda item: item[1])
        for site, score in sites if metric.higher_is_better else sites[::-1]:
            others = {name: [value] for name, value in self.scores.items() if name != site}
            found = expect_in(metric, others, self.sites, level=0.98)
            if found is None:
                continue
            if metric.better(found.low if metric.higher_is_better else found.high, score):
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


def find_all(frame: pd.DataFrame, sites: SiteRows, *, in_time: bool = False) -> Findings:
    """Everything that the runs of an audit and the rows of its sites say."""
    ranking, frame = rank(frame), observed(frame)
    if not ranking.ranked:
        names = listed([each.row for each in ranking.standings if each.kind == "continual"])
        raise FarshoreError(f"no candidate has a score at every site: runs of {names} diverged")
    recommendation = recommend(frame, ranking)
    method = ranking.ranked[0].row if recommendation is None else recommendation.row
    choice = make_choice(frame, ranking, method)
    runs = frame[frame["row"] == method]
    results = results_in_metric(runs)
    # The scores of early stages exist only in the metric that a run chose for itself.
    pairs = zip(runs["result"], results, strict=True)
    mean = _mean(runs, method) or 0.0
    known = runs.assign(known=[result.source_score(1) for result in results])
    source_score = _mean(known, method, "known") or 0.0
    at = {site: runs_at(frame, site, choice) for site in dict.fromkeys(runs["target"])}
    judged = {site: list(scores_of(of, choice.at(site)).values()) for site, of in at.items()}
    sizes = {result.target.name: result.target.rows for result in results}
    metric = ranking.metric
    expectation, majority = expect_in(metric, judged, sizes), _mean(frame, MAJORITY)
    scores = {site: float(np.mean(of_site)) for site, of_site in judged.items()}
    pooled = beside(frame, ranking, method)
    by_site = {site: [result.target for result in of["result"]] for site, of in at.items()}
    classes = _classes(runs)
    kind = restored_task(next(iter(results)).task)
    gathered: Any = kind.either(gather, gather_skill)
    name = kind.either("confusion", "scores")
    evidence = gathered({site: [getattr(run, name) for run in of] for site, of in by_site.items()})
    return Findings(
        title=str(runs["benchmark"].iloc[0]),
        sites=sizes,
        orders=int(runs.groupby("target")["order"].nunique().max()),
        seeds=int(runs["seed"].nunique()),
        in_time=in_time,
        ranking=ranking,
        recommendation=recommendation,
        choice=choice,
        scores=scores,
        expectation=expectation,
        classes=classes,
        calibration_error=_mean(runs, method, "calibration_error"),
        log_loss=_mean(runs, method, "log_loss"),
        mean=mean,
        source_score=source_score,
        loss=source_score - mean if metric.higher_is_better else mean - source_score,
        shifts=tuple(compare_sites(sites)),
        forgetting=paired(frame, JOINT, method),
        unprotected=paired(frame, JOINT, UNPROTECTED),
        order_range=order_range(scores_of(frame, method)),
        unprotected_order_range=order_range(scores_of(frame, UNPROTECTED)),
        curve=fit_curve(points(own for own, shown in pairs if own.metric == shown.metric)),
        more_rows=gain_of_rows(sites, list(judged)),
        majority=majority,
        pooled=pooled,
        evidence=evidence,
        decision=decide(
            *(metric, recommendation, scores, majority, evidence, expectation, pooled),
            guess_words(len(classes)),
        ),
    )


def _mean(frame: pd.DataFrame, row: str, column: str = "") -> float | None:
    """The mean of a column over sites, by default of the score; None without a value."""
    found = estimate(scores_of(frame, row, column), Unit.TARGET, MIXED)
    return found.mean if found is not None else None


def runs_at(frame: pd.DataFrame, site: str, choice: MethodChoice) -> pd.DataFrame:
    """The runs at a left-out site, with a score, of the method that was chosen without it."""
    here = (frame["target"] == site) & (frame["row"] == choice.at(site))
    return frame[here & frame["score"].notna()]


def _classes(runs: pd.DataFrame) -> tuple[ClassFinding, ...]:
    """Per class, the mean over sites that have enough rows of it, and the worst of them."""
    by_site = {
        str(site): (
            results.iloc[0].classes,
            np.mean([result.target.confusion for result in results], axis=0),
        )
        for site, results in runs.groupby("target", sort=False)["result"]
    }
    names = dict.fromkeys(name for classes, _ in by_site.values() for name in classes)
    return tuple(_class(name, by_site) for name in names)


def _class(name: str, by_site: Mapping[str, tuple[list[str], np.ndarray]]) -> ClassFinding:
    """One class, from each site's table of true and predicted classes."""
    sensitivity: dict[str, float] = {}
    specificity: list[float] = []
    total = 0.0
    for site, (classes, confusion) in by_site.items():
        if name not in classes:
            continue
        number = classes.index(name)
        rows, hits = confusion[number].sum(), confusion[number, number]
        total += rows
        others = confusion.sum() - rows
        if rows >= FEWEST_OF_CLASS:
            sensitivity[site] = float(hits / rows)
        if others >= FEWEST_OF_CLASS:
            specificity.append(float(1 - (confusion[:, number].sum() - hits) / others))
    lowest = min(sensitivity, key=lambda site: sensitivity[site], default=None)
    return ClassFinding(
        name=name,
        rows=round(total),
        sensitivity=fmean(sensitivity.values()) if sensitivity else None,
        lowest_sensitivity=sensitivity[lowest] if lowest is not None else None,
        lowest_at=lowest,
        specificity=fmean(specificity) if specificity else None,
    )
