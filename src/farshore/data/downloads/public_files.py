"""Public files: where they are stored, how they are downloaded and checked.

A file that is already in its folder is used if its checksum is the published one. A missing file
is downloaded; if that fails, the error names the file, its size and the folder to put it in.
"""

import hashlib
import logging
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from ...base.files import check_ends
from ...errors import FarshoreError

CHUNK = 1 << 20
TIMEOUT_SECONDS = 30

# Maps a file name to a progress bar as pooch expects it, with `total`, `update(bytes)`, `reset()`
# and `close()`.
Bar = Callable[[str], Any]


@dataclass(frozen=True)
class PublicFile:
    """One official file: its download addresses, checksum and size in bytes."""

    name: str
    urls: tuple[str, ...]
    sha256: str
    bytes: int

    @property
    def size(self) -> str:
        """The size in human-readable form."""
        return f"{self.bytes / 1e6:.1f} MB" if self.bytes >= 1e5 else f"{self.bytes:,} bytes"


def data_root(root: str | Path | None = None) -> Path:
    """Return the data folder: `root`, else $FARSHORE_DATA, else the platform's cache folder."""
    chosen = root or os.environ.get("FARSHORE_DATA")
    if chosen:
        return Path(chosen).expanduser()
    import pooch

    return Path(pooch.os_cache("farshore"))


def is_prepared(files: str, root: Path) -> bool:
    """Whether the domains of these files have been built in the data folder, for any seed."""
    name = re.compile(rf"{re.escape(files)}(-severity-\d+|-target-.+|-published)*-seed-\d+")
    built = (root / "prepared").glob(f"{files}-*/manifest.json")
    return any(name.fullmatch(manifest.parent.name) for manifest in built)


def checksum(path: Path) -> str:
    """Return the sha256 of a file, read in chunks."""
    digest = hashlib.sha256()
    with open(path, "rb") as file:
        while chunk := file.read(CHUNK):
            digest.update(chunk)
    return digest.hexdigest()


# What tells a file from the one that was there before.
FileState = tuple[str, int, int, int, int]


def file_state(path: Path) -> FileState:
    """What changes when a file is written or replaced, even by one of the same size and time."""
    facts = path.stat()
    times = facts.st_mtime_ns, facts.st_ctime_ns
    return (str(path.resolve()), facts.st_ino, facts.st_size, *times)


def file_states(*paths: str | Path) -> tuple[FileState, ...]:
    """The states of these files and of all files in these folders, as far as they are there."""
    places = [Path(path).expanduser() for path in paths if str(path)]
    within = [file for place in places if place.is_dir() for file in sorted(place.rglob("*"))]
    return tuple(file_state(path) for path in [*places, *within] if path.is_file())


def known_checksum(path: Path) -> str:
    """Return the sha256 of a file, cached until the file is written or replaced."""
    check_ends(path)
    try:
        return _checksum_of(file_state(path))
    except OSError as error:
        raise FarshoreError(f"{path} cannot be read: {error.strerror}") from None


@lru_cache(maxsize=1 << 17)
def _checksum_of(state: FileState) -> str:
    return checksum(Path(state[0]))


def absent(files: Sequence[PublicFile], folder: Path) -> list[PublicFile]:
    """Return those of `files` that are not in `folder`."""
    return [file for file in files if not (folder / file.name).is_file()]


def check(file: PublicFile, folder: Path) -> Path:
    """Return the path of the file in `folder`; refuse it unless it is the published file."""
    path = folder / file.name
    digest = checksum(path)
    if digest != file.sha256:
        raise FarshoreError(
            f"{path} is not the published file: its sha256 is {digest[:16]}..., not "
            f"{file.sha256[:16]}...; delete it and prepare again"
        )
    return path


def fetch(
    files: Sequence[PublicFile], folder: Path, *, again: str, bar: Bar | None = None
) -> list[Path]:
    """Download missing files and check all; errors name the command to type `again`."""
    for file in absent(files, folder):
        try:
            _download(file, folder, bar)
        # Errors of requests are OSErrors; a wrong checksum is a ValueError.
        except (OSError, ValueError) as error:
            missing = ", ".join(f"{item.name} ({item.size})" for item in absent(files, folder))
            failed = f"could not download {file.name} from {file.urls[-1]} ({_reason(error)})"
            why = f"{failed}: put {missing} into {folder} and type `{again}` again"
            raise FarshoreError(why) from None
    return [check(file, folder) for file in files]


def _download(file: PublicFile, folder: Path, bar: Bar | None) -> None:
    """Try each address in turn; pooch writes a temporary file, checks it and renames it."""
    import pooch

    pooch.get_logger().setLevel(logging.WARNING)
    folder.mkdir(parents=True, exist_ok=True)
    for number, url in enumerate(file.urls):
        progress = bar(file.name) if bar is not None else None
        try:
            by = pooch.HTTPDownloader(progressbar=progress or False, timeout=TIMEOUT_SECONDS)
            known, name = f"sha256:{file.sha256}", file.name
            pooch.retrieve(url, known_hash=known, fname=name, path=folder, downloader=by)
            return
        except (OSError, ValueError):
            if number == len(file.urls) - 1:
                raise


def _reason(error: Exception) -> str:
    """Summarise a download error on one line."""
    if isinstance(error, ValueError):
        return "the downloaded file has the wrong checksum"
    code = getattr(getattr(error, "response", None), "status_code", None)
    if code is not None:
        return f"the server answered {code}"
    return getattr(error, "strerror", None) or type(error).__name__
