"""Blur: gaussian, glass, defocus, motion, zoom. Images are floats in [0, 1], [n, 3, size, size]."""

from __future__ import annotations

import numpy as np

from .draws import Draws
from .sampling import correlate, gaussian, line_blur, zoomed

REACH = 8  # the disk of defocus_blur is drawn on a grid of 17 x 17


def gaussian_blur(images: np.ndarray, sigma: float, draws: Draws) -> np.ndarray:
    """A Gaussian filter on each channel."""
    return gaussian(images, sigma)


def glass_blur(images: np.ndarray, constants: tuple[float, int, int], draws: Draws) -> np.ndarray:
    """Blur, move pixels about from the far corner down, blur again.

    Each pixel takes the value of a neighbour within `shift`. The published generator means to swap
    the two, but both of its views show the same memory, so the neighbour keeps its value: a copy,
    which is what is done here.
    """
    sigma, shift, rounds = constants
    size = images.shape[-1]
    moved = np.floor(gaussian(images, sigma) * 255) / 255
    walk = range(size - shift, shift, -1)
    steps = draws.whole(-shift, shift, rounds, len(walk), len(walk), 2)
    number = np.arange(len(images))
    for turn in range(rounds):
        for i, row in enumerate(walk):
            for j, column in enumerate(walk):
                right, down = steps[:, turn, i, j, 0], steps[:, turn, i, j, 1]
                # Offsets end at shift - 1, so the walk's first row and column, size - shift, stay
                # inside the image.
                moved[:, :, row, column] = moved[number, :, row + down, column + right]
    return gaussian(moved, sigma)


def defocus_blur(images: np.ndarray, constants: tuple[float, float], draws: Draws) -> np.ndarray:
    """Convolution with a disk whose edge is smoothed by a 3x3 Gaussian."""
    return correlate(images, disk(*constants))


def disk(radius: float, sigma: float) -> np.ndarray:
    """A normalised disk on 17 x 17 points, smoothed by a 3x3 Gaussian of this sigma."""
    grid = np.arange(-REACH, REACH + 1)
    drawn = (grid[:, None] ** 2 + grid[None, :] ** 2 <= radius**2).astype(float)
    side = np.exp(-1 / (2 * sigma**2))
    line = np.array([side, 1.0, side]) / (1 + 2 * side)
    return correlate(drawn / drawn.sum(), np.outer(line, line))


def motion_blur(images: np.ndarray, constants: tuple[float, float], draws: Draws) -> np.ndarray:
    """A one-sided line blur at an angle uniform in [-45, 45] degrees."""
    return line_blur(images, *constants, draws.uniform(-45, 45))


def zoom_blur(images: np.ndarray, largest: float, draws: Draws) -> np.ndarray:
    """The mean of the image and its zooms by 1.00, 1.01, ... up to the largest."""
    total = images.copy()
    factors = np.arange(100, round(100 * largest) + 1) / 100
    for factor in factors:
        total += zoomed(images, float(factor))
    return total / (len(factors) + 1)
