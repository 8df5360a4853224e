"""Images for tests of corruptions, and photographs for tests of frost without the real ones."""

from __future__ import annotations

import numpy as np

from farshore.data.corruptions.corrupt import FROST


def pictures(size: int, rows: int = 24) -> np.ndarray:
    """Coloured shapes on a shaded background: neither flat nor noise."""
    rng = np.random.default_rng(7)
    row, column = np.mgrid[:size, :size] / size
    images = np.empty((rows, 3, size, size))
    for image in images:
        for channel in image:
            channel[:] = 60 + 80 * (rng.uniform() * row + rng.uniform() * column)
        middle = rng.uniform(0.3, 0.7, 2)
        inside = (row - middle[0]) ** 2 + (column - middle[1]) ** 2 < rng.uniform(0.02, 0.08)
        image[:, inside] = rng.uniform(0, 255, 3)[:, None]
        top, left = rng.integers(0, size // 2, 2)
        image[:, top : top + size // 3, left : left + size // 5] = rng.uniform(0, 255, 3)[
            :, None, None
        ]
        image += rng.normal(0, 12, (3, size, size))
    return images.round().clip(0, 255).astype(np.uint8)


def photographs(size: int) -> list[np.ndarray]:
    """Images of bright noise, twice as high and three times as wide as `size`."""
    rng = np.random.default_rng(size)
    return [rng.uniform(0.4, 1, (3, 2 * size, 3 * size)) for _ in FROST]
