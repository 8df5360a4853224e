"""Flags of commands, alone or in groups: a dataclass in a signature stands for its flags."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterator
from dataclasses import Field, field, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

# Commands that answer at once. The others load PyTorch, which takes seconds.
AT_ONCE = ("benchmarks", "methods")


def flag(text: str, default: Any = None, *, short: str = "", **limits: Any) -> Any:
    """A flag with this help, as the default of a command's parameter or of a group's field.

    Its name follows from that of the parameter; a bool has no second flag that denies it.

    default: `...` if the flag must be given.
    short: another name, for example `-o`.
    limits: other arguments of `typer.Option`.
    """

    def made(name: str, text: str = text) -> Any:
        names = [f"--{name.replace('_', '-')}", *([short] if short else [])]
        return typer.Option(default, *names, help=text, **limits)

    return field(default=default, metadata={"made": made})


def argument(text: str, default: Any = ...) -> Any:
    """A positional argument with this help, as the default of a command's parameter."""
    made = typer.Argument(default, help=text)
    return field(default=default, metadata={"made": lambda name: made})


class Except:
    """How the flags of a group differ in one command: some are absent, some have another help.

    `group: Annotated[Group, Except("a", b="the help of b here")]` is a parameter of the command. An
    absent flag has its default in the group.
    """

    def __init__(self, *absent: str, **texts: str) -> None:
        self.absent, self.texts = absent, texts


def command(function: Callable[..., None]) -> Callable[..., None]:
    """A command with flags: typer sees those of every group in the group's place.

    A group is a frozen dataclass of flags and of smaller groups. From Python, a command is called
    with the same names as from the terminal. A person at a terminal sees at once that it has begun.
    """
    flags = list(_flags(function, Except()))

    @wraps(function)
    def flat(*places: Any, **given: Any) -> None:
        name = function.__name__
        if sys.stderr.isatty() and "torch" not in sys.modules and name not in AT_ONCE:
            print(f"farshore {name}: loading", file=sys.stderr, flush=True)
        named = zip([each.name for each in flags], places, strict=False)
        function(**_arguments(function, Except(), dict(named) | given))

    flat.__signature__ = inspect.Signature(flags)  # type: ignore[attr-defined]
    flat.__annotations__ = {each.name: each.annotation for each in flags}
    return flat


def _flags(owner: Callable[..., Any], differing: Except) -> Iterator[inspect.Parameter]:
    """The flags of a command or group as parameters that typer reads."""
    members = _members(owner)
    if unknown := {*differing.absent, *differing.texts} - members.keys():
        raise TypeError(f"{owner.__name__} has no flag {', '.join(sorted(unknown))}")
    for name, (kind, inside, described) in members.items():
        if _is_group(kind):
            yield from _flags(kind, inside)
        elif name not in differing.absent:
            other = {"text": differing.texts[name]} if name in differing.texts else {}
            made = described.metadata["made"](name, **other)
            yield inspect.Parameter(
                name, inspect.Parameter.KEYWORD_ONLY, default=made, annotation=kind
            )


def _arguments(
    owner: Callable[..., Any], differing: Except, given: dict[str, Any]
) -> dict[str, Any]:
    """The arguments of a command or group, from the values of its flags."""
    arguments = {}
    for name, (kind, inside, described) in _members(owner).items():
        if _is_group(kind):
            arguments[name] = kind(**_arguments(kind, inside, given))
        elif name not in differing.absent:
            arguments[name] = given.get(name, described.default)
    return arguments


def _members(owner: Callable[..., Any]) -> dict[str, tuple[Any, Except, Field[Any]]]:
    """The type, the differences and the description of each parameter or field, by name."""
    if _is_group(owner):
        described = {each.name: each for each in fields(owner)}  # type: ignore[arg-type]
    else:
        signature = inspect.signature(owner)
        described = {name: each.default for name, each in signature.parameters.items()}
    hints = get_type_hints(owner, include_extras=True)
    members = {}
    for name in described:
        kind, differing = hints[name], Except()
        if get_origin(kind) is Annotated:
            kind, differing = get_args(kind)
        members[name] = (kind, differing, described[name])
    return members


def _is_group(kind: object) -> bool:
    return isinstance(kind, type) and is_dataclass(kind)


def split_names(text: str | None) -> list[str] | None:
    """Split `a,b,c` into a list of names."""
    return [name.strip() for name in text.split(",") if name.strip()] if text is not None else None
