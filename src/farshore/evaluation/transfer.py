"""Transfer measures: pure functions of an accuracy matrix R[i][j], the score on domain j after
learning domain i.

Both indices follow the order of training. R is square, and R[i][j] is there for j > i too (domains
not yet learned).
"""

from __future__ import annotations

from collections.abc import Sequence

Matrix = Sequence[Sequence[float]]


def average(matrix: Matrix) -> float:
    """Mean of the last row: how the final model stands on all sources."""
    return sum(matrix[-1]) / len(matrix[-1])


def backward_transfer(matrix: Matrix) -> float | None:
    """BWT = 1/(k-1) Σ_{i<k} (R[k][i] - R[i][i]) (Lopez-Paz and Ranzato, 2017, Eq. 3); negative
    means forgetting.

    Not defined for one domain.
    """
    last = len(matrix) - 1
    if last < 1:
        return None
    return sum(matrix[last][i] - matrix[i][i] for i in range(last)) / last


def forgetting(matrix: Matrix) -> float | None:
    """1/(k-1) Σ_{i<k} max_{l<k} (R[l][i] - R[k][i]) (Chaudhry et al., 2018); not defined for one
    domain.
    """
    last = len(matrix) - 1
    if last < 1:
        return None
    return (
        sum(max(matrix[row][i] for row in range(i, last)) - matrix[last][i] for i in range(last))
        / last
    )


# The paper's three ways to report source performance: (split that selects a run, split that is
# reported).
SOURCE_OPTIONS = {
    1: ("validation", "validation"),
    2: ("validation", "train"),
    3: ("train", "validation"),
}


def source_performance(matrices: dict[str, Matrix], option: int = 2) -> float:
    """Mean source score at the end of the sequence, on the split that the option reports. The
    paper uses option 2.
    """
    return average(matrices[SOURCE_OPTIONS[option][1]])
