"""How certain the choice of a method is, and what would be chosen without each site.

The rule is that of every recommendation, `farshore.results.summary.choose`: the default method,
unless another one is certainly better. Few sites rank methods badly, and a weaker rule changes the
method by chance more often than for a reason (`bench/audit_choice.py`). To measure how good this
rule is, it is also applied without each site: it sees only the runs in which that site was left
out, where the model of every stage is scored on the sources that it has not learned yet. The chosen
method is then scored at the site.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from ..base.randomness import derive
from ..results.select import observed
from ..results.summary import (
    Place,
    Ranking,
    Scores,
    Unit,
    by_unit,
    choose,
    paired,
    ranks,
    scores_of,
)
from ..tasks.metrics import Metric
from .curve import unseen_scores

RESAMPLES = 1000


@dataclass(frozen=True)
class MethodChoice:
    """The method that the audit describes, and how certain it is.

    ties: methods that are not certainly worse.
    certainty: the share of resampled sets of sites for which the same method is chosen.
    without: for each site, the method that is chosen without it.
    """

    method: str
    ties: tuple[str, ...]
    certainty: float
    without: dict[str, str]

    def at(self, site: str) -> str:
        """The method that is scored at a site."""
        return self.without.get(site, self.method)


def make_choice(frame: pd.DataFrame, ranking: Ranking, method: str) -> MethodChoice:
    """What backs the choice of this method."""
    frame = observed(frame)
    rows = [each.row for each in ranking.usable or ranking.ranked]
    pairs = {row: paired(frame, method, row) for row in rows if row != method}
    scores = {row: scores_of(frame, row) for row in rows}
    ranked = frame[frame["row"].isin([each.row for each in ranking.ranked])]
    return MethodChoice(
        method,
        tuple(row for row, found in pairs.items() if found is None or not found.clear),
        _certainty(scores, method, ranking.metric),
        {site: _best(of_site, ranking.metric) for site, of_site in early_scores(ranked).items()},
    )


def early_scores(frame: pd.DataFrame) -> dict[str, dict[str, dict[Place, float]]]:
    """For each left-out site and row: scores of unfinished models at sites not yet learned."""
    early: dict[str, dict[str, dict[Place, float]]] = {}
    columns = frame[["row", "target", "order", "result"]]
    for row, target, order, result in columns.itertuples(index=False):
        for learned, site, score in unseen_scores(result):
            of_row = early.setdefault(target, {}).setdefault(row, {})
            of_row[result.title, site, "", f"{order}, stage {learned}", result.run.seed] = score
    return early


def _certainty(scores: Mapping[str, Scores], method: str, metric: Metric) -> float:
    """The share of resampled sets of sites for which the same method is chosen."""
    values = {row: by_unit(of_row, Unit.TARGET) for row, of_row in scores.items()}
    sites = sorted(values[method])
    draws = np.random.default_rng(derive(0, "audit", "choice"))
    hits = 0
    for _ in range(RESAMPLES):
        drawn = [sites[number] for number in draws.integers(0, len(sites), len(sites))]
        # A site that is drawn twice counts twice.
        resampled = {
            row: {("", str(number), "", "", 0): of[site] for number, site in enumerate(drawn)}
            for row, of in values.items()
        }
        hits += _best(resampled, metric) == method
    return hits / RESAMPLES


def _best(scores: Mapping[str, Scores], metric: Metric) -> str:
    best_first = ranks(scores, Unit.TARGET, metric)
    return choose({row: scores[row] for row in best_first}, Unit.TARGET, metric)
