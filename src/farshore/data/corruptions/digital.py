"""Light and digital: brightness, contrast, saturate, elastic_transform, pixelate,
jpeg_compression. Floats in [0, 1].
"""

from __future__ import annotations

import io
from collections.abc import Callable

import numpy as np
from PIL import Image

from .draws import Draws
from .sampling import bilinear, gaussian


def brightness(images: np.ndarray, more: float, draws: Draws) -> np.ndarray:
    """V + c in HSV. Hue and saturation stay, so every channel grows as V does; black becomes
    grey.
    """
    value = images.max(axis=1, keepdims=True)
    bright = np.minimum(value + more, 1.0)
    found: np.ndarray = np.where(
        value > 0, images * (bright / np.where(value > 0, value, 1.0)), bright
    )
    return found


def contrast(images: np.ndarray, factor: float, draws: Draws) -> np.ndarray:
    """Each channel shrinks towards its mean."""
    means = images.mean(axis=(2, 3), keepdims=True)
    found: np.ndarray = (images - means) * factor + means
    return found


def saturate(images: np.ndarray, constants: tuple[float, float], draws: Draws) -> np.ndarray:
    """S * factor + shift in HSV, cut to [0, 1]; grey has the hue of red."""
    factor, shift = constants
    value, least = images.max(axis=1, keepdims=True), images.min(axis=1, keepdims=True)
    chroma = value - least
    saturation = chroma / np.where(value > 0, value, 1.0)
    red = np.array([0.0, 1.0, 1.0])[None, :, None, None]
    hue = np.where(chroma > 0, (value - images) / np.where(chroma > 0, chroma, 1.0), red)
    found: np.ndarray = value * (1 - (saturation * factor + shift).clip(0, 1) * hue)
    return found


def elastic_transform(
    images: np.ndarray, constants: tuple[float, float, float], draws: Draws
) -> np.ndarray:
    """A random affine map of three points around the centre, then smooth random displacements.
    Constants times the size.
    """
    size = images.shape[-1]
    alpha, sigma, jitter = (size * constant for constant in constants)
    centre, third = size // 2, size // 3
    points = np.array(
        [
            [centre + third, centre + third],
            [centre + third, centre - third],
            [centre - third, centre - third],
        ],
        float,
    )
    moved = points + draws.uniform(-jitter, jitter, 3, 2)
    row, column = np.meshgrid(
        np.arange(size, dtype=float), np.arange(size, dtype=float), indexing="ij"
    )
    # The map takes `points` to `moved`; each pixel of the result looks back. Points are (column,
    # row).
    ones = np.ones((len(images), 3, 1))
    back = np.linalg.solve(
        np.concatenate([moved, ones], axis=2), np.broadcast_to(points, (len(images), 3, 2))
    )[..., None, None]
    from_column, from_row = (
        back[:, 0, k] * column + back[:, 1, k] * row + back[:, 2, k] for k in (0, 1)
    )
    images = bilinear(images, from_row, from_column, border="mirror")
    if alpha == 0:
        return images
    right, down = (
        alpha * gaussian(draws.uniform(-1, 1, size, size), sigma, mode="reflect", truncate=3.0)
        for _ in range(2)
    )
    return bilinear(images, row + down, column + right, border="reflect")


def pixelate(images: np.ndarray, factor: float, draws: Draws) -> np.ndarray:
    """Box-resize to int(size * c) and back."""
    size = images.shape[-1]
    small = int(size * factor)
    return _each(
        images,
        lambda image: image.resize((small, small), Image.Resampling.BOX).resize(
            (size, size), Image.Resampling.BOX
        ),
    )


def jpeg_compression(images: np.ndarray, quality: int, draws: Draws) -> np.ndarray:
    """Through a JPEG of this quality and back."""

    def through(image: Image.Image) -> Image.Image:
        file = io.BytesIO()
        image.save(file, "JPEG", quality=quality)
        return Image.open(file)

    return _each(images, through)


def _each(images: np.ndarray, change: Callable[[Image.Image], Image.Image]) -> np.ndarray:
    pixels = np.round(images * 255).astype(np.uint8).transpose(0, 2, 3, 1)
    changed = [np.asarray(change(Image.fromarray(np.ascontiguousarray(each)))) for each in pixels]
    return np.stack(changed).transpose(0, 3, 1, 2) / 255
