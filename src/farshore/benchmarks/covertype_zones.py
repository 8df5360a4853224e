"""covertype-zones: forest cover in seven climatic zones of Colorado, at most 1,000 rows a class."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..base.randomness import generator
from .covertype import (
    AREAS,
    CLASS_NUMBERS,
    MEASURED,
    Covertype,
    draw_at_most,
    read_covertype,
)

# The US Forest Service's ecological land type of each of the 40 soil types, as the data set's
# description (covtype.info) lists them. The first digit is the climatic zone.
LAND_TYPES = (
    *(2702, 2703, 2704, 2705, 2706, 2717, 3501, 3502, 4201, 4703),
    *(4704, 4744, 4758, 5101, 5151, 6101, 6102, 6731, 7101, 7102),
    *(7103, 7201, 7202, 7700, 7701, 7702, 7709, 7710, 7745, 7746),
    *(7755, 7756, 7757, 7790, 8703, 8707, 8708, 8771, 8772, 8776),
)
ZONES = {
    2: "lower-montane",
    3: "montane-dry",
    4: "montane",
    5: "montane-dry-and-montane",
    6: "montane-and-subalpine",
    7: "subalpine",
    8: "alpine",
}
MOST_ROWS = 1000


class CovertypeZones(Covertype):
    """UCI Covertype by climatic zone: 14 features, 6 classes, seven zones of 284 to 5,113 rows.

    A soil type belongs to one climatic zone: the first digit of its ecological land type. The soil
    types would name the domain, so they are not inputs; the ten measurements and the four
    wilderness areas are. Of each class of a zone at most 1,000 rows are drawn by the scenario seed,
    because the subalpine zone has 70% of all rows. All zones with rows are kept: none has a single
    class. The smallest (montane dry, 284 rows of two classes, and montane dry and montane, 447 of
    two) are small sites as practitioners have them; no soil type is in zone 1. As in covertype,
    cover type 4 is dropped.
    """

    name = "covertype-zones"
    summary = "22,279 forest patches in seven climatic zones, 14 features, 6 cover types"
    features = (*MEASURED, *AREAS)
    domains = tuple(ZONES.values())
    default_target = "alpine"
    set_name = "covertype-zones"

    def build_domains(self, raw: Path, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """Draw the rows of each zone; they stay in the order of the official file."""
        table, cover = read_covertype(raw)
        zone = np.array(LAND_TYPES)[table[:, 14:].argmax(axis=1)] // 1000
        number = CLASS_NUMBERS[cover]
        for digit, name in ZONES.items():
            draws = generator(seed, self.set_name, "rows", digit)
            rows = np.flatnonzero((zone == digit) & (number >= 0))
            drawn = rows[draw_at_most(number[rows], MOST_ROWS, draws)]
            yield name, table[drawn, :14], number[drawn].astype(np.uint8)
