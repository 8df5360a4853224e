"""Flags in groups: what typer sees, and what a command gets."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest
import typer
from typer.testing import CliRunner

from farshore.cli.flags import Except, argument, command, flag, split_names
from farshore.errors import FarshoreError


@dataclass(frozen=True)
class Inner:
    deep_one: int = flag("the deep one", 3)


@dataclass(frozen=True)
class Group:
    first: str | None = flag("the first")
    inner: Inner = field(default_factory=Inner)
    loud: bool = flag("whether it is loud", False)
    many: list[str] | None = flag("many of them")

    def __post_init__(self) -> None:
        if self.first == "wrong":
            raise FarshoreError("--first wrong is not allowed")


GOT: dict[str, Any] = {}


def whole(
    place: str = argument("a place"),
    *,
    before: int = flag("what comes before", 1, short="-b"),
    group: Group,
    after: str = flag("what must be given", ...),
) -> None:
    """Do all of it."""
    GOT.update(locals())


def part(group: Annotated[Group, Except("first", "many", loud="another text")]) -> None:
    """Do a part of it."""
    GOT.update(locals())


def call(function: Any, *arguments: str) -> tuple[int, str]:
    GOT.clear()
    app = typer.Typer(add_completion=False, rich_markup_mode=None)
    app.command()(command(function))
    done = CliRunner().invoke(app, arguments, terminal_width=100)
    return done.exit_code, done.output + str(done.exception or "")


def test_the_flags_of_a_group_stand_in_its_place() -> None:
    code, shown = call(whole, "--help")
    assert code == 0
    places = [shown.index(word) for word in ("--before", "--first", "--deep-one", "--loud")]
    places += [shown.index(word) for word in ("--many", "--after", "--help")]
    assert places == sorted(places)
    assert "Do all of it." in shown
    assert "--no-loud" not in shown


def test_a_command_gets_its_groups_filled() -> None:
    typed = ("here", "-b", "2", "--many", "x", "--many", "y", "--loud", "--after", "z")
    assert call(whole, *typed, "--deep-one", "5") == (0, "")
    filled = Group(inner=Inner(5), loud=True, many=["x", "y"])
    assert {"place": "here", "before": 2, "group": filled, "after": "z"} == GOT


def test_what_is_not_given_has_the_default_of_its_field() -> None:
    assert call(whole, "here", "--after", "z")[0] == 0
    assert GOT["group"] == Group(None, Inner(3), False, None)
    assert GOT["before"] == 1


def test_a_command_is_called_from_python_as_from_the_terminal() -> None:
    GOT.clear()
    command(whole)("here", after="z", deep_one=7)
    assert {"place": "here", "before": 1, "group": Group(inner=Inner(7)), "after": "z"} == {**GOT}


@pytest.mark.parametrize("typed", [("here",), ("--after", "z")])
def test_what_must_be_given_is_asked_for(typed: tuple[str, ...]) -> None:
    code, shown = call(whole, *typed)
    assert (code, "Missing" in shown, GOT) == (2, True, {})


def test_a_group_may_refuse_what_was_typed() -> None:
    code, shown = call(whole, "here", "--after", "z", "--first", "wrong")
    assert (code, GOT) == (1, {})
    assert "--first wrong is not allowed" in shown


def test_a_command_may_leave_out_flags_of_a_group_and_explain_others() -> None:
    _, shown = call(part, "--help")
    assert ("--first" in shown, "--many" in shown, "--deep-one" in shown) == (False, False, True)
    assert ("another text" in shown, "whether it is loud" in shown) == (True, False)
    assert call(part, "--first", "a")[0] == 2
    assert call(part, "--loud") == (0, "")
    assert GOT["group"] == Group(loud=True)


def test_a_flag_that_the_group_does_not_have_is_refused() -> None:
    def wrong(group: Annotated[Inner, Except("deep_two")]) -> None: ...

    wrong.__annotations__ = {"group": Annotated[Inner, Except("deep_two")]}
    with pytest.raises(TypeError, match="Inner has no flag deep_two"):
        command(wrong)


def test_two_groups_with_the_same_flag_are_refused() -> None:
    def double(one: Inner, other: Inner) -> None: ...

    double.__annotations__ = {"one": Inner, "other": Inner}
    with pytest.raises(ValueError, match="duplicate parameter name"):
        command(double)


def test_names_are_split_at_commas() -> None:
    assert split_names("a, b,,c") == ["a", "b", "c"]
    assert split_names(None) is None
