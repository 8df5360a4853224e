"""Safe unpacking: nothing outside the folder, no links, no more bytes than expected."""

import gzip
import stat
import tarfile
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import IO

from ...errors import FarshoreError

CHUNK = 1 << 20


def read_gzip(path: Path, *, limit: int) -> bytes:
    """Return the contents of a .gz file; refuse a damaged file or more than `limit` bytes."""
    try:
        with gzip.open(path) as file:
            data = file.read(limit + 1)
    except (OSError, EOFError) as error:
        raise FarshoreError(f"{path} is damaged: {error}; delete it and prepare again") from None
    if len(data) > limit:
        raise FarshoreError(
            f"{path} unpacks to more than the expected {limit:,} bytes: it is not the official file"
        )
    return data


def unpack(archive: Path, folder: Path, *, limit: int) -> list[Path]:
    """Unpack a .zip or .tar(.gz) into `folder` and return the written files.

    Only plain files inside the folder are written, at most `limit` bytes in total.
    """
    written = []
    try:
        members = _in_zip(archive) if zipfile.is_zipfile(archive) else _in_tar(archive)
        for name, data in members:
            path = _inside(archive, folder, name)
            limit = _write(data, path, limit, archive)
            written.append(path)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
        raise FarshoreError(f"{archive} is damaged: {error}") from None
    return written


def _in_zip(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """The name and the contents of every file in a .zip."""
    with zipfile.ZipFile(archive) as file:
        for member in file.infolist():
            if member.is_dir():
                continue
            if stat.S_ISLNK(member.external_attr >> 16):
                why = f"{archive} contains a link ({member.filename!r}): such archives are refused"
                raise FarshoreError(why)
            with file.open(member) as data:
                yield member.filename, data


def _in_tar(archive: Path) -> Iterator[tuple[str, IO[bytes]]]:
    """The name and the contents of every file in a .tar(.gz)."""
    with tarfile.open(archive) as file:
        for member in file:
            if member.isdir():
                continue
            data = file.extractfile(member) if member.isreg() else None
            if data is None:
                raise FarshoreError(
                    f"{archive} contains a link or device ({member.name!r}): such archives are "
                    "refused"
                )
            yield member.name, data


def _inside(archive: Path, folder: Path, name: str) -> Path:
    relative = PurePosixPath(name.replace("\\", "/"))
    if relative.is_absolute() or ".." in relative.parts or ":" in relative.parts[0]:
        why = f"{archive} would write outside its folder ({name!r}): such archives are refused"
        raise FarshoreError(why)
    return folder / Path(*relative.parts)


def _write(data: IO[bytes], path: Path, bytes_left: int, archive: Path) -> int:
    """Copy and count the actual bytes: sizes may be false; return how many may still come."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        while chunk := data.read(CHUNK):
            bytes_left -= len(chunk)
            if bytes_left < 0:
                why = f"{archive} unpacks to more bytes than expected: it is not the official file"
                raise FarshoreError(why)
            file.write(chunk)
    return bytes_left
