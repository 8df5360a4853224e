"""Running estimators (Welford; Chan, Golub and LeVeque): AGGREGATE in the paper's Eq. 3.

They process a stream in parts of any size and give the same result as one pass over all of it.
Sums are float64.
"""

import torch
from torch import Tensor

from .invariance import Statistic


class RunningMean:
    """Mean of statistics, each weighted by its number of rows."""

    def __init__(self) -> None:
        self.rows = 0
        self.means: Statistic = {}

    def add(self, statistics: Statistic, rows: int) -> None:
        """Add statistics [k, ...] of k parts of equal size with `rows` rows in total."""
        self.rows += rows
        for name, values in statistics.items():
            part = values.double().mean(dim=0)
            mean = self.means.setdefault(name, torch.zeros_like(part))
            mean += (part - mean) * (rows / self.rows)

    def result(self) -> Statistic:
        """The mean, [...], in single precision."""
        return {name: mean.float() for name, mean in self.means.items()}


class RunningMoments:
    """Mean and sum of squared deviations of vectors: per entry, or all products (`outer`)."""

    def __init__(self, *, outer: bool) -> None:
        self.outer = outer
        self.rows = 0
        self.mean: Tensor | None = None
        self.deviations: Tensor | None = None

    def merge(self, rows: int, mean: Tensor, deviations: Tensor) -> None:
        """Add a part, given its row count, mean and summed squared deviations from that mean."""
        if self.mean is None or self.deviations is None:
            self.rows, self.mean, self.deviations = rows, mean.double(), deviations.double()
            return
        total = self.rows + rows
        shift = mean.double() - self.mean
        cross = torch.outer(shift, shift) if self.outer else shift.square()
        self.deviations = self.deviations + deviations.double() + cross * (self.rows * rows / total)
        self.mean = self.mean + shift * (rows / total)
        self.rows = total

    def covariance(self, *, unbiased: bool) -> Tensor:
        """Squared deviations divided by n - 1 or by n. One row gives 0."""
        assert self.deviations is not None
        return self.deviations / max(1, self.rows - unbiased)
