"""Random numbers per image, so that a corrupted image does not depend on its batch."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np


class Draws:
    """One counter-based generator per image, seeded by the corruption and the image's number."""

    def __init__(self, seed: int, numbers: Sequence[int] | np.ndarray) -> None:
        self.rngs = [
            np.random.Generator(np.random.Philox(key=seed, counter=[0, 0, 0, int(number)]))
            for number in numbers
        ]

    def normal(self, *shape: int) -> np.ndarray:
        """Draw standard normal numbers [n, *shape]."""
        return np.stack([rng.standard_normal(shape) for rng in self.rngs])

    def uniform(self, low: float, high: float, *shape: int) -> np.ndarray:
        """Draw uniform numbers on [low, high), [n, *shape]."""
        return np.stack([np.asarray(rng.uniform(low, high, shape)) for rng in self.rngs])

    def poisson(self, means: np.ndarray) -> np.ndarray:
        """Draw Poisson numbers with these means [n, ...]."""
        return np.stack([rng.poisson(mean) for rng, mean in zip(self.rngs, means, strict=True)])

    def whole(self, low: int, high: int | np.ndarray, *shape: int) -> np.ndarray:
        """Draw integers from low to high - 1, [n, *shape]; `high` may differ between images."""
        highs = np.broadcast_to(np.asarray(high), len(self.rngs))
        return np.stack(
            [
                np.asarray(rng.integers(low, top, shape))
                for rng, top in zip(self.rngs, highs, strict=True)
            ]
        )
