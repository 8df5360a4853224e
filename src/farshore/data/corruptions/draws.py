"""Random numbers per image, so that a corrupted image does not depend on its batch."""

from collections.abc import Sequence

import numpy as np


class Draws:
    """One counter-based generator per image, seeded by the corruption and the image's number."""

    def __init__(self, seed: int, numbers: Sequence[int] | np.ndarray) -> None:
        counters = [[0, 0, 0, int(number)] for number in numbers]
        made = (np.random.Philox(key=seed, counter=counter) for counter in counters)
        self.rngs = list(map(np.random.Generator, made))

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
        pairs = zip(self.rngs, np.broadcast_to(np.asarray(high), len(self.rngs)), strict=True)
        return np.stack([np.asarray(rng.integers(low, top, shape)) for rng, top in pairs])
