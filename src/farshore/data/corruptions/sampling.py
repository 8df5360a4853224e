"""Filters and resampling on batches of images [n, channels, height, width].

Every step adds the same numbers in the same order for each pixel, whatever the batch. A library's
matrix product or convolution may add in a different order for a different batch size, and a last
bit can decide which byte a pixel is truncated to.
"""

import math
from typing import Literal

import numpy as np
from scipy import ndimage


def gaussian(
    images: np.ndarray, sigma: float, *, mode: str = "nearest", truncate: float = 4.0
) -> np.ndarray:
    """Apply a Gaussian filter over the last two axes, cut at `truncate` standard deviations."""
    if int(truncate * sigma + 0.5) == 0:
        return images
    for axis in (-2, -1):
        images = ndimage.gaussian_filter1d(images, sigma, axis=axis, mode=mode, truncate=truncate)
    return images


def correlate(images: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """Correlate the last two axes with a square kernel; the border mirrors about the edge pixel."""
    reach = len(kernel) // 2
    size = images.shape[-2:]
    padded = np.pad(images, [(0, 0)] * (images.ndim - 2) + [(reach, reach)] * 2, mode="reflect")
    total = np.zeros_like(images)
    for row, column in np.argwhere(kernel != 0):
        total += kernel[row, column] * padded[..., row : row + size[0], column : column + size[1]]
    return total


def interpolate(images: np.ndarray, positions: np.ndarray, axis: int) -> np.ndarray:
    """Interpolate linearly along one axis at these positions; the border is repeated."""
    positions = positions.clip(0, images.shape[axis] - 1)
    low = np.floor(positions).astype(int)
    high = np.minimum(low + 1, images.shape[axis] - 1)
    shape = [-1 if a == axis % images.ndim else 1 for a in range(images.ndim)]
    share = (positions - low).reshape(shape)
    return images.take(low, axis) * (1 - share) + images.take(high, axis) * share


def zoomed(images: np.ndarray, factor: float) -> np.ndarray:
    """Enlarge the centre of square images by `factor` (bilinear, corners aligned, same size)."""
    size = images.shape[-1]
    cropped = math.ceil(size / factor)
    top = (size - cropped) // 2
    enlarged = round(cropped * factor)
    trim = (enlarged - size) // 2
    positions = np.arange(trim, trim + size) * ((cropped - 1) / max(1, enlarged - 1)) + top
    return interpolate(interpolate(images, positions, -2), positions, -1)


def bilinear(
    images: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    *,
    border: Literal["reflect", "mirror"],
) -> np.ndarray:
    """Sample each image at its own positions [n, height, width].

    The border `reflect` repeats the edge pixel, `mirror` does not.
    """
    height, width = images.shape[-2:]
    row, column = np.floor(rows).astype(int), np.floor(columns).astype(int)
    down, right = (rows - row)[:, None], (columns - column)[:, None]
    number = np.arange(len(images))[:, None, None]

    def at(r: np.ndarray, c: np.ndarray) -> np.ndarray:
        taken = images[number, :, _inside(r, height, border), _inside(c, width, border)]
        return np.moveaxis(taken, -1, 1)

    upper = at(row, column) * (1 - right) + at(row, column + 1) * right
    lower = at(row + 1, column) * (1 - right) + at(row + 1, column + 1) * right
    return upper * (1 - down) + lower * down


def _inside(positions: np.ndarray, size: int, border: str) -> np.ndarray:
    if border == "mirror":
        positions = np.abs(positions) % (2 * size - 2)
        return np.where(positions < size, positions, 2 * size - 2 - positions)
    positions = positions % (2 * size)
    return np.where(positions < size, positions, 2 * size - 1 - positions)


def line_blur(images: np.ndarray, radius: float, sigma: float, degrees: np.ndarray) -> np.ndarray:
    """Average along a line that starts at each pixel, with one-sided Gaussian weights.

    Each image has its own direction. As in ImageMagick's motion blur, there are 2 x radius + 1 taps
    at whole pixels, and the border is repeated.
    """
    height, width = images.shape[-2:]
    taps = np.arange(2 * math.ceil(radius) + 1)
    weights = np.exp(-(taps**2) / (2 * sigma**2))
    weights /= weights.sum()
    number = np.arange(len(images))[:, None, None]
    angle = np.deg2rad(degrees)[:, None, None]
    row, column = np.arange(height)[None, :, None], np.arange(width)[None, None, :]
    total = np.zeros_like(images)
    for tap, weight in zip(taps, weights, strict=True):
        down = (row + np.ceil(tap * np.sin(angle) - 0.5).astype(int)).clip(0, height - 1)
        right = (column + np.ceil(tap * np.cos(angle) - 0.5).astype(int)).clip(0, width - 1)
        total += weight * np.moveaxis(images[number, :, down, right], -1, 1)
    return total
