"""Archives are unpacked with care: nothing outside the folder, no links, no more bytes than
expected.
"""

from __future__ import annotations

import gzip
import stat
import tarfile
import zipfile
from pathlib import Path, PurePosixPath
from typing import IO

from ..errors import FarshoreError

CHUNK = 1 << 20


def read_gzip(path: Path, *, limit: int) -> bytes:
    """What a .gz file holds, refused if it is damaged or grows beyond `limit` bytes."""
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
    """Unpack a .zip or .tar(.gz) into `folder`: plain files only, inside the folder, at most
    `limit` bytes in all.
    """
    try:
        if zipfile.is_zipfile(archive):
            return _unpack_zip(archive, folder, limit)
        return _unpack_tar(archive, folder, limit)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
        raise FarshoreError(f"{archive} is damaged: {error}") from None


def _unpack_zip(archive: Path, folder: Path, limit: int) -> list[Path]:
    written: list[Path] = []
    with zipfile.ZipFile(archive) as file:
        for member in file.infolist():
            if member.is_dir():
                continue
            if stat.S_ISLNK(member.external_attr >> 16):
                raise FarshoreError(
                    f"{archive} holds a link ({member.filename!r}): such archives are refused"
                )
            with file.open(member) as data:
                path, limit = _write(
                    data, _inside(archive, folder, member.filename), limit, archive
                )
            written.append(path)
    return written


def _unpack_tar(archive: Path, folder: Path, limit: int) -> list[Path]:
    written: list[Path] = []
    with tarfile.open(archive) as file:
        for member in file:
            if member.isdir():
                continue
            data = file.extractfile(member) if member.isreg() else None
            if data is None:
                raise FarshoreError(
                    f"{archive} holds a link or device ({member.name!r}): such archives are refused"
                )
            path, limit = _write(data, _inside(archive, folder, member.name), limit, archive)
            written.append(path)
    return written


def _inside(archive: Path, folder: Path, name: str) -> Path:
    place = PurePosixPath(name.replace("\\", "/"))
    if place.is_absolute() or ".." in place.parts or ":" in place.parts[0]:
        raise FarshoreError(
            f"{archive} wants to write outside of its folder ({name!r}): such archives are refused"
        )
    return folder / Path(*place.parts)


def _write(data: IO[bytes], path: Path, left: int, archive: Path) -> tuple[Path, int]:
    """Copy in parts and count what really comes: the sizes that an archive claims are not
    believed.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "wb") as file:
        while part := data.read(CHUNK):
            left -= len(part)
            if left < 0:
                raise FarshoreError(
                    f"{archive} unpacks to more bytes than expected: it is not the official file"
                )
            file.write(part)
    return path, left
