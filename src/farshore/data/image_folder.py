"""Read a folder of images, `domain/class/file` or `class/file`, into one uint8 array."""

from __future__ import annotations

import os
import tempfile
import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image

from ..errors import FarshoreError
from ..names import natural_key

# The formats that are decoded, by content: other decoders of Pillow may run external programs.
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm"}
GREY = {"1", "L", "LA", "I", "I;16", "I;16B", "I;16L", "F"}
LISTED = 5
# A larger array is kept in a memory-mapped file.
LARGEST_IN_MEMORY = 1 << 30


@dataclass(frozen=True)
class ImagePreprocessing:
    """Convert images of any size to uint8 [channels, size, size]; saved with the model."""

    size: int
    channels: int
    kind = "images"

    def read(self, path: Path) -> np.ndarray:
        """Read one image file, convert it to grey or RGB and resize it (bilinear, antialiased)."""
        with Image.open(path, formats=FORMATS) as image:
            image.load()
            plain = _eight_bits(image)
            resized = plain.convert("L" if self.channels == 1 else "RGB").resize(
                (self.size, self.size), Image.Resampling.BILINEAR
            )
            pixels = np.asarray(resized, dtype=np.uint8)
        return pixels[None] if self.channels == 1 else pixels.transpose(2, 0, 1)

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state as plain values."""
        return {"kind": self.kind, "size": self.size, "channels": self.channels}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> ImagePreprocessing:
        """Restore the preprocessing from `state_dict`."""
        return cls(int(state["size"]), int(state["channels"]))


def list_images(folder: Path) -> tuple[pd.DataFrame, list[str]]:
    """Return one row per image file, and notes on files that were left out.

    The columns are `file`, `class` and, if the folder has that level, `domain`.
    """
    files = list_files(folder)
    images = [path for path in files if path.suffix.lower() in SUFFIXES]
    depths = {len(path.relative_to(folder).parts) for path in images}
    if depths not in ({2}, {3}):
        contents = (
            "no image file"
            if not images
            else f"images {' and '.join(f'{depth - 1} folders' for depth in sorted(depths))} deep"
        )
        raise FarshoreError(
            f"{folder} contains {contents}: the layout must be domain/class/file (or class/file "
            "with --domain auto)"
        )
    # Sort by file name, not by class: if domains are constructed, this order is the stream.
    images.sort(key=lambda path: _stream_key(path.relative_to(folder).parts))
    parts = [path.relative_to(folder).parts for path in images]
    frame = pd.DataFrame(
        {"file": [str(path) for path in images], "class": [part[-2] for part in parts]}
    )
    if depths == {3}:
        frame["domain"] = [part[0] for part in parts]
    others = [path for path in files if path.suffix.lower() not in SUFFIXES]
    notes = (
        [
            f"{len(others)} files do not have an image suffix and were left out: "
            f"{_listing(others, folder)}"
        ]
        if others
        else []
    )
    return frame, notes


def list_files(folder: Path) -> list[Path]:
    """Return all files that are not hidden, in natural order: image2 comes ahead of image10.

    Their names must be text that can be written.
    """
    files = [
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(p.startswith(".") for p in path.relative_to(folder).parts)
    ]
    for path in files:
        name = path.relative_to(folder).as_posix()
        if any(unicodedata.category(character) in ("Cc", "Cs") for character in name):
            raise FarshoreError(
                f"{folder}: the file name {os.fsencode(name)!r} is not text in UTF-8 or has "
                "control characters: rename it"
            )
    return sorted(files, key=lambda path: [*map(natural_key, path.relative_to(folder).parts)])


def _stream_key(parts: tuple[str, ...]) -> list[Any]:
    """Sort by domain and file name; the class decides last."""
    return [natural_key(name) for name in (*parts[:-2], parts[-1], parts[-2])]


def read_images(
    files: Sequence[str],
    size: int,
    channels: int | None = None,
    *,
    deciding: Sequence[int] | None = None,
) -> tuple[np.ndarray, ImagePreprocessing, np.ndarray]:
    """Read all files as uint8 [n, channels, size, size]; unreadable files are refused by name.

    Without `channels`, the result is grey if all images in the rows `deciding` are grey, otherwise
    RGB; by default all images decide. Also returns which images are in colour in their files.
    """
    if size < 1:
        raise FarshoreError(f"--size {size} is not allowed: it must be at least 1 pixel per side")
    with warnings.catch_warnings(), ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        modes = list(pool.map(_mode, files))
        bad = [Path(file) for file, mode in zip(files, modes, strict=True) if mode is None]
        coloured = np.array([mode is not None and mode not in GREY for mode in modes], dtype=bool)
        in_colour = coloured.any() if deciding is None else coloured[list(deciding)].any()
        preprocessing = ImagePreprocessing(size, channels or (3 if in_colour else 1))
        array = _allocate((len(files), preprocessing.channels, size, size))

        def read(row: int) -> int | None:
            try:
                array[row] = preprocessing.read(Path(files[row]))
            except (OSError, ValueError, SyntaxError, Warning, Image.DecompressionBombError):
                return row
            return None

        if not bad:
            bad = [Path(files[row]) for row in pool.map(read, range(len(files))) if row is not None]
    if bad:
        raise FarshoreError(
            f"{len(bad)} images cannot be read: {_listing(bad)}; fix or remove them (allowed "
            f"formats: {', '.join(FORMATS)})"
        )
    # The pages of a read-only memory map can be released.
    array.flags.writeable = not isinstance(array, np.memmap)
    return array, preprocessing, coloured


def _mode(file: str) -> str | None:
    """Return the pixel mode from the header of an image, or None if it cannot be read."""
    try:
        with Image.open(file, formats=FORMATS) as image:
            mode = image.mode
            return "RGB" if mode == "P" and _coloured(image) else "L" if mode == "P" else mode
    except (OSError, ValueError, SyntaxError, Warning, Image.DecompressionBombError):
        return None


def _coloured(image: Image.Image) -> bool:
    palette = np.array(image.getpalette("RGB") or [0, 0, 0]).reshape(-1, 3)
    return bool((palette != palette[:, :1]).any())


def _eight_bits(image: Image.Image) -> Image.Image:
    """Scale grey images with more than 8 bits to 0..255; Pillow would clip them."""
    if image.mode.startswith("I") or image.mode == "F":
        values = np.asarray(image, dtype=np.float64)
        top = 65535.0 if image.mode.startswith("I") else max(float(values.max()), 1.0)
        return Image.fromarray((255 * values / top).round().clip(0, 255).astype(np.uint8))
    return image


def _allocate(shape: tuple[int, ...]) -> np.ndarray:
    """Return an uninitialised uint8 array: in memory, or in a temporary file if it is large."""
    if int(np.prod(shape)) <= LARGEST_IN_MEMORY:
        return np.empty(shape, np.uint8)
    # The memory map keeps the file alive; it disappears together with the map.
    with tempfile.TemporaryFile(prefix="farshore-") as file:
        return np.memmap(file, np.uint8, mode="w+", shape=shape)


def _listing(paths: Sequence[Path], folder: Path | None = None) -> str:
    shown = ", ".join(str(path.relative_to(folder) if folder else path) for path in paths[:LISTED])
    return shown + (f" and {len(paths) - LISTED} more" if len(paths) > LISTED else "")
