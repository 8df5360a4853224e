"""What is computed once for some texts, and kept by content."""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np

# Returns the array of this shape that a name stands for, from the cache or computed.
Once: TypeAlias = Callable[[str, tuple[int, ...], Callable[[], np.ndarray]], np.ndarray]


def directly(what: str, shape: tuple[int, ...], compute: Callable[[], np.ndarray]) -> np.ndarray:
    """Compute it: nothing is kept."""
    return compute()
