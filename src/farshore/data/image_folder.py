"""A folder of images, `domain/class/file` or `class/file`, as one uint8 array and the facts of
each row.
"""

from __future__ import annotations

import tempfile
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

SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm"}
GREY = {"1", "L", "LA", "I", "I;16", "I;16B", "I;16L", "F"}
LISTED = 5
# A larger set is kept in a file and memory-mapped.
LARGEST_IN_MEMORY = 1 << 30


@dataclass(frozen=True)
class ImagePreprocessing:
    """Images of any size to uint8 [channels, size, size]. The numbers are part of the model."""

    size: int
    channels: int
    kind = "images"

    def read(self, path: Path) -> np.ndarray:
        """One image file: converted to grey or RGB and resized (bilinear, with the antialiasing
        that shrinking needs).
        """
        with Image.open(path) as image:
            image.load()
            plain = _eight_bits(image)
            resized = plain.convert("L" if self.channels == 1 else "RGB").resize(
                (self.size, self.size), Image.Resampling.BILINEAR
            )
            pixels = np.asarray(resized, dtype=np.uint8)
        return pixels[None] if self.channels == 1 else pixels.transpose(2, 0, 1)

    def state_dict(self) -> dict[str, Any]:
        """Plain values that say it all."""
        return {"kind": self.kind, "size": self.size, "channels": self.channels}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> ImagePreprocessing:
        """The preprocessing that `state_dict` described."""
        return cls(int(state["size"]), int(state["channels"]))


def list_images(folder: Path) -> tuple[pd.DataFrame, list[str]]:
    """One row a file with columns `file`, `class` and, if the folder has that level, `domain`;
    and notes on what was left out.
    """
    found = sorted(
        path
        for path in folder.rglob("*")
        if path.is_file() and not any(p.startswith(".") for p in path.relative_to(folder).parts)
    )
    images = [path for path in found if path.suffix.lower() in SUFFIXES]
    depths = {len(path.relative_to(folder).parts) for path in images}
    if depths not in ({2}, {3}):
        seen = (
            "no image file"
            if not images
            else f"images {' and '.join(f'{depth - 1} folders' for depth in sorted(depths))} deep"
        )
        raise FarshoreError(
            f"{folder} holds {seen}: images must lie as domain/class/file (or class/file with "
            "--domain auto)"
        )
    # In the order of file names, as they were taken, not class by class: that order is the stream
    # where domains are constructed.
    images.sort(key=lambda path: (path.relative_to(folder).parts[:-2], path.name, path.parent.name))
    parts = [path.relative_to(folder).parts for path in images]
    frame = pd.DataFrame(
        {"file": [str(path) for path in images], "class": [part[-2] for part in parts]}
    )
    if depths == {3}:
        frame["domain"] = [part[0] for part in parts]
    others = [path for path in found if path.suffix.lower() not in SUFFIXES]
    notes = (
        [
            f"{len(others)} files are no images by their names and were left out: "
            f"{_listing(others, folder)}"
        ]
        if others
        else []
    )
    return frame, notes


def read_images(
    files: Sequence[str], size: int, channels: int | None = None
) -> tuple[np.ndarray, ImagePreprocessing]:
    """All files as uint8 [n, channels, size, size]: grey if all are grey, else RGB, unless a model
    has fixed the channels. Unreadable ones are refused by name."""
    if size < 1:
        raise FarshoreError(
            f"--size {size} is not allowed: images are resized to at least 1 pixel a side"
        )
    with warnings.catch_warnings(), ThreadPoolExecutor(4) as pool:
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        modes = list(pool.map(_mode, files))
        bad = [Path(file) for file, mode in zip(files, modes, strict=True) if mode is None]
        preprocessing = ImagePreprocessing(
            size, channels or (1 if all(mode is None or mode in GREY for mode in modes) else 3)
        )
        array = _room((len(files), preprocessing.channels, size, size))

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
            f"{len(bad)} images cannot be read: {_listing(bad)}; mend or remove them"
        )
    array.flags.writeable = not isinstance(
        array, np.memmap
    )  # a map that nobody writes can give its pages back
    return array, preprocessing


def _mode(file: str) -> str | None:
    """The pixel form of an image from its header, or None if there is none."""
    try:
        with Image.open(file) as image:
            mode = image.mode
            return "RGB" if mode == "P" and _coloured(image) else "L" if mode == "P" else mode
    except (OSError, ValueError, SyntaxError, Warning, Image.DecompressionBombError):
        return None


def _coloured(image: Image.Image) -> bool:
    palette = np.array(image.getpalette("RGB") or [0, 0, 0]).reshape(-1, 3)
    return bool((palette != palette[:, :1]).any())


def _eight_bits(image: Image.Image) -> Image.Image:
    """Deep grey images are scaled to 0..255; Pillow would cut them off there."""
    if image.mode.startswith("I") or image.mode == "F":
        values = np.asarray(image, dtype=np.float64)
        top = 65535.0 if image.mode.startswith("I") else max(float(values.max()), 1.0)
        return Image.fromarray((255 * values / top).round().clip(0, 255).astype(np.uint8))
    return image


def _room(shape: tuple[int, ...]) -> np.ndarray:
    """An array of bytes: in memory, or in a temporary file if it is large."""
    if int(np.prod(shape)) <= LARGEST_IN_MEMORY:
        return np.empty(shape, np.uint8)
    with tempfile.TemporaryFile(
        prefix="farshore-"
    ) as file:  # the map keeps it alive; nothing is left when it goes
        return np.memmap(file, np.uint8, mode="w+", shape=shape)


def _listing(paths: Sequence[Path], folder: Path | None = None) -> str:
    shown = ", ".join(str(path.relative_to(folder) if folder else path) for path in paths[:LISTED])
    return shown + (f" and {len(paths) - LISTED} more" if len(paths) > LISTED else "")
