"""Ranks of methods over data sets: pure functions of a table of scores [methods, data sets]."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import rankdata

from ..errors import FarshoreError

Floats = NDArray[np.float64]
# Means of the same numbers differ in their last digits if they are summed in another order. Digits
# beyond these never decide a rank.
DECIMALS = 9


@dataclass(frozen=True)
class Ranks:
    """Ranks [methods, data sets] and three summaries of them.

    The best rank is 1; equal scores share the mean of their ranks.
    """

    by_dataset: Floats

    @property
    def arithmetic(self) -> Floats:
        """Mean rank of each method, on which the Friedman test is based."""
        return np.asarray(self.by_dataset.mean(axis=1))

    @property
    def geometric(self) -> Floats:
        """Geometric mean rank of each method: good ranks count more, bad ranks less."""
        return np.asarray(np.exp(np.log(self.by_dataset).mean(axis=1)))

    @property
    def median(self) -> Floats:
        """Median rank of each method: not affected by one bad data set."""
        return np.asarray(np.median(self.by_dataset, axis=1))


def rank_methods(scores: ArrayLike, *, higher_is_better: bool = True) -> Ranks:
    """Rank the methods on each data set.

    Every method needs a score on every data set: ranks among fewer methods are not comparable.
    """
    table = checked(scores)
    return Ranks(
        np.asarray(
            rankdata(-table if higher_is_better else table, method="average", axis=0),
            dtype=np.float64,
        )
    )


def checked(scores: ArrayLike) -> Floats:
    """The scores as a table of finite numbers, rounded to `DECIMALS`."""
    table: Floats = np.asarray(
        np.round(np.asarray(scores, dtype=np.float64), DECIMALS), dtype=np.float64
    )
    if table.ndim != 2 or 0 in table.shape:
        raise FarshoreError(
            f"scores of shape {table.shape} cannot be ranked: give one row per method and one "
            "column per data set"
        )
    if not np.isfinite(table).all():
        raise FarshoreError(
            "scores with missing or infinite numbers cannot be ranked: leave out methods without "
            "a score on every data set"
        )
    return table


def places(
    means: ArrayLike, errors: ArrayLike | None = None, *, higher_is_better: bool = True
) -> list[int | None]:
    """1, 2 and 3 for the best three means, None for the others.

    Of equal means, the one with the smaller error comes first, as in the paper's tables.
    """
    keys = np.round(np.asarray(means, dtype=np.float64), DECIMALS) * (-1 if higher_is_better else 1)
    spread = np.zeros_like(keys)
    if errors is not None:
        spread = np.nan_to_num(np.round(np.asarray(errors, dtype=np.float64), DECIMALS), nan=np.inf)
    pairs = list(zip(keys.tolist(), spread.tolist(), strict=True))
    ranks = [1 + sum(other < pair for other in pairs) for pair in pairs]
    return [rank if rank <= 3 else None for rank in ranks]
