"""Writing files: completely or not at all, and never through a link that lies in their place."""

import os
import re
import shutil
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import TextIOWrapper
from pathlib import Path
from tempfile import SpooledTemporaryFile, TemporaryFile
from typing import IO

from ..errors import FarshoreError, StateError

# The ends of the names of tables that can be read; text files may be compressed (.csv.gz).
TABLE_SUFFIXES = (".csv", ".tsv", ".txt", ".parquet", ".pq", ".feather", ".arrow")
# Systems without links that could be followed lack the flag.
NO_FOLLOW = getattr(os, "O_NOFOLLOW", 0)
# Bytes that must fit on the disk ahead of any work: more than a result needs.
PROBE_BYTES = 1 << 16
# The end of a temporary file's name, and how much of the final name comes before it.
TEMPORARY_END = r"\.[0-9a-f]{8}"
TEMPORARY_NAME = 80
# Bytes of an output that wait in memory.
WAITING = 1 << 20


def write_atomic(path: Path, data: bytes) -> None:
    """Write a file as `replacing` does."""
    with replacing(path) as file:
        file.write(data)


@contextmanager
def replacing(path: Path) -> Iterator[IO[bytes]]:
    """A temporary file to write; in the end, it is flushed to disk and renamed to `path`.

    The file is therefore always either the old or the complete new one. A link at `path` is
    replaced, not followed. After an error, raised as it is, no temporary file is left behind.
    """
    temporary = temporary_path(path)
    try:
        with open(temporary, "xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise


def temporary_path(path: Path) -> Path:
    """A hidden name next to `path` that no other file has."""
    return path.with_name(f".{path.name[:TEMPORARY_NAME]}.{uuid.uuid4().hex[:8]}")


def remove_temporary(folder: Path, names: re.Pattern[str]) -> None:
    """Delete what killed writers left of the files with these names; errors are ignored."""
    pattern = re.compile(rf"\.(?:{names.pattern}){TEMPORARY_END}")
    with suppress(OSError):
        for path in folder.iterdir():
            if pattern.fullmatch(path.name):
                path.unlink(missing_ok=True)


def write_inside(folder: Path, path: Path, data: bytes) -> None:
    """Write a file; one in `folder`, which may come from anybody, through no link in it."""
    if not path.absolute().is_relative_to(folder.absolute()):
        return write_output(path, data)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.parent.resolve().is_relative_to(folder.resolve()):
            raise OSError("its folder is a link, and nothing is written through links")
        write_atomic(path, data)
    except (OSError, RuntimeError) as error:
        raise FarshoreError(f"{str(path)!r} cannot be written: {reason(error)}") from None


def refuse_links(folder: Path) -> None:
    """Refuse a folder that is a link or has links in it, before anything is written into it."""
    for path in (folder, *folder.rglob("*")):
        if path.is_symlink():
            why = f"{path} is a link, and nothing is written through links: delete it"
            raise FarshoreError(why)


def read_file(path: Path) -> bytes:
    """The bytes of a file. Raises OSError, also for a pipe or a device, which may have no end."""
    if path.exists() and not path.is_file():
        raise OSError(f"{path} is not a file")
    return path.read_bytes()


def check_ends(path: Path) -> None:
    """Refuse what may have no end, or none until somebody writes: a pipe or a device."""
    if path.exists() and not (path.is_file() or path.is_dir()):
        raise FarshoreError(f"{path} is a pipe or a device: give a file")


def write_output(path: Path, data: bytes) -> None:
    """Write a file as `output` does."""
    with output(path) as file:
        file.write(data)


@contextmanager
def output(path: Path | None) -> Iterator[IO[bytes]]:
    """A file to write in UTF-8, for one that the user named or, if none, the standard output.

    It arrives there completely or not at all. A link of the user's is followed. What goes to a
    device, a pipe or the standard output waits in a temporary file until it is complete.
    """
    if path is None:
        with SpooledTemporaryFile(WAITING) as waiting:
            yield waiting
            waiting.seek(0)
            text = TextIOWrapper(waiting, encoding="utf-8", newline="")
            for part in iter(lambda: text.read(WAITING), ""):
                print_output(part)
        return
    try:
        if path.exists() and not path.is_file():
            with SpooledTemporaryFile(WAITING) as waiting:
                yield waiting
                waiting.seek(0)
                with open(path, "wb") as file:
                    shutil.copyfileobj(waiting, file)
            return
        final = path.resolve()
        final.parent.mkdir(parents=True, exist_ok=True)
        with replacing(final) as file:
            yield file
    except (OSError, RuntimeError) as error:  # RuntimeError: links in a circle
        raise FarshoreError(f"{str(path)!r} cannot be written: {reason(error)}") from None


def print_output(text: str) -> None:
    """Write to the standard output; a full disk is an error of one line, a closed pipe is none."""
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except OSError as error:
        # Otherwise the interpreter would write the rest at its end, and fail again.
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        if isinstance(error, BrokenPipeError):
            return
        raise FarshoreError(f"the standard output cannot be written: {reason(error)}") from None


def append_line(path: Path, line: str) -> None:
    """Add a line to a file of ours; a link in its place is refused. Raises OSError."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | NO_FOLLOW, 0o644)
    with open(descriptor, "wb") as file:
        file.write(f"{line}\n".encode())


def check_writable(folder: Path, option: str = "--out") -> None:
    """Refuse a folder that cannot be written or has no space left, before any work is done."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with TemporaryFile(dir=folder) as file:  # it has no name that could be somebody else's
            file.write(bytes(PROBE_BYTES))
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        why = f"{option} {str(folder)!r} cannot be written: {reason(error)}"
        raise FarshoreError(why) from None


def remove_folder(folder: Path) -> None:
    """Delete a folder of ours with everything in it, if it exists; a link is refused."""
    with state_errors(f"{folder} could not be deleted"):
        with suppress(FileNotFoundError):
            shutil.rmtree(folder)
        if folder.exists():
            raise OSError("it changed while it was deleted")


def sync_folder(folder: Path) -> None:
    """Flush the names in a folder to disk, where the system can."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def state_errors(what: str) -> Iterator[None]:
    """Inside, what the system refuses becomes a StateError that begins with these words."""
    try:
        yield
    except OSError as error:
        raise StateError(f"{what}: {reason(error)}") from error


def reason(error: Exception) -> str:
    """Why a file could not be written, without its name."""
    return getattr(error, "strerror", None) or str(error)
