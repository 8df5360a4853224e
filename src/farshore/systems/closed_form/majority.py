"""Majority: the most frequent class, the score that any learner must beat."""

from typing import ClassVar

from ...settings import MethodSettings, setting
from .entry import ClosedForm
from .head import Head
from .sums import DomainSums, Level

UNUSED = "has no influence"


class UnusedSettings(MethodSettings):
    """Those of every method, which benchmarks set for all; none is used."""

    learning_rate: float = setting(1e-3, gt=0, help=UNUSED)
    weight_decay: float = setting(0.0, ge=0, help=UNUSED)
    batch_size: int = setting(64, ge=1, le=2**20, help=UNUSED)


class Majority(ClosedForm):
    """Predict the most frequent class of all domains so far, or the mean label, for any row.

    Equation: h_c(x) = log(n_c / n), with the number n_c of rows of class c in all domains; for
    numbers h(x) = Σ y / n.
    Paper: none; the usual reference in tables of scores.

    It is not ranked: a method that does not beat it has learned nothing that helps at the target.
    Each domain keeps the counts of its classes, so forgetting one is exact.
    """

    name = "majority"
    needs_classes = False
    reference = "the most frequent class"
    kind = "reference"
    weighs_classes = False
    Settings: ClassVar[type[MethodSettings]] = UnusedSettings
    settings: UnusedSettings
    level: ClassVar[Level] = "counts"

    def fit(self, domains: DomainSums) -> Head:
        """The logarithm of each class's share, or the mean label."""
        total = domains.total()
        bias = self.task.guess(total.counts / total.rows)
        return Head(total.by_class[:, : len(bias)], bias)
