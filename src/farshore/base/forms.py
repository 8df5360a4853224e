"""Forms: what a saved state must look like. It is checked before any of it is used.

A form is written as the state itself: a tensor stands for tensors of its shape and type, a
dictionary for dictionaries with the same keys, a plain value for values of its type, and None for
what may be missing or is not known. `Like`, `Maybe`, `ListOf` and `MapOf` stand for what grows.
Tensors of whole numbers are counts and positions: negative entries are refused.
Wrong shapes are not merely errors: fused kernels read and write memory without checking them.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

LARGEST_NUMBER = 2**62


class FormError(ValueError):
    """A part of a saved state does not have the form that it should have."""


@dataclass(frozen=True)
class Like:
    """A tensor of this shape; None stands for any length, and for any floating type.

    below: entries are whole numbers from 0 to below this.
    finite: NaN and infinite entries are refused.
    """

    shape: tuple[int | None, ...]
    dtype: torch.dtype | None = None
    below: int | None = None
    finite: bool = False

    def check(self, stored: Any, where: str) -> None:
        """Raise an error unless `stored` is such a tensor."""
        if not isinstance(stored, Tensor) or stored.layout != torch.strided:
            raise FormError(f"{where} is not a tensor")
        typed = stored.is_floating_point() if self.dtype is None else stored.dtype == self.dtype
        if not typed:
            raise FormError(f"{where} has type {_name(stored.dtype)}, not {_name(self.dtype)}")
        expected = list(self.shape)
        lengths = list(stored.shape)
        if len(lengths) != len(expected) or any(
            length is not None and length != actual
            for length, actual in zip(expected, lengths, strict=True)
        ):
            shown = [length if length is not None else "any" for length in expected]
            raise FormError(f"{where} has shape {lengths}, not {shown}")
        if self.below is not None and stored.numel():
            low, high = int(stored.min()), int(stored.max())
            if low < 0 or high >= self.below:
                why = f"{where} has numbers from {low} to {high}, not from 0 to {self.below - 1}"
                raise FormError(why)
        if self.finite and not bool(torch.isfinite(stored).all()):
            raise FormError(f"{where} has NaN or infinite values")


def like_all(tensors: Mapping[str, Tensor]) -> dict[str, Like]:
    """Tensors of these names, shapes and types; numbers are finite."""
    floats = {name: value.is_floating_point() for name, value in tensors.items()}
    return {of: Like(tuple(x.shape), x.dtype, finite=floats[of]) for of, x in tensors.items()}


@dataclass(frozen=True)
class Maybe:
    """None, or this form."""

    form: Any


@dataclass(frozen=True)
class ListOf:
    """A list of any length; `distinct` refuses equal entries."""

    form: Any
    distinct: bool = False


@dataclass(frozen=True)
class MapOf:
    """A dictionary with any texts as keys."""

    form: Any


NAMES = ListOf("", distinct=True)


def check_form(stored: Any, form: Any, where: str) -> None:
    """Raise a FormError unless `stored` has this form; `where` names it in the message."""
    if isinstance(form, Tensor):
        whole = not form.is_floating_point() and form.dtype != torch.bool
        below = LARGEST_NUMBER if whole else None
        Like(tuple(form.shape), form.dtype, below=below).check(stored, where)
    elif isinstance(form, Like):
        form.check(stored, where)
    elif isinstance(form, Maybe):
        if stored is not None:
            check_form(stored, form.form, where)
    elif isinstance(form, ListOf):
        if not isinstance(stored, list | tuple):
            raise FormError(f"{where} is not a list")
        for index, value in enumerate(stored):
            check_form(value, form.form, f"{where}.{index}")
        if form.distinct and len(set(stored)) != len(stored):
            raise FormError(f"{where} has an entry twice")
    elif isinstance(form, MapOf):
        if not isinstance(stored, Mapping) or not all(isinstance(key, str) for key in stored):
            raise FormError(f"{where} is not a dictionary of names")
        for key, value in stored.items():
            check_form(value, form.form, f"{where}.{key}")
    elif isinstance(form, Mapping):
        check_keys(stored, form, where)
        for key, value in form.items():
            check_form(stored[key], value, f"{where}.{key}")
    elif isinstance(form, Sequence) and not isinstance(form, str):
        if not isinstance(stored, list | tuple) or len(stored) != len(form):
            raise FormError(f"{where} is not a list of {len(form)} entries")
        for index, value in enumerate(form):
            check_form(stored[index], value, f"{where}.{index}")
    elif form is not None:
        _check_plain(stored, form, where)


def check_keys(stored: Any, form: Mapping[Any, Any], where: str) -> None:
    """Raise a FormError unless `stored` is a dictionary with exactly the keys of `form`."""
    if not isinstance(stored, Mapping):
        raise FormError(f"{where} is not a dictionary")
    for key in form:
        if key not in stored:
            raise FormError(f"{where} has no {key!r}")
    for key in stored:
        if key not in form:
            raise FormError(f"{where} has an unknown entry {str(key)[:60]!r}")


def is_count(value: Any) -> bool:
    """Whether a value is a whole number from 0 that fits into a tensor."""
    return type(value) is int and 0 <= value < LARGEST_NUMBER


def _check_plain(stored: Any, form: Any, where: str) -> None:
    """Check a plain value: of the form's type, and if it is a number, one that can be used."""
    number = isinstance(form, float) and type(stored) is int
    if type(stored) is not type(form) and not number:
        raise FormError(f"{where} is {type(stored).__name__}, not {type(form).__name__}")
    if isinstance(stored, float) and not math.isfinite(stored):
        raise FormError(f"{where} is {stored}, not a finite number")
    if isinstance(stored, int) and abs(stored) >= LARGEST_NUMBER:
        raise FormError(f"{where} is too large a number")


def _name(dtype: torch.dtype | None) -> str:
    return str(dtype).removeprefix("torch.") if dtype is not None else "a floating type"
