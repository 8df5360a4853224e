"""The `farshore` command.

Heavy imports happen inside the commands, so that `--help` answers at once.
"""

import errno
import os
import sys
from importlib import import_module
from typing import Annotated

import typer

from .. import __version__
from ..base.files import print_output
from ..errors import FarshoreError
from .help import SECTIONS, SectionedCommand, SectionedGroup

app = typer.Typer(
    name="farshore",
    help="Train site after site without keeping their data, and know before you deploy how the "
    "model will do at a site that nobody has seen.\n\nStart with: farshore demo\n\n"
    "Exit codes: 0 done, 1 a run diverged or failed, 2 an error that you can fix, 130 stopped by "
    "Ctrl-C, 70 an unexpected error, whose traceback is in a file (or shown, with "
    "FARSHORE_TRACEBACK=1 in the environment).",
    no_args_is_help=True,
    cls=SectionedGroup,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def print_version(requested: bool) -> None:
    """Print the version and exit, whatever other arguments are given."""
    if requested:
        print(f"farshore {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """Options of `farshore` itself."""


for command in (name for names in SECTIONS.values() for name in names):
    module = import_module(f".{command}", __package__)
    app.command(cls=SectionedCommand)(getattr(module, command))


def main() -> None:
    """Entry point. Every end but success is one line on stderr.

    Exit code 2: an error that the user can fix. 130: stopped by Ctrl-C. 70: an error that nobody
    expected; its traceback is in a file, or shown if FARSHORE_TRACEBACK=1 is set.
    """
    try:
        try:
            app()
        finally:
            # What is left to print, or why it cannot be printed.
            print_output("\n" if isinstance(sys.exception(), OSError) else "")
    except FarshoreError as error:
        print(f"farshore: error: {_one_line(str(error))}", file=sys.stderr)
        sys.exit(2)
    except SystemExit as ended:
        # Typer turns Ctrl-C into an exit without a word.
        if isinstance(getattr(ended.__context__, "__cause__", None), KeyboardInterrupt):
            print("farshore: stopped", file=sys.stderr)
        raise
    except BrokenPipeError:  # the reader, such as `head`, has all that it wants
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
    except KeyboardInterrupt:
        print("farshore: stopped", file=sys.stderr)
        sys.exit(130)
    except Exception as error:
        if isinstance(error, OSError) and error.errno == errno.ENAMETOOLONG:
            named = _one_line(str(FarshoreError(str(error.filename))))
            print(f"farshore: error: longer than a path may be: {named}", file=sys.stderr)
            sys.exit(2)
        from .unexpected import EXIT_CODE, VARIABLE, report_unexpected

        if os.environ.get(VARIABLE, "") not in ("", "0"):
            raise
        print(f"farshore: {_one_line(report_unexpected(error))}", file=sys.stderr)
        sys.exit(EXIT_CODE)


def _one_line(text: str) -> str:
    """The text without line breaks and control characters, which may come from a file."""
    return "".join(character if character.isprintable() else " " for character in text)
