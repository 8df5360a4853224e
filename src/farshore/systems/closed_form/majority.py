"""Majority: the most frequent class, the score that any learner must beat."""

from __future__ import annotations

from typing import ClassVar

from ...settings import MethodSettings, setting
from .entry import ClosedForm
from .head import Head
from .sums import DomainSums, Level

UNUSED = "has no influence"


class MajoritySettings(MethodSettings):
    """Those of every method, which benchmarks set for all; none is used."""

    learning_rate: float = setting(1e-3, gt=0, help=UNUSED)
    weight_decay: float = setting(0.0, ge=0, help=UNUSED)
    batch_size: int = setting(64, ge=1, le=2**20, help=UNUSED)


class Majority(ClosedForm):
    """Predict the most frequent class of all domains so far, without looking at the row.

    Equation: h_c(x) = log(n_c / n), with the number n_c of rows of class c in all domains.
    Paper: none; the usual reference in tables of scores.

    It is not ranked: a method that does not beat it has learned nothing that helps at the target.
    Each domain keeps the counts of its classes, so forgetting one is exact.
    """

    name = "majority"
    reference = "the most frequent class"
    kind = "reference"
    weighs_classes = False
    Settings: ClassVar[type[MethodSettings]] = MajoritySettings
    settings: MajoritySettings
    level: ClassVar[Level] = "counts"

    def fit(self, domains: DomainSums) -> Head:
        """The logarithm of each class's share."""
        total = domains.total()
        shares = total.counts / total.rows
        return Head(total.by_class, shares.clamp(min=1e-12).log())
