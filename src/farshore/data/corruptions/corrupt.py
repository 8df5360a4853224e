"""Corrupt a set of images with the published constants for each severity.

The constants are those of the published CIFAR-10-C (32 pixels) and Tiny-ImageNet-C (64 pixels).
Results are truncated, not rounded, to bytes, as in the published arrays.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image

from ...base.randomness import derive
from ...errors import FarshoreError, unknown
from ..downloads.public_files import PublicFile
from . import blur, digital, noise, weather
from .draws import Draws

SEVERITIES = (1, 2, 3, 4, 5)
BATCH = 500
FROST_SCALE = {32: 0.2, 64: 0.3}

_FROST_URL = "https://raw.githubusercontent.com/hendrycks/robustness/master/ImageNet-C/imagenet_c/imagenet_c/frost/"


# The published generator draws from the first five of its six photographs. Apache-2.0.
FROST = tuple(
    PublicFile(name, (_FROST_URL + name,), sha256, size)
    for name, sha256, size in (
        ("frost1.png", "ff9f907860bd7a835d459e32f9d588062b7f61ee267343cc7222b56753a14755", 1199930),
        ("frost2.png", "fe211a89b336999c207a852ce05818d4545d0b57c5beadd824b4cc9d9a9b6137", 299002),
        ("frost3.png", "2d0d50b4a9bb213f38b024ef7768731bb83cc08d2f26b5766bbc167cdfa0e504", 299002),
        ("frost4.jpg", "3f8b91ca1a9fa7167b09e773da53f5ae60d0a1fd88f02a783f6e328a72887f6e", 36734),
        ("frost5.jpg", "5fc6a19df4a429ba68abdcc8f8a4278d4c9f81c9ccafd2c92ab0c8cf8992ebd2", 155150),
    )
)

CORRUPTIONS: dict[str, Callable[..., np.ndarray]] = {
    function.__name__: function
    for function in (
        *(noise.gaussian_noise, noise.shot_noise, noise.impulse_noise, noise.speckle_noise),
        *(blur.gaussian_blur, blur.glass_blur, blur.defocus_blur, blur.motion_blur, blur.zoom_blur),
        *(weather.snow, weather.frost, weather.fog, digital.brightness, digital.contrast),
        *(digital.elastic_transform, digital.pixelate, digital.jpeg_compression, weather.spatter),
        digital.saturate,
    )
}

# Severity 1 to 5. Each function names the numbers in its tuple.
CONSTANTS: dict[int, dict[str, tuple[Any, ...]]] = {
    32: {
        "gaussian_noise": (0.04, 0.06, 0.08, 0.09, 0.10),
        "shot_noise": (500, 250, 100, 75, 50),
        "impulse_noise": (0.01, 0.02, 0.03, 0.05, 0.07),
        "speckle_noise": (0.06, 0.1, 0.12, 0.16, 0.2),
        "gaussian_blur": (0.4, 0.6, 0.7, 0.8, 1.0),
        "glass_blur": ((0.05, 1, 1), (0.25, 1, 1), (0.4, 1, 1), (0.25, 1, 2), (0.4, 1, 2)),
        "defocus_blur": ((0.3, 0.4), (0.4, 0.5), (0.5, 0.6), (1, 0.2), (1.5, 0.1)),
        "motion_blur": ((6, 1), (6, 1.5), (6, 2), (8, 2), (9, 2.5)),
        "zoom_blur": (1.05, 1.10, 1.15, 1.20, 1.25),
        "snow": (
            *((0.1, 0.2, 1, 0.6, 8, 3, 0.95), (0.1, 0.2, 1, 0.5, 10, 4, 0.9)),
            *((0.15, 0.3, 1.75, 0.55, 10, 4, 0.9), (0.25, 0.3, 2.25, 0.6, 12, 6, 0.85)),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.8),
        ),
        "frost": ((1, 0.2), (1, 0.3), (0.9, 0.4), (0.85, 0.4), (0.75, 0.45)),
        "fog": ((0.2, 3), (0.5, 3), (0.75, 2.5), (1, 2), (1.5, 1.75)),
        "brightness": (0.05, 0.1, 0.15, 0.2, 0.3),
        "contrast": (0.75, 0.5, 0.4, 0.3, 0.15),
        "elastic_transform": (
            *((0, 0, 0.08), (0.05, 0.2, 0.07), (0.08, 0.06, 0.06), (0.1, 0.04, 0.05)),
            (0.1, 0.03, 0.03),
        ),
        "pixelate": (0.95, 0.9, 0.85, 0.75, 0.65),
        "jpeg_compression": (80, 65, 58, 50, 40),
        "spatter": (
            *((0.62, 0.1, 0.7, 0.7, 0.5, 0), (0.65, 0.1, 0.8, 0.7, 0.5, 0)),
            *((0.65, 0.3, 1, 0.69, 0.5, 0), (0.65, 0.1, 0.7, 0.69, 0.6, 1)),
            (0.65, 0.1, 0.5, 0.68, 0.6, 1),
        ),
        "saturate": ((0.3, 0), (0.1, 0), (1.5, 0), (2, 0.1), (2.5, 0.2)),
    },
    64: {
        "gaussian_noise": (0.04, 0.08, 0.12, 0.15, 0.18),
        "shot_noise": (250, 100, 50, 30, 15),
        "impulse_noise": (0.01, 0.02, 0.05, 0.08, 0.14),
        "speckle_noise": (0.15, 0.2, 0.25, 0.3, 0.35),
        "gaussian_blur": (0.5, 0.75, 1, 1.25, 1.5),
        "glass_blur": ((0.1, 1, 1), (0.5, 1, 1), (0.6, 1, 2), (0.7, 2, 1), (0.9, 2, 2)),
        "defocus_blur": ((0.5, 0.6), (1, 0.1), (1.5, 0.1), (2.5, 0.01), (3, 0.1)),
        "motion_blur": ((10, 1), (10, 1.5), (10, 2), (10, 2.5), (12, 3)),
        "zoom_blur": (1.05, 1.10, 1.15, 1.20, 1.25),
        "snow": (
            *((0.1, 0.2, 1, 0.6, 8, 3, 0.8), (0.1, 0.2, 1, 0.5, 10, 4, 0.8)),
            *((0.15, 0.3, 1.75, 0.55, 10, 4, 0.7), (0.25, 0.3, 2.25, 0.6, 12, 6, 0.65)),
            (0.3, 0.3, 1.25, 0.65, 14, 12, 0.6),
        ),
        "frost": ((1, 0.3), (0.9, 0.4), (0.8, 0.45), (0.75, 0.5), (0.7, 0.55)),
        "fog": ((0.4, 3), (0.7, 3), (1, 2.5), (1.5, 2), (2, 1.75)),
        "brightness": (0.1, 0.2, 0.3, 0.4, 0.5),
        "contrast": (0.4, 0.3, 0.2, 0.1, 0.05),
        "elastic_transform": (
            *((0, 0, 0.08), (0.05, 0.3, 0.06), (0.1, 0.08, 0.06), (0.1, 0.03, 0.03)),
            (0.16, 0.03, 0.02),
        ),
        "pixelate": (0.9, 0.8, 0.7, 0.6, 0.5),
        "jpeg_compression": (65, 58, 50, 40, 25),
        "spatter": (
            *((0.62, 0.1, 0.7, 0.7, 0.6, 0), (0.65, 0.1, 0.8, 0.7, 0.6, 0)),
            *((0.65, 0.3, 1, 0.69, 0.6, 0), (0.65, 0.1, 0.7, 0.68, 0.6, 1)),
            (0.65, 0.1, 0.5, 0.67, 0.6, 1),
        ),
        "saturate": ((0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (30, 0.2)),
    },
}


def corrupt(
    images: np.ndarray,
    corruption: str,
    severity: int,
    *,
    seed: int,
    numbers: Sequence[int] | np.ndarray | None = None,
    photographs: Sequence[np.ndarray] | None = None,
    batch: int = BATCH,
) -> np.ndarray:
    """Return corrupted uint8 images [n, 3, size, size].

    The random numbers of an image depend only on the seed and its number. `numbers` are the images'
    positions in their official set, by default 0, 1, ...; `photographs` are needed for frost.
    """
    if corruption not in CORRUPTIONS:
        raise unknown("corruption", corruption, CORRUPTIONS)
    size = images.shape[-1]
    if images.ndim != 4 or images.shape[1:] != (3, size, size) or size not in CONSTANTS:
        raise FarshoreError(
            f"images of shape {list(images.shape[1:])} cannot be corrupted: the shape must be "
            "3 x 32 x 32 or 3 x 64 x 64"
        )
    constants = CONSTANTS[size][corruption][check_severity(severity) - 1]
    image_numbers = np.arange(len(images)) if numbers is None else np.asarray(numbers)
    extra: dict[str, Any] = {}
    if corruption == "frost":
        if not photographs:
            why = "frost needs its photographs: give photographs=read_photographs(folder, size)"
            raise FarshoreError(why)
        extra["photographs"] = photographs
    corrupted = np.empty_like(images)
    key = derive(seed, corruption, severity)
    for start in range(0, len(images), batch):
        part = slice(start, start + batch)
        pixels = CORRUPTIONS[corruption](
            images[part] / 255.0, constants, Draws(key, image_numbers[part]), **extra
        )
        # The small offset keeps a whole number that rounding errors made slightly too small.
        corrupted[part] = np.floor(pixels.clip(0, 1) * 255 + 1e-6).astype(np.uint8)
    return corrupted


def check_severity(severity: int) -> int:
    """Return the severity if it is 1 to 5, otherwise refuse it."""
    if severity not in SEVERITIES:
        raise FarshoreError(f"severity = {severity!r} is not allowed: it should be 1, 2, 3, 4 or 5")
    return severity


def read_photographs(folder: Path, size: int) -> list[np.ndarray]:
    """The frost photographs as [3, height, width] in [0, 1], scaled for images of this size."""
    photographs = []
    for file in FROST:
        with Image.open(folder / file.name, formats=("JPEG", "PNG")) as image:
            pixels = np.asarray(image.convert("RGB")).transpose(2, 0, 1) / 255
        photographs.append(weather.scaled(pixels, FROST_SCALE[size]))
    return photographs
