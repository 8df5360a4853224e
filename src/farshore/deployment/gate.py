"""The gate of `learn`: whether a model that has learned one more site may replace the old one.

Sites that are known must keep their score on held-out rows, and the new site's own held-out rows
must show that its labels belong to its inputs. Both allow for chance: few rows say little.
"""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import torch
from scipy import stats

from ..tasks.metrics import METRICS, in_unit
from ..tasks.scores import auroc
from ..tasks.task import Task
from .held_out import Outputs
from .unlike import chance_error

# Without --max-drop, sites with fewer held-out rows are not judged.
FEWEST_ROWS = 20
# The probability of refusing a model although no past site lost more than is allowed.
RISK = 0.05
# The probability of calling labels unrelated to the inputs although they are as related as at the
# known sites.
LABEL_RISK = 0.01
RESAMPLES = 400
# A forest is fitted to at most this many rows.
FOREST_ROWS = 5000
# With fewer rows outside the most frequent class, nothing can be said about the labels.
FEWEST_OTHERS = 10


@dataclass(frozen=True)
class Drop:
    """The score of a past site before and after, and the loss that is certain."""

    site: str
    before: float
    after: float
    certain: float


def measure_drops(
    task: Task, metric: str, before: Mapping[str, Outputs], after: Mapping[str, Outputs]
) -> list[Drop]:
    """What each past site has lost on the same held-out rows, the largest certain loss first.

    The certain loss is the loss minus what resampling the rows explains; with several sites, each
    is tested at a smaller risk, so that all together have the risk of one.
    """
    factor = float(stats.norm.ppf(1 - RISK / max(1, len(before))))
    drops = []
    sign = 1 if METRICS[metric].higher_is_better else -1

    def score(outputs: Outputs, rows: np.ndarray | slice = slice(None)) -> float:
        assert outputs.logits is not None
        assert outputs.labels is not None
        chosen = (torch.from_numpy(each[rows]) for each in (outputs.logits, outputs.labels))
        return task.score(metric, *chosen)

    for site, old in before.items():
        new = after[site]
        was, now = score(old), score(new)
        resampled = np.random.default_rng(0).integers(0, len(old), (RESAMPLES, len(old)))
        losses = [score(old, rows) - score(new, rows) for rows in resampled]
        drops.append(Drop(site, was, now, sign * (was - now) - factor * float(np.std(losses))))
    return sorted(drops, key=lambda drop: -drop.certain)


@dataclass(frozen=True)
class Agreement:
    """How well scores rank the rows of each class above the others: the area under the ROC curve.

    Unlike an accuracy, it does not depend on how frequent the classes are. error: its standard
    deviation with shuffled labels.
    """

    area: float
    error: float
    rows: int
    of: str = "area under the ROC curve"

    @property
    def p_value(self) -> float:
        """How probable such an area is with shuffled labels, from the normal distribution."""
        return float(stats.norm.sf((self.area - 0.5) / self.error))

    @property
    def highest(self) -> float:
        """The upper end of a one-sided interval."""
        return self.area + float(stats.norm.ppf(1 - LABEL_RISK)) * self.error


def agreement_of_numbers(outputs: np.ndarray, labels: np.ndarray) -> Agreement | None:
    """(1 + Spearman's ρ) / 2 of predictions and labels [n, K], the mean over the labels.

    Like an area, it is 1/2 for unrelated ones; its standard deviation then is 1 / (2 √(n - 1)).
    """
    if len(labels) < FEWEST_OTHERS:
        return None
    ranks = [stats.rankdata(each, axis=0) for each in (outputs, labels)]
    with np.errstate(invalid="ignore"):  # predictions that are all the same
        found = [np.corrcoef(*pair)[0, 1] for pair in zip(*(each.T for each in ranks), strict=True)]
    area = (1 + float(np.nan_to_num(np.mean(found)))) / 2
    error = 0.5 / float(np.sqrt(len(labels) - 1))
    return Agreement(area, error, len(labels), "half of 1 + the rank correlation")


def agreement(scores: np.ndarray, labels: np.ndarray) -> Agreement | None:
    """The agreement of logits or votes [n, C] with labels; None if nearly all labels are equal."""
    if not _tells(labels):
        return None
    area = auroc(torch.from_numpy(np.asarray(scores, dtype=float)), torch.from_numpy(labels))
    counts = np.bincount(labels)
    # Mann and Whitney (1947); the mean over classes, whose areas vary together, is no smaller.
    errors = [chance_error(each, len(labels) - each) for each in counts if 0 < each < len(labels)]
    return Agreement(area, float(np.mean(errors)), len(labels)) if area is not None else None


