"""Flags of commands, alone or in groups: a dataclass in a signature stands for its flags."""

import inspect
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, redirect_stderr, redirect_stdout
from dataclasses import Field, field, fields, is_dataclass
from functools import wraps
from typing import Annotated, Any, get_args, get_origin, get_type_hints

import typer

from ..base.files import print_output
from ..errors import FarshoreError

QUIET = "print nothing but errors; the exit code says how it ended"
JSON = "print the results as JSON, and nothing else (docs/scripts.md)"
# The form of what --json prints; it changes if a name goes or means something else.
JSON_FORMAT = 1
# What the command tells with --json, by name; docs/scripts.md lists the names.
answers: dict[str, Any] = {}
# Commands that write what they make to the standard output, unless --out names a file.
WRITE = ("predict", "card")
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
    name = function.__name__

    @wraps(function)
    def flat(*places: Any, quiet: bool = False, json: bool = False, **given: Any) -> None:
        if sys.stderr.isatty() and "torch" not in sys.modules and name not in AT_ONCE and not quiet:
            print(f"farshore {name}: loading", file=sys.stderr, flush=True)
        named = dict(zip([each.name for each in flags], places, strict=False)) | given
        writes = name in WRITE and named.get("out") is None
        if json and writes:
            raise FarshoreError("--json needs the standard output for itself: name a file with -o")
        with _told(name, quiet=quiet, json=json, writes=writes):
            function(**_arguments(function, Except(), named))

    shown = [*flags, _common("quiet", QUIET), _common("json", JSON)]
    flat.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    flat.__annotations__ = {each.name: each.annotation for each in shown}
    return flat


def _common(name: str, text: str) -> inspect.Parameter:
    made = flag(text, False).metadata["made"](name)
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=made, annotation=bool)


@contextmanager
def _told(name: str, *, quiet: bool, json: bool, writes: bool) -> Iterator[None]:
    """Print nothing if asked to, and with --json the answers, also if the command says no.

    Errors are not lost: they are raised, and printed above.
    """
    answers.clear()
    try:
        with ExitStack() as stack:
            if quiet or json:
                nowhere = stack.enter_context(open(os.devnull, "w", encoding="utf-8"))
                stack.enter_context(redirect_stderr(nowhere))
                if not writes:
                    stack.enter_context(redirect_stdout(nowhere))
            yield
    finally:
        if json and (answers or sys.exception() is None):
            from pydantic_core import to_json

            told = {"command": name, "format": JSON_FORMAT, **answers}
            text = to_json(told, indent=1, inf_nan_mode="null", fallback=_plain)
            print_output(f"{text.decode()}\n")


def _plain(value: Any) -> Any:
    """A number of NumPy as a plain one, anything else as a text."""
    return value.item() if hasattr(value, "item") else str(value)


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
            made.rich_help_panel = getattr(owner, "heading", None)
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
