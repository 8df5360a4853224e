"""The rows of covertype's areas before balancing, and scores on a target that is not balanced."""

from __future__ import annotations

from collections.abc import Sequence

# Rows by class in the official file (checked by a test where the file is at hand). The benchmark
# drops cottonwood; a model cannot predict it, so that its rows are always wrong.
ROWS = {
    "rawah": {"spruce-fir": 105_717, "lodgepole-pine": 146_197, "aspen": 3_781, "krummholz": 5_101},
    "cache-la-poudre": {
        "lodgepole-pine": 3_026,
        "ponderosa-pine": 21_454,
        "cottonwood": 2_747,
        "douglas-fir": 9_741,
    },
}


def score_as_it_is(
    area: str, classes: Sequence[str], confusion: Sequence[Sequence[int]]
) -> float | None:
    """The accuracy if the target had all rows of its area: recalls weighted by class size.

    confusion: rows are true classes, columns are predicted ones, on the balanced target.
    """
    counts = ROWS.get(area)
    if counts is None:
        return None
    recalls = {
        name: row[index] / sum(row)
        for index, (name, row) in enumerate(zip(classes, confusion, strict=True))
        if sum(row)
    }
    right = sum(count * recalls.get(name, 0.0) for name, count in counts.items())
    return right / sum(counts.values())
