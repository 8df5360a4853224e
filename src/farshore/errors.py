"""Errors that a person can mend: each says what was given, what is allowed, and what to type
instead.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class FarshoreError(Exception):
    """A mistake in what was asked for. The command line prints its message as one line and exits
    with code 2.
    """


class SealedTargetError(FarshoreError):
    """Somebody reached for the target domain while a model was still being trained or selected."""


class StateError(FarshoreError):
    """A saved folder is damaged, incomplete, or of another kind than the one asked for."""


class DivergedError(FarshoreError):
    """Training produced weights that are not finite numbers."""


def install(extra: str) -> str:
    """What to type in a checkout for the packages of an extra. Never a name on a package index:
    nothing is released there, and the name may be somebody else's.
    """
    return f"pip install '.[{extra}]'"


def needs(extra: str, what: str, *, otherwise: str = "") -> FarshoreError:
    """The error for packages that are not installed: `what` says who needs which of them,
    `otherwise` a way out without them.
    """
    way_out = f", or {otherwise}" if otherwise else ""
    return FarshoreError(f"{what}: from a checkout, {install(extra)}{way_out}")


def nearest(word: str, allowed: Iterable[str]) -> str | None:
    """The allowed word that looks most like `word`, if any does."""
    matches = difflib.get_close_matches(word.lower(), list(allowed), n=1, cutoff=0.5)
    return matches[0] if matches else None


def unknown(kind: str, word: str, allowed: Iterable[str]) -> FarshoreError:
    """The error for a name that does not exist: names the nearest one, then all of them."""
    names = sorted(allowed)
    guess = nearest(word, names)
    hint = f"did you mean {guess!r}? " if guess else ""
    return FarshoreError(f"unknown {kind} {word!r}: {hint}known: {', '.join(names) or 'none'}")
