"""What the command line does about an error that nobody expected: one line, and a file.

The traceback goes into a new file, for a bug report. With FARSHORE_TRACEBACK=1 it is shown instead.
"""

import os
import platform
import sys
import tempfile
import traceback
from datetime import UTC, datetime
from pathlib import Path

from .. import __version__

EXIT_CODE = 70  # EX_SOFTWARE of sysexits.h: an internal error
VARIABLE = "FARSHORE_TRACEBACK"
MOST_CHARACTERS = 200_000


def report_unexpected(error: BaseException) -> str:
    """Write the traceback to a file; return the one line to print."""
    kind = type(error).__name__
    summary = " ".join(str(error).split())[:200]
    said = f"{kind}: {summary}" if summary else kind
    try:
        path = _write(_details(error))
    except (OSError, MemoryError, RecursionError):
        return f"unexpected error ({said}); type {VARIABLE}=1 in front of the command to see more"
    return f"unexpected error ({said}); details for a bug report are in {path}"


def _details(error: BaseException) -> str:
    try:
        lines = "".join(traceback.format_exception(error, limit=50))
    except (MemoryError, RecursionError):
        lines = f"{type(error).__name__}: the traceback cannot be formatted\n"
    head = (
        f"farshore {__version__}, Python {platform.python_version()}, {platform.platform()}\n"
        f"arguments: {sys.argv[1:]!r}\n\n"
    )
    return (head + lines)[:MOST_CHARACTERS]


def _write(text: str) -> Path:
    """Create a new file in the working folder, or else in that for temporary files."""
    name = f"farshore-error-{datetime.now(UTC):%Y%m%d-%H%M%S}-{os.getpid()}.txt"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0)
    for folder in (Path.cwd, lambda: Path(tempfile.gettempdir())):
        try:
            path = folder() / name
            with os.fdopen(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
                file.write(text.encode("utf-8", "backslashreplace").decode())
        except OSError as error:
            failure = error
        else:
            return path
    raise failure
