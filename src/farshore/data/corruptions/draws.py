"""Random numbers for each image of its own, so that a corrupted image is the same in whatever
batch it stands.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class Draws:
    """One counter-based generator an image, set by the corruption's seed and the image's number
    alone.
    """

    def __init__(self, seed: int, numbers: Sequence[int] | np.ndarray) -> None:
        self.rngs = [
            np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, 0, int(number)]))
            for number in numbers
        ]

    def normal(self, *shape: int) -> np.ndarray:
        """Standard normal [n, *shape]."""
        return np.stack([rng.standard_normal(shape) for rng in self.rngs])

    def uniform(self, low: float, high: float, *shape: int) -> np.ndarray:
        """Uniform on [low, high), [n, *shape]."""
        return np.stack([np.asarray(rng.uniform(low, high, shape)) for rng in self.rngs])

    def poisson(self, means: np.ndarray) -> np.ndarray:
        """Poisson with these means [n, ...]."""
        return np.stack([rng.poisson(mean) for rng, mean in zip(self.rngs, means, strict=True)])

    def whole(self, low: int, high: int | np.ndarray, *shape: int) -> np.ndarray:
        """Whole numbers from low to high - 1, [n, *shape]; `high` may differ from image to
        image.
        """
        highs = np.broadcast_to(np.asarray(high), len(self.rngs))
        return np.stack(
            [
                np.asarray(rng.integers(low, top, shape))
                for rng, top in zip(self.rngs, highs, strict=True)
            ]
        )
