"""Public files: where they live on the disk, how they are downloaded and checked.

A file that is already in its folder is used if its checksum is the published one. Otherwise it is
downloaded; where that cannot be, the error names the file, its size and the folder to put it in.
"""

from __future__ import annotations

import hashlib
import logging
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ..errors import FarshoreError

CHUNK = 1 << 20
TIMEOUT_SECONDS = 30

# Given a file's name, a bar in pooch's form: `total`, `update(bytes)`, `reset()`, `close()`.
Bar = Callable[[str], Any]


@dataclass(frozen=True)
class PublicFile:
    """One official file: the addresses it is offered at, its checksum and its size in bytes."""

    name: str
    urls: tuple[str, ...]
    sha256: str
    bytes: int

    @property
    def size(self) -> str:
        """The size as a person reads it."""
        return f"{self.bytes / 1e6:.1f} MB" if self.bytes >= 1e5 else f"{self.bytes:,} bytes"


def data_root(root: str | Path | None = None) -> Path:
    """The folder for data: `root`, else $FARSHORE_DATA, else the platform's cache folder."""
    chosen = root or os.environ.get("FARSHORE_DATA")
    if chosen:
        return Path(chosen).expanduser()
    import pooch

    return Path(pooch.os_cache("farshore"))


def checksum(path: Path) -> str:
    """The sha256 of a file, read in parts."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while part := file.read(CHUNK):
            digest.update(part)
    return digest.hexdigest()


def known_checksum(path: Path) -> str:
    """The sha256 of a file; read again only if its size or time of change differ from last time."""
    try:
        facts = path.stat()
        return _checksum_of(str(path.resolve()), facts.st_size, facts.st_mtime_ns)
    except OSError as error:
        raise FarshoreError(f"{path} cannot be read: {error.strerror}") from None


@lru_cache(maxsize=1 << 17)
def _checksum_of(path: str, size: int, changed: int) -> str:
    return checksum(Path(path))


def absent(files: Sequence[PublicFile], folder: Path) -> list[PublicFile]:
    """Those of `files` that are not in `folder`."""
    return [file for file in files if not (folder / file.name).is_file()]


def check(file: PublicFile, folder: Path) -> Path:
    """The file in `folder`, refused unless it is the published one byte for byte."""
    path = folder / file.name
    found = checksum(path)
    if found != file.sha256:
        raise FarshoreError(
            f"{path} is not the published file: its sha256 is {found[:16]}..., not "
            f"{file.sha256[:16]}...; delete it and prepare again"
        )
    return path


def fetch(
    files: Sequence[PublicFile], folder: Path, *, again: str, bar: Bar | None = None
) -> list[Path]:
    """All files, checked; those that are absent are downloaded. `again` is the command to type
    once they are in place.
    """
    for file in absent(files, folder):
        try:
            _download(file, folder, bar)
        except (
            OSError,
            ValueError,
        ) as error:  # requests' errors are OSErrors; a wrong checksum is a ValueError
            wanted = ", ".join(f"{each.name} ({each.size})" for each in absent(files, folder))
            failed = f"could not download {file.name} from {file.urls[-1]} ({_reason(error)})"
            raise FarshoreError(
                f"{failed}: put {wanted} into {folder} and type `{again}` again"
            ) from None
    return [check(file, folder) for file in files]


def _download(file: PublicFile, folder: Path, bar: Bar | None) -> None:
    """Try each address in turn. pooch writes beside, checks the checksum and renames."""
    import pooch

    pooch.get_logger().setLevel(logging.WARNING)
    folder.mkdir(parents=True, exist_ok=True)
    for place, url in enumerate(file.urls):
        shown = bar(file.name) if bar is not None else None
        try:
            download = pooch.HTTPDownloader(
                progressbar=shown if shown is not None else False, timeout=TIMEOUT_SECONDS
            )
            pooch.retrieve(
                url,
                known_hash=f"sha256:{file.sha256}",
                fname=file.name,
                path=folder,
                downloader=download,
            )
            return
        except (OSError, ValueError):
            if place == len(file.urls) - 1:
                raise


def _reason(error: Exception) -> str:
    """The heart of a download error, short enough for one line."""
    if isinstance(error, ValueError):
        return "what came has another checksum"
    code = getattr(getattr(error, "response", None), "status_code", None)
    return (
        f"the server answered {code}"
        if code is not None
        else getattr(error, "strerror", None) or type(error).__name__
    )
