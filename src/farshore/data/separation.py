"""How well a classifier separates the rows of two domains: their distance.

A random forest is fitted to the rows of both. They are ranked by its out-of-bag votes, which come
only from trees that were not fitted to the row. The area under the ROC curve is the probability
that a row of the one domain ranks above a row of the other; 0.5 means that they are alike.
"""

import math
from itertools import product

import numpy as np
from scipy import stats

TREES = 100
# Images are averaged to a grid with this many cells per side.
GRID = 8
LARGEST_AREA = 0.999


def as_numbers(inputs: np.ndarray) -> np.ndarray:
    """Rows as vectors; images as a coarse grid of grey values."""
    rows: np.ndarray = inputs.astype(np.float32)
    if rows.ndim == 4:
        rows = rows.mean(axis=1)
        parts = [np.array_split(np.arange(side), min(GRID, side)) for side in rows.shape[1:]]
        pairs = product(*parts)
        cells = [rows[:, down][:, :, across].mean(axis=(1, 2)) for down, across in pairs]
        rows = np.stack(cells, axis=1)
    return rows.reshape(len(rows), -1)


def separation(own: np.ndarray, rest: np.ndarray, seed: int, trees: int = TREES) -> float:
    """The area under the ROC curve of out-of-bag votes."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.metrics import roc_auc_score

    if len(own) < 2:
        return 0.5
    forest = RandomForestClassifier(trees, min_samples_leaf=2, oob_score=True, random_state=seed)
    is_own = np.repeat([1, 0], [len(own), len(rest)])
    forest.fit(np.concatenate([own, rest]), is_own)
    votes = np.nan_to_num(forest.oob_decision_function_[:, 1], nan=0.5)
    return float(roc_auc_score(is_own, votes))


def deviations(area: float) -> float:
    """How many standard deviations apart two normal distributions with this area are."""
    return math.sqrt(2) * float(stats.norm.ppf(min(max(area, 0.5), LARGEST_AREA)))
