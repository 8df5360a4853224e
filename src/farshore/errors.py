"""Errors that a user can fix: they say what was given, what is allowed and what to type."""

import difflib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from os import PathLike
from pathlib import Path

# The command that installs an extra from a checkout. It never names a package on an index: nothing
# is released there, and the name may belong to somebody else.
INSTALL = "pip install '.[{}]'"


# Longer errors, which quote a long cell or list many names, lose their middle.
LONGEST = 1200


class FarshoreError(Exception):
    """An error in the request. The command line prints it as one line and exits with code 2."""

    def __str__(self) -> str:
        """The line; it begins with what was given, and ends with what is allowed."""
        line, half = super().__str__(), LONGEST // 2
        return line if len(line) <= LONGEST else f"{line[:half]} ... {line[-half:]}"


class SealedTargetError(FarshoreError):
    """The target domain was accessed while a model was being trained or selected."""


class StateError(FarshoreError):
    """A saved folder is damaged, incomplete, or of a different kind than expected."""


class DivergedError(FarshoreError):
    """Training produced weights that are not finite numbers."""


class FarshoreDeprecationWarning(FutureWarning):
    """What works but will be removed; Python hides DeprecationWarning from users of libraries."""


@contextmanager
def within(where: object) -> Iterator[None]:
    """Inside, an error of ours begins with the place where it was found."""
    try:
        yield
    except FarshoreError as error:
        raise FarshoreError(f"{where}: {error}") from None


def needs(extra: str, what: str, *, otherwise: str = "") -> FarshoreError:
    """The error that `what` needs packages of an extra; `otherwise` is an alternative."""
    alternative = f", or {otherwise}" if otherwise else ""
    return FarshoreError(f"{what}: from a checkout, {INSTALL.format(extra)}{alternative}")


def nearest(word: str, allowed: Iterable[str]) -> str | None:
    """The allowed word most similar to `word`, if any is similar."""
    matches = difflib.get_close_matches(word.lower(), list(allowed), n=1, cutoff=0.5)
    return matches[0] if matches else None


def no_such_file(path: str | PathLike[str], more: str = "") -> FarshoreError:
    """The error for a path without a file or a folder; it suggests the nearest name beside it."""
    folder, beside = Path(path).parent, list[str]()
    with suppress(OSError):
        beside = [each.name for each in folder.iterdir()]
    found = difflib.get_close_matches(Path(path).name, beside, n=1, cutoff=0.8)
    advice = f"did you mean {str(folder / found[0])!r}?" if found else f"check the path{more}"
    return FarshoreError(f"there is no file or folder {str(path)!r}: {advice}")


def unknown(kind: str, word: str, allowed: Iterable[str]) -> FarshoreError:
    """The error for an unknown name. It suggests the nearest name and lists all of them."""
    names = sorted(allowed)
    guess = nearest(word, names)
    hint = f"did you mean {guess!r}? " if guess else ""
    return FarshoreError(f"unknown {kind} {word!r}: {hint}known: {', '.join(names) or 'none'}")
