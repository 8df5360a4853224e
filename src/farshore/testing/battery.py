"""Battery: the named checks of one kind of thing, and the ways to run them."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial, update_wrapper
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar
from unittest import SkipTest

from ..base.registry import Registry
from ..errors import FarshoreError

if TYPE_CHECKING:
    import pytest

Case = TypeVar("Case")
Thing = TypeVar("Thing")


class Check(Protocol):
    """One check: takes the name of what is checked, or the thing itself, and the options of its
    kind. It returns if all is well.
    """

    def __call__(self, subject: Any, /, **options: Any) -> None:
        """Raise AssertionError or FarshoreError if broken, SkipTest if the check does not apply."""


def ensure(condition: object, sentence: str) -> None:
    """Raise AssertionError with this sentence unless the condition holds."""
    if not condition:
        raise AssertionError(sentence)


def not_for(reason: str) -> SkipTest:
    """The check does not apply: raise this. pytest shows it as a skipped test."""
    return SkipTest(reason)


@contextmanager
def refused(what: str) -> Iterator[None]:
    """Inside, a FarshoreError must be raised; `what` should have been refused."""
    message = ""
    try:
        yield
    except FarshoreError as raised:
        message = str(raised)
    ensure(message, f"{what} is not refused: raise a FarshoreError that says what is allowed")


class Battery(Generic[Thing, Case]):
    """Checks of things of one kind, such as methods.

    registry: knows the things by name; one that is handed in itself is registered while it is
        checked.
    make_case: from a name and the options of a check to what the check functions are given;
        options that are None keep their defaults.
    """

    def __init__(self, registry: Registry[Thing], make_case: Callable[..., Case]) -> None:
        self.registry = registry
        self.make_case = make_case
        self._checks: dict[str, Check] = {}

    def add(self, function: Callable[[Case], None], name: str | None = None) -> None:
        """Add a check under this name, or under that of the function."""
        check = partial(self._run, function)
        named = name or function.__name__
        update_wrapper(check, function)
        self._checks[named] = check

    def check(self, function: Callable[[Case], None]) -> Check:
        """As a decorator: add a check under the name of the function."""
        self.add(function)
        return self._checks[function.__name__]

    def checks(self) -> Iterator[tuple[str, Check]]:
        """Every check with its name: call it with a subject, and the options of its kind."""
        return iter(self._checks.items())

    def run(self, subject: str | Thing, **options: Any) -> None:
        """Run all checks that apply. The first that fails raises, with its name as a note."""
        for name, check in self.checks():
            try:
                with suppress(SkipTest):
                    check(subject, **options)
            except Exception as error:
                error.add_note(f"in the check {name!r} of the {self.registry.kind} {subject!r}")
                raise

    def parametrize(
        self, subjects: Iterable[str | Thing], **options: Any
    ) -> "pytest.MarkDecorator":
        """A pytest mark: every check (`check`) on every subject, called as the kind (`method`)."""
        import pytest

        cases = [
            pytest.param(
                subject, partial(check, **options), id=f"{_label(subject)}-{name.replace(' ', '_')}"
            )
            for subject in subjects
            for name, check in self.checks()
        ]
        return pytest.mark.parametrize((self.registry.kind, "check"), cases)

    def _run(
        self, function: Callable[[Case], None], subject: str | Thing, /, **options: Any
    ) -> None:
        with registered(self.registry, subject) as name:
            given = {option: value for option, value in options.items() if value is not None}
            function(self.make_case(name, **given))


@contextmanager
def registered(registry: Registry[Thing], subject: str | Thing) -> Iterator[str]:
    """The name of the subject, which inside is known to the registry."""
    if isinstance(subject, str):
        registry.get(subject)
        yield subject
        return
    name = _label(subject)
    if name in registry and registry.get(name) is subject:
        yield name
        return
    registry.add(name, subject)
    try:
        yield name
    finally:
        registry.remove(name)


def _label(subject: Any) -> str:
    """What a subject calls itself, by its name or that of its function or class."""
    if isinstance(subject, str):
        return subject
    name = getattr(subject, "name", None)
    return name if isinstance(name, str) else str(subject.__name__)
