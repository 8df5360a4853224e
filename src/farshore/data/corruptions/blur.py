"""Blur: gaussian, glass, defocus, motion, zoom. Images are floats in [0, 1], [n, 3, size, size]."""

import numpy as np

from .draws import Draws
from .sampling import correlate, gaussian, line_blur, zoomed

REACH = 8  # the disk of defocus_blur is drawn on a grid of 17 x 17


def gaussian_blur(images: np.ndarray, sigma: float, draws: Draws) -> np.ndarray:
    """Apply a Gaussian filter to each channel."""
    return gaussian(images, sigma)


def glass_blur(images: np.ndarray, constants: tuple[float, int, int], draws: Draws) -> np.ndarray:
    """Blur, shuffle pixels locally starting from the far corner, and blur again.

    Each pixel takes the value of a neighbour within `shift`. The published generator intends to
    swap the two, but both of its views share memory, so the neighbour keeps its value. This
    implementation copies in the same way.
    """
    sigma, shift, rounds = constants
    size = images.shape[-1]
    shuffled = np.floor(gaussian(images, sigma) * 255) / 255
    positions = range(size - shift, shift, -1)
    offsets = draws.whole(-shift, shift, rounds, len(positions), len(positions), 2)
    number = np.arange(len(images))
    for round_number in range(rounds):
        for i, row in enumerate(positions):
            for j, column in enumerate(positions):
                right, down = offsets[:, round_number, i, j, 0], offsets[:, round_number, i, j, 1]
                # Offsets end at shift - 1, so the first row and column, size - shift, stay inside
                # the image.
                shuffled[:, :, row, column] = shuffled[number, :, row + down, column + right]
    return gaussian(shuffled, sigma)


def defocus_blur(images: np.ndarray, constants: tuple[float, float], draws: Draws) -> np.ndarray:
    """Convolve with a disk that has an edge smoothed by a 3x3 Gaussian."""
    return correlate(images, disk(*constants))


def disk(radius: float, sigma: float) -> np.ndarray:
    """Return a normalised disk on 17 x 17 points, smoothed by a 3x3 Gaussian of this sigma."""
    grid = np.arange(-REACH, REACH + 1)
    drawn = (grid[:, None] ** 2 + grid[None, :] ** 2 <= radius**2).astype(float)
    side = np.exp(-1 / (2 * sigma**2))
    line = np.array([side, 1.0, side]) / (1 + 2 * side)
    return correlate(drawn / drawn.sum(), np.outer(line, line))


def motion_blur(images: np.ndarray, constants: tuple[float, float], draws: Draws) -> np.ndarray:
    """Apply a one-sided line blur at an angle uniform in [-45, 45] degrees."""
    return line_blur(images, *constants, draws.uniform(-45, 45))


def zoom_blur(images: np.ndarray, largest: float, draws: Draws) -> np.ndarray:
    """Average the image and its zooms by 1.00, 1.01, ... up to the largest."""
    total = images.copy()
    factors = np.arange(100, round(100 * largest) + 1) / 100
    for factor in factors:
        total += zoomed(images, float(factor))
    return total / (len(factors) + 1)
