"""Read a folder of images, `domain/class/file` or `class/file`, into one uint8 array."""

import io
import os
import unicodedata
import warnings
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image, ImageOps, UnidentifiedImageError

from ...base.allocation import empty_array
from ...base.forms import FormError
from ...base.names import natural_key
from ...errors import FarshoreError
from ..progress import followed

# The path of a file, or its contents.
ImageSource = str | bytes
RESAMPLING = ("nearest", "bilinear", "bicubic", "lanczos")
SMALLEST_SIDE = 2

# The formats that are decoded, by content: other decoders of Pillow may run external programs.
FORMATS = ("PNG", "JPEG", "BMP", "GIF", "TIFF", "WEBP", "PPM")
SUFFIXES = {".png", ".jpg", ".jpeg", ".bmp", ".gif", ".tif", ".tiff", ".webp", ".ppm", ".pgm"}
GREY = {"1", "L", "LA", "I", "I;16", "I;16B", "I;16L", "F"}
LISTED = 5


@dataclass(frozen=True)
class ImagePreprocessing:
    """Convert images of any size to uint8 [channels, size, size]; saved with the model."""

    size: int
    channels: int
    interpolation: str = "bilinear"
    kind = "images"

    def read(self, source: ImageSource) -> np.ndarray:
        """Read one image, convert it to grey or RGB and resize it (antialiased).

        A photograph is turned upright as its EXIF entry says; what is transparent becomes white.
        """
        with open_image(source) as image:
            # A JPEG is decoded at a fraction of its size if that is still twice what is needed.
            image.draft(None, (2 * self.size, 2 * self.size))
            image.load()
            plain = _opaque(_eight_bits(ImageOps.exif_transpose(image)))
            resized = plain.convert("L" if self.channels == 1 else "RGB").resize(
                (self.size, self.size), Image.Resampling[self.interpolation.upper()]
            )
            pixels = np.asarray(resized, dtype=np.uint8)
        return pixels[None] if self.channels == 1 else pixels.transpose(2, 0, 1)

    def state_dict(self) -> dict[str, Any]:
        """Return the complete state as plain values."""
        return {"kind": self.kind, **vars(self)}

    @classmethod
    def from_state(cls, state: Mapping[str, Any]) -> "ImagePreprocessing":
        """Restore the preprocessing from `state_dict`."""
        if state["interpolation"] not in RESAMPLING:
            raise FormError(f"preprocessing.interpolation is {state['interpolation']!r}")
        return cls(int(state["size"]), int(state["channels"]), str(state["interpolation"]))


def list_images(folder: Path) -> tuple[pd.DataFrame, list[str]]:
    """`file`, `class` and perhaps `domain` of every image, and notes on files left out."""
    files = list_files(folder)
    images = [path for path in files if path.suffix.lower() in SUFFIXES]
    depths = {len(path.relative_to(folder).parts) for path in images}
    if depths not in ({2}, {3}):
        folders = " and ".join(f"{depth - 1} folders" for depth in sorted(depths))
        contents = f"images {folders} deep" if images else "no image file"
        raise FarshoreError(
            f"{folder} contains {contents}: the layout must be domain/class/file (or class/file "
            "with --domain auto)"
        )

    # Sort by file name, not by class: if domains are constructed, this order is the stream.
    # The class decides last.
    def key(path: Path) -> list[Any]:
        *domain, of_class, name = path.relative_to(folder).parts
        return [natural_key(part) for part in (*domain, name, of_class)]

    images.sort(key=key)
    parts = [path.relative_to(folder).parts for path in images]
    frame = pd.DataFrame(
        {"file": [str(path) for path in images], "class": [part[-2] for part in parts]}
    )
    if depths == {3}:
        frame["domain"] = [part[0] for part in parts]
    others = [path for path in files if path.suffix.lower() not in SUFFIXES]
    if not others:
        return frame, []
    listed = _shortened([str(path.relative_to(folder)) for path in others])
    return frame, [f"{len(others)} files do not have an image suffix and were left out: {listed}"]


def list_files(folder: Path) -> list[Path]:
    """All visible files in natural order (image2, image10); their names must be text."""
    listed: list[tuple[list[Any], Path]] = []
    # Strings instead of paths until the end: there may be a million files.
    for place, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if not name.startswith(".")]
        inside = os.path.relpath(place, folder)
        keys = [] if inside == os.curdir else [natural_key(part) for part in inside.split(os.sep)]
        for name in names:
            path = os.path.join(place, name)
            if name.startswith(".") or not os.path.isfile(path):
                continue
            relative = os.path.join(inside, name) if keys else name
            if any(unicodedata.category(character) in ("Cc", "Cs") for character in relative):
                raise FarshoreError(
                    f"{folder}: the file name {os.fsencode(relative)!r} is not text in UTF-8 or "
                    "has control characters: rename it"
                )
            listed.append(([*keys, natural_key(name)], Path(path)))
    return [path for _, path in sorted(listed)]


