"""How far a row is from its nearest neighbour among the rows that a model keeps of its sites.

Distances are Euclidean, over the inputs that count for the predictions, each divided by its
standard deviation. Their unit is the distance that 95% of the kept rows have to their own nearest
neighbour. A row between two groups is far from both, even where the mean of all rows is near.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from .familiarity import USUAL

# The search looks at no more rows of a site.
MOST_ROWS = 500


@dataclass(frozen=True)
class Neighbours:
    """Kept rows of each site, scaled, and the usual distance between neighbours."""

    rows: dict[str, np.ndarray]
    relevant: np.ndarray
    scale: np.ndarray
    unit: float

    @classmethod
    def of(cls, kept: Mapping[str, np.ndarray], relevant: np.ndarray) -> Neighbours | None:
        """From the kept rows of each site; None if they are too few."""
        chosen = {name: each[:MOST_ROWS, relevant] for name, each in kept.items()}
        together = np.concatenate(list(chosen.values())) if chosen else np.zeros((0, 1))
        if len(together) < 2 / (1 - USUAL):
            return None
        scale = np.maximum(together.std(axis=0), 1e-6)
        distances = _nearest(together / scale, together / scale, exclude_self=True)
        unit = max(float(np.quantile(distances, USUAL)), 1e-6)
        rows = {name: each / scale for name, each in chosen.items()}
        return cls(rows, relevant, scale, unit)

    def strangeness(self, inputs: np.ndarray) -> np.ndarray:
        """The distance of each row from all kept rows, in units of the usual one."""
        everything = np.concatenate(list(self.rows.values()))
        scaled = inputs[:, self.relevant] / self.scale
        return _nearest(scaled, everything) / self.unit

    def between(self) -> list[float]:
        """Per known site: the share of its rows that would be strange to the other sites alone."""
        shares = []
        for name, own in self.rows.items() if len(self.rows) > 1 else ():
            others = np.concatenate([each for other, each in self.rows.items() if other != name])
            shares.append(float((_nearest(own, others) > self.unit).mean()))
        return shares


def _nearest(rows: np.ndarray, kept: np.ndarray, *, exclude_self: bool = False) -> np.ndarray:
    from sklearn.neighbors import NearestNeighbors

    search = NearestNeighbors(n_neighbors=1).fit(kept)
    distances, _ = search.kneighbors(None if exclude_self else rows)
    nearest: np.ndarray = distances[:, 0]
    return nearest
