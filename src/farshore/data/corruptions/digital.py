"""Digital: brightness, contrast, saturate, elastic_transform, pixelate, jpeg_compression.

Images are floats in [0, 1], [n, 3, size, size].
"""

import io
from collections.abc import Callable

import numpy as np
from PIL import Image

from .draws import Draws
from .sampling import bilinear, gaussian


def brightness(images: np.ndarray, more: float, draws: Draws) -> np.ndarray:
    """V + c in HSV: each channel grows in proportion to V, and black becomes grey."""
    value = images.max(axis=1, keepdims=True)
    bright = np.minimum(value + more, 1.0)
    factor = bright / np.where(value > 0, value, 1.0)
    return np.where(value > 0, images * factor, bright)


def contrast(images: np.ndarray, factor: float, draws: Draws) -> np.ndarray:
    """Shrink each channel towards its mean."""
    means = images.mean(axis=(2, 3), keepdims=True)
    return (images - means) * factor + means


def saturate(images: np.ndarray, constants: tuple[float, float], draws: Draws) -> np.ndarray:
    """S * factor + shift in HSV, clipped to [0, 1]; grey has the hue of red."""
    factor, shift = constants
    value, least = images.max(axis=1, keepdims=True), images.min(axis=1, keepdims=True)
    chroma = value - least
    saturation = chroma / np.where(value > 0, value, 1.0)
    red = np.array([0.0, 1.0, 1.0])[None, :, None, None]
    hue = np.where(chroma > 0, (value - images) / np.where(chroma > 0, chroma, 1.0), red)
    return value * (1 - (saturation * factor + shift).clip(0, 1) * hue)


def elastic_transform(
    images: np.ndarray, constants: tuple[float, float, float], draws: Draws
) -> np.ndarray:
    """A random affine map of three points, then smooth displacements; constants times the size."""
    size = images.shape[-1]
    alpha, sigma, jitter = (size * constant for constant in constants)
    centre, third = size // 2, size // 3
    points = centre + third * np.array([[1.0, 1.0], [1.0, -1.0], [-1.0, -1.0]])
    moved = points + draws.uniform(-jitter, jitter, 3, 2)
    row, column = np.meshgrid(*[np.arange(size, dtype=float)] * 2, indexing="ij")
    # The map takes `points` to `moved`; each output pixel is sampled through its inverse. Points
    # are (column, row).
    ones = np.ones((len(images), 3, 1))
    inverse = np.linalg.solve(
        np.concatenate([moved, ones], axis=2), np.broadcast_to(points, (len(images), 3, 2))
    )[..., None, None]
    from_column, from_row = (
        inverse[:, 0, k] * column + inverse[:, 1, k] * row + inverse[:, 2, k] for k in (0, 1)
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
    """Resize to int(size * c) with a box filter, and back."""
    size = images.shape[-1]
    small = int(size * factor)

    def coarser(image: Image.Image) -> Image.Image:
        box = Image.Resampling.BOX
        return image.resize((small, small), box).resize((size, size), box)

    return _map_images(images, coarser)


def jpeg_compression(images: np.ndarray, quality: int, draws: Draws) -> np.ndarray:
    """Compress to a JPEG of this quality and decode it."""

    def compress(image: Image.Image) -> Image.Image:
        file = io.BytesIO()
        image.save(file, "JPEG", quality=quality)
        return Image.open(file)

    return _map_images(images, compress)


def _map_images(images: np.ndarray, change: Callable[[Image.Image], Image.Image]) -> np.ndarray:
    """Apply a function on Pillow images to every image of the batch."""
    pixels = np.round(images * 255).astype(np.uint8).transpose(0, 2, 3, 1)
    changed = [np.asarray(change(Image.fromarray(np.ascontiguousarray(image)))) for image in pixels]
    return np.stack(changed).transpose(0, 3, 1, 2) / 255