def read_images(
    sources: Sequence[ImageSource],
    size: int,
    channels: int | None = None,
    *,
    deciding: Sequence[int] | None = None,
    interpolation: str = "bilinear",
    names: Sequence[str] | None = None,
) -> tuple[np.ndarray, ImagePreprocessing, np.ndarray]:
    """Read all images as uint8 [n, channels, size, size]; unreadable ones are refused by name.

    Without `channels`, the result is grey if all images in the rows `deciding` are grey, otherwise
    RGB; by default all images decide. Also returns which images are in colour in their files.
    """
    if size < 1:
        raise FarshoreError(f"--size {size} is not allowed: it must be at least 1 pixel per side")
    labels = [str(source) for source in sources] if names is None else list(names)
    with _decoding() as pool:
        modes = list(pool.map(_mode, sources))
        coloured = np.array([mode is not None and mode not in GREY for mode in modes], dtype=bool)
        in_colour = coloured.any() if deciding is None else coloured[list(deciding)].any()
        preprocessing = ImagePreprocessing(size, channels or (3 if in_colour else 1), interpolation)
        array = empty_array((len(sources), preprocessing.channels, size, size), np.uint8)

        def read(row: int) -> str | None:
            try:
                array[row] = preprocessing.read(sources[row])
            except UNREADABLE as error:
                return _why(error)
            return None

        reasons = list(followed(pool.map(read, range(len(sources))), "reading images", len(array)))
    broken = [f"{labels[row]} ({why})" for row, why in enumerate(reasons) if why is not None]
    if broken:
        raise FarshoreError(
            f"{len(broken)} images cannot be read: {_shortened(broken)}; fix or remove them, or "
            f"leave them out (--skip-broken); allowed formats: {', '.join(FORMATS)}"
        )
    # The pages of a read-only memory map can be released.
    array.flags.writeable = not isinstance(array, np.memmap)
    return array, preprocessing, coloured


def find_broken(sources: Sequence[ImageSource], names: Sequence[str]) -> dict[str, str]:
    """Decode every image, and return those that cannot be read, with the reasons."""

    def read(source: ImageSource) -> str | None:
        try:
            with open_image(source) as image:
                image.load()
        except UNREADABLE as error:
            return _why(error)
        return None

    with _decoding() as pool:
        reasons = list(followed(pool.map(read, sources), "checking images", len(sources)))
    return {name: why for name, why in zip(names, reasons, strict=True) if why is not None}


def broken_notes(broken: Mapping[str, str], total: int) -> list[str]:
    """One line for every reason for which images were left out."""
    by_reason: dict[str, list[str]] = {}
    for name, why in broken.items():
        by_reason.setdefault(why, []).append(name)
    return [
        f"warning: {len(names)} of {total} images left out, {why}: {_shortened(names)}"
        for why, names in by_reason.items()
    ]


@contextmanager
def _decoding() -> Iterator[ThreadPoolExecutor]:
    """Threads that decode images; one that would take too much memory is an error."""
    with warnings.catch_warnings(), ThreadPoolExecutor(max(4, os.cpu_count() or 1)) as pool:
        warnings.simplefilter("error", Image.DecompressionBombWarning)
        yield pool


@contextmanager
def open_image(source: ImageSource) -> Iterator[Image.Image]:
    """Open an image of an allowed format, from a file or from its bytes."""
    file = io.BytesIO(source) if isinstance(source, bytes) else source
    with Image.open(file, formats=FORMATS) as image:
        if min(image.size) < SMALLEST_SIDE:
            raise TooSmallError(image.size)
        yield image


class TooSmallError(ValueError):
    """An image with so few pixels that nothing can be seen on it."""


UNREADABLE = (OSError, ValueError, SyntaxError, Warning, Image.DecompressionBombError)


def _why(error: BaseException) -> str:
    """Why an image cannot be read, in a few words."""
    if isinstance(error, TooSmallError):
        width, height = error.args[0]
        return f"only {width} x {height} pixels"
    if isinstance(error, Image.DecompressionBombError | Image.DecompressionBombWarning):
        return f"more than {Image.MAX_IMAGE_PIXELS or 0:,} pixels (a decompression bomb)"
    if isinstance(error, UnidentifiedImageError):
        return "not an image"
    if isinstance(error, FileNotFoundError):
        return "no such file"
    return "truncated or damaged"


def _mode(source: ImageSource) -> str | None:
    """Return the pixel mode from the header of an image, or None if it cannot be read."""
    try:
        with open_image(source) as image:
            mode = image.mode
            return "RGB" if mode == "P" and _coloured(image) else "L" if mode == "P" else mode
    except UNREADABLE:
        return None


def _opaque(image: Image.Image) -> Image.Image:
    """The image on a white ground, if parts of it are transparent."""
    if not image.has_transparency_data:
        return image
    with_alpha = image.convert("RGBA")
    ground = Image.new("RGBA", image.size, (255, 255, 255, 255))
    return Image.alpha_composite(ground, with_alpha).convert("RGB")


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


def _shortened(names: Sequence[str]) -> str:
    shown = ", ".join(names[:LISTED])
    return shown + (f" and {len(names) - LISTED} more" if len(names) > LISTED else "")
