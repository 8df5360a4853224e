"""Filters and resampling on batches of images [n, channels, height, width].

Every step works pixel by pixel with the same additions in the same order, whatever the batch: a
matrix product or a convolution of a library may add in another order for another batch size, and a
last bit decides how a pixel is cut to a byte.
"""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
from scipy import ndimage


def gaussian(
    images: np.ndarray, sigma: float, *, mode: str = "nearest", truncate: float = 4.0
) -> np.ndarray:
    """Gaussian filter over the last two axes; the kernel ends at `truncate` standard deviations."""
    if int(truncate * sigma + 0.5) == 0:
        return images
    for axis in (-2, -1):
        images = ndimage.gaussian_filter1d(images, sigma, axis=axis, mode=mode, truncate=truncate)
    return images


def correlate(images: np.ndarray, kernel: np.ndarray) -> np.ndarray:
    """A square kernel over the last two axes; the border is mirrored about the outermost pixel."""
    reach = len(kernel) // 2
    size = images.shape[-2:]
    padded = np.pad(images, [(0, 0)] * (images.ndim - 2) + [(reach, reach)] * 2, mode="reflect")
    found = np.zeros_like(images)
    for row, column in np.argwhere(kernel != 0):
        found += kernel[row, column] * padded[..., row : row + size[0], column : column + size[1]]
    return found


def interpolate(images: np.ndarray, places: np.ndarray, axis: int) -> np.ndarray:
    """Linear interpolation along one axis at these places, the same for all images; the border
    is repeated.
    """
    places = places.clip(0, images.shape[axis] - 1)
    low = np.floor(places).astype(int)
    high = np.minimum(low + 1, images.shape[axis] - 1)
    share = (places - low).reshape(
        [-1 if a == axis % images.ndim else 1 for a in range(images.ndim)]
    )
    found: np.ndarray = images.take(low, axis) * (1 - share) + images.take(high, axis) * share
    return found


def zoomed(images: np.ndarray, factor: float) -> np.ndarray:
    """The centre of square images enlarged by `factor` to the same size, bilinear, corner pixels
    on corner pixels.
    """
    size = images.shape[-1]
    cut = math.ceil(size / factor)
    top = (size - cut) // 2
    wide = round(cut * factor)
    trim = (wide - size) // 2
    places = np.arange(trim, trim + size) * ((cut - 1) / max(1, wide - 1)) + top
    return interpolate(interpolate(images, places, -2), places, -1)


def bilinear(
    images: np.ndarray,
    rows: np.ndarray,
    columns: np.ndarray,
    *,
    border: Literal["reflect", "mirror"],
) -> np.ndarray:
    """Each image at its own places [n, height, width]. `reflect` repeats the outermost pixel,
    `mirror` does not.
    """
    height, width = images.shape[-2:]
    row, column = np.floor(rows).astype(int), np.floor(columns).astype(int)
    down, right = (rows - row)[:, None], (columns - column)[:, None]
    number = np.arange(len(images))[:, None, None]

    def at(r: np.ndarray, c: np.ndarray) -> np.ndarray:
        return np.moveaxis(
            images[number, :, _inside(r, height, border), _inside(c, width, border)], -1, 1
        )

    upper = at(row, column) * (1 - right) + at(row, column + 1) * right
    lower = at(row + 1, column) * (1 - right) + at(row + 1, column + 1) * right
    found: np.ndarray = upper * (1 - down) + lower * down
    return found


def _inside(places: np.ndarray, size: int, border: str) -> np.ndarray:
    if border == "mirror":
        places = np.abs(places) % (2 * size - 2)
        return np.where(places < size, places, 2 * size - 2 - places)
    places = places % (2 * size)
    return np.where(places < size, places, 2 * size - 1 - places)


def line_blur(images: np.ndarray, radius: float, sigma: float, degrees: np.ndarray) -> np.ndarray:
    """Motion: a mean over pixels on a line from each pixel in its image's direction, with one-sided
    Gaussian weights.

    As ImageMagick's motion blur does it: 2 x radius + 1 taps at whole pixels, the border repeated.
    """
    height, width = images.shape[-2:]
    taps = np.arange(2 * math.ceil(radius) + 1)
    weights = np.exp(-(taps**2) / (2 * sigma**2))
    weights /= weights.sum()
    number = np.arange(len(images))[:, None, None]
    angle = np.deg2rad(degrees)[:, None, None]
    row, column = np.arange(height)[None, :, None], np.arange(width)[None, None, :]
    found = np.zeros_like(images)
    for tap, weight in zip(taps, weights, strict=True):
        down = np.ceil(tap * np.sin(angle) - 0.5).astype(int)
        right = np.ceil(tap * np.cos(angle) - 0.5).astype(int)
        moved = images[
            number, :, (row + down).clip(0, height - 1), (column + right).clip(0, width - 1)
        ]
        found += weight * np.moveaxis(moved, -1, 1)
    return found