def looks_shuffled(new: Agreement, known: float) -> bool:
    """Whether the new site's labels have nothing to do with its inputs, unlike the known sites'.

    It takes both: no agreement beyond chance, and so many rows that an agreement like the known
    sites' `known` would have shown.
    """
    return new.p_value > RISK and new.highest < known


def quick_agreement(
    task: Task, inputs: np.ndarray, labels: np.ndarray, seed: int
) -> Agreement | None:
    """The same of a forest's out-of-bag predictions: at small sites all rows count.

    At larger ones, a sample does.
    """
    if len(labels) > FOREST_ROWS:
        chosen = np.random.default_rng(seed).choice(len(labels), FOREST_ROWS, replace=False)
        inputs, labels = inputs[chosen], labels[chosen]
    return task.either(_by_votes, _by_numbers)(inputs, labels, seed)


def _by_numbers(inputs: np.ndarray, labels: np.ndarray, seed: int) -> Agreement | None:
    from sklearn.ensemble import RandomForestRegressor

    forest = RandomForestRegressor(100, min_samples_leaf=2, oob_score=True, random_state=seed)
    forest.fit(inputs, labels if labels.shape[1] > 1 else labels[:, 0])
    return agreement_of_numbers(forest.oob_prediction_.reshape(labels.shape), labels)


def _by_votes(inputs: np.ndarray, labels: np.ndarray, seed: int) -> Agreement | None:
    from sklearn.ensemble import RandomForestClassifier

    if not _tells(labels):
        return None
    forest = RandomForestClassifier(100, min_samples_leaf=2, oob_score=True, random_state=seed)
    forest.fit(inputs, labels)
    votes = np.zeros((len(labels), int(labels.max()) + 1))
    votes[:, forest.classes_] = np.nan_to_num(forest.oob_decision_function_, nan=0.0)
    return agreement(np.log(votes + 1e-3), labels)


def is_unclear(new: Agreement | None, known: float) -> bool:
    """Whether the held-out rows do not decide between related and unrelated labels."""
    return new is None or (new.p_value > RISK and not looks_shuffled(new, known))


@dataclass(frozen=True)
class Gate:
    """What a model that has learned a site must fulfil to be kept. Each check returns a reason."""

    max_drop: float | None
    min_score: float | None

    def allowed(self, task: Task) -> float:
        """How much a past site may lose."""
        return task.usual_drop if self.max_drop is None else self.max_drop

    def check_past(
        self,
        task: Task,
        metric: str,
        before: Mapping[str, Outputs],
        after: Mapping[str, Outputs],
    ) -> str | None:
        """No past site may lose more than is allowed on its held-out rows."""
        fewest = FEWEST_ROWS if self.max_drop is None else 1
        measurable = {
            name: each
            for name, each in before.items()
            if each.logits is not None and len(each) >= fewest
        }
        drops, allowed = measure_drops(task, metric, measurable, after), self.allowed(task)
        if not drops or drops[0].certain <= allowed:
            return None
        fell = "fell" if METRICS[metric].higher_is_better else "rose"
        worst = drops[0]
        was, now = (_written(task, metric, score) for score in (worst.before, worst.after))
        return (
            f"on the held-out rows of {worst.site!r} the {metric} {fell} from "
            f"{was} to {now}, by more than --max-drop {allowed:.4g} and "
            "what chance explains (more --memory, fewer --steps or another method may help)"
        )

    def check_score(self, task: Task, metric: str, score: float | None) -> str | None:
        """The new site's validation rows must reach the score that was asked for."""
        if self.min_score is None:
            return None
        if score is None:
            return "it has no validation rows to measure --min-score on"
        if not METRICS[metric].better(self.min_score, score):
            return None
        side = "below" if METRICS[metric].higher_is_better else "above"
        found = _written(task, metric, score)
        return f"its validation {metric} is {found}, {side} --min-score {self.min_score:g}"

    def check_agreement(self, new: Agreement | None, known: float) -> str | None:
        """The labels must have something to do with the inputs, as at the known sites."""
        if self.min_score is not None or new is None or not looks_shuffled(new, known):
            return None
        return (
            f"its labels seem to have nothing to do with its inputs: on {new.rows} rows, "
            "predictions for rows that were not trained on agree with them no better than with "
            f"shuffled ones ({new.of} {new.area:.2f}, p {new.p_value:.2f}; at "
            f"known sites {known:.2f}); check the label column, or set your own bar by --min-score"
        )


def _written(task: Task, metric: str, score: float) -> str:
    """A share as it is given to --max-drop and --min-score; otherwise a score in its unit."""
    known = in_unit(METRICS[metric], task.score_unit)
    return f"{score:.3f}" if known.scale > 1 else known.text(score) + known.unit


def _tells(labels: np.ndarray) -> bool:
    """Whether enough rows are outside the most frequent class."""
    return len(labels) - int(np.bincount(labels).max()) >= FEWEST_OTHERS
