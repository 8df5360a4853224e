"""Transfer measures: pure functions of an accuracy matrix.

R[i][j] is the score on domain j after learning domain i. Both indices follow the order of training.
R is square and includes domains that are not learned yet (j > i).
"""

from __future__ import annotations

from collections.abc import Sequence

Matrix = Sequence[Sequence[float]]


def average(matrix: Matrix) -> float:
    """Mean of the last row: the final model's score over all sources."""
    return sum(matrix[-1]) / len(matrix[-1])


def backward_transfer(matrix: Matrix) -> float | None:
    """BWT = 1/(k-1) Σ_{i<k} (R[k][i] - R[i][i]) (Lopez-Paz and Ranzato, 2017, Eq. 3).

    Negative values mean forgetting. None for one domain.
    """
    last = len(matrix) - 1
    if last < 1:
        return None
    return sum(matrix[last][i] - matrix[i][i] for i in range(last)) / last


def forgetting(matrix: Matrix) -> float | None:
    """1/(k-1) Σ_{i<k} max_{l<k} (R[l][i] - R[k][i]) (Chaudhry et al., 2018).

    None for one domain.
    """
    last = len(matrix) - 1
    if last < 1:
        return None
    return (
        sum(max(matrix[row][i] for row in range(i, last)) - matrix[last][i] for i in range(last))
        / last
    )


# The paper's three options of reporting source performance, as (split for selecting a run, split
# to report).
SOURCE_OPTIONS = {
    1: ("validation", "validation"),
    2: ("validation", "train"),
    3: ("train", "validation"),
}


def source_performance(matrices: dict[str, Matrix], option: int = 2) -> float:
    """Mean source score of the final model, on the split that the option reports.

    The paper uses option 2.
    """
    return average(matrices[SOURCE_OPTIONS[option][1]])
