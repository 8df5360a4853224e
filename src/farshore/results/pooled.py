"""A method beside ordinary models that are fitted to all data at once, the references of a table.

A user will make this comparison. The references need the rows of all sources in one place; the
method saw one source at a time.
"""

from dataclasses import dataclass

import pandas as pd

from ..tasks.metrics import Metric
from .select import scored
from .summary import Difference, Ranking, paired
from .text import doubt, interval, score_text

GROUP = "references"
WORDS = {
    "joint-linear": "logistic regression",
    "joint-forest": "a random forest",
    "joint-trees": "boosted trees",
}
OF_NUMBERS = {"joint-linear": "linear regression"}


@dataclass(frozen=True)
class AllAtOnce:
    """A row, and the best of the references beside it.

    score: of the reference; difference: the reference minus the row, paired.
    kept: how many rows of past sources the row's method kept at most; None if that is unknown.
    words: what the reference is called.
    """

    row: str
    reference: str
    score: float
    difference: Difference
    kept: int | None
    words: str = ""

    @property
    def ahead(self) -> bool:
        """Whether the reference is better on average."""
        return self.difference.better

    def sentence(self, metric: Metric) -> str:
        """The comparison in one sentence, whichever side is ahead."""
        words = self.words or WORDS.get(self.reference, self.reference)
        side = "above" if metric.higher_is_better else "below"
        found = f"{interval(self.difference, metric)}{doubt(self.difference)}"
        score = score_text(metric, self.score)
        if self.ahead:
            return (
                f"{words[0].upper()}{words[1:]} trained on all data at once ({self.reference}) "
                f"scores {score} on the same unseen data, {side} {self.row}: {found}."
            )
        rows = f"{self.kept:,} rows" if self.kept else "no rows"
        kept = f" and kept {rows}" if self.kept is not None else ""
        side = "ahead of" if self.difference.certain else "level with"
        return (
            f"{self.row}, which saw one source at a time{kept}, is {side} ordinary models trained "
            f"on all data at once: {self.reference}, the best of them, scores {score}, that minus "
            f"{self.row} is {found}."
        )


def beside(frame: pd.DataFrame, ranking: Ranking, row: str) -> AllAtOnce | None:
    """This row beside the best reference; None without one that has all its scores."""
    means = {
        each.row: each.estimate.mean
        for each in ranking.standings
        if each.group == GROUP and each.complete and each.estimate
    }
    if not means:
        return None
    sign = 1 if ranking.metric.higher_is_better else -1
    best = max(means, key=lambda name: sign * means[name])
    found = paired(frame, best, row)
    if found is None:
        return None
    runs = scored(frame)
    results = [result for result in runs[runs["row"] == row]["result"] if result is not None]
    kept = [getattr(result, "memory_items", None) for result in results]
    known = [number for number in kept if number is not None]
    words = (WORDS | OF_NUMBERS if ranking.metric.of_numbers else WORDS).get(best, best)
    return AllAtOnce(row, best, means[best], found, max(known) if known else None, words)
