"""Deprecated names still work, warn once, and name their replacement."""

from __future__ import annotations

import inspect
import subprocess
import sys
import warnings

import pytest

from farshore import deprecation
from farshore.deprecation import FarshoreDeprecationWarning, deprecated, renamed
from farshore.errors import FarshoreError


@pytest.fixture(autouse=True)
def nothing_warned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(deprecation, "_warned", set())


@deprecated("0.2", "mean(values)")
def average(values: list[float], *, weight: float = 1.0) -> float:
    """The mean."""
    return weight * sum(values) / len(values)


def test_a_deprecated_function_works_and_warns_once() -> None:
    with pytest.warns(FarshoreDeprecationWarning) as caught:
        assert average([1.0, 3.0]) == 2.0
    assert average([1.0, 3.0], weight=2.0) == 4.0  # a second warning would be an error here
    assert [str(each.message) for each in caught] == [
        "average is deprecated since farshore 0.2: use mean(values) instead"
    ]
    assert caught[0].filename == __file__


def test_its_signature_and_docstring_stay() -> None:
    assert average.__name__ == "average"
    assert average.__doc__ == "The mean."
    assert str(inspect.signature(average)) == (
        "(values: 'list[float]', *, weight: 'float' = 1.0) -> 'float'"
    )


def test_a_renamed_setting_is_taken_under_its_new_name() -> None:
    with pytest.warns(FarshoreDeprecationWarning) as caught:
        values = renamed({"rate": 0.1, "batch": 8}, "rate", "lr", since="0.2")
    assert values == {"lr": 0.1, "batch": 8}
    assert renamed({"rate": 0.2}, "rate", "lr", since="0.2") == {"lr": 0.2}
    assert [str(each.message) for each in caught] == [
        "the name 'rate' is deprecated since farshore 0.2: use 'lr' instead"
    ]
    assert caught[0].filename == __file__


def test_the_new_name_alone_does_not_warn_and_both_are_refused() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert renamed({"lr": 0.1}, "rate", "lr", since="0.2") == {"lr": 0.1}
        with pytest.raises(FarshoreError, match="give 'lr' alone"):
            renamed({"rate": 0.1, "lr": 0.1}, "rate", "lr", since="0.2")


def test_users_see_the_warning_without_asking_for_it() -> None:
    code = (
        "from farshore.deprecation import deprecated\n"
        "import types\n"
        "library = types.ModuleType('library')\n"
        "exec('def caller(f): return f()', library.__dict__)\n"
        "library.caller(deprecated('0.2', 'new()')(lambda: 1))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    assert "FarshoreDeprecationWarning" in done.stderr
    assert "use new() instead" in done.stderr
