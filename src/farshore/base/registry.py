"""Registries of methods, benchmarks and networks by name, extensible through entry points.

A built-in entry is the text "module:attribute", which is imported on first use, so that listing
names, groups and lines stays fast.
"""

from collections.abc import Mapping
from importlib import import_module
from importlib.metadata import entry_points
from typing import Generic, NamedTuple, TypeVar

from ..errors import FarshoreError, unknown

T = TypeVar("T")


class Listed(NamedTuple):
    """A built-in thing, and what lists say of it without importing it.

    location: its module, relative to the package of the registry, and its name there.
    files: of a benchmark, the name of its files for `farshore prepare`.
    """

    location: str
    line: str = ""
    group: str = ""
    files: str = ""


def listed(table: str) -> dict[str, Listed]:
    """Built-in things by name, from lines of `name | location | group | line | files`.

    What follows the line may be left out; an indented line continues the one above.
    """
    rows = (row.split("|") for row in table.replace("\n    ", " ").strip().splitlines())
    cells = ([cell.strip() for cell in row] for row in rows)
    return {name: Listed(at, line, group, *files) for name, at, group, line, *files in cells}


class Registry(Generic[T]):
    """Objects by name: `builtin` ones of `package`, and those of the entry-point group `group`."""

    def __init__(
        self, kind: str, group: str, builtin: Mapping[str, str | Listed], package: str
    ) -> None:
        self.kind = kind
        self.group = group
        entries = builtin.items()
        self.listed = {name: Listed(of) if isinstance(of, str) else of for name, of in entries}
        self._package = package
        self._added: dict[str, T] = {}
        self._loaded: dict[str, T] = {}
        self._offered: dict[str, str] | None = None

    def names(self) -> list[str]:
        """All known names, the built-in ones first, in their listed order."""
        return list(dict.fromkeys([*self.listed, *self._added, *self._plugins()]))

    def __contains__(self, name: str) -> bool:
        """Whether the name exists. Other packages are searched only if it is not built in."""
        return name in self.listed or name in self._added or name in self._plugins()

    def get(self, name: str) -> T:
        """The object registered as `name`, imported on first use."""
        if name in self._added:
            return self._added[name]
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def add(self, name: str, thing: T) -> None:
        """Register `thing` in this process. A name that is taken is refused."""
        if name in self.names():
            raise FarshoreError(f"the {self.kind} name {name!r} is taken: choose another one")
        self._added[name] = thing

    def remove(self, name: str) -> None:
        """Remove a name registered with `add`."""
        self._added.pop(name, None)

    def _plugins(self) -> dict[str, str]:
        """Entries of other packages. Searched once, because the search is slow."""
        if self._offered is None:
            offered = {point.name: point.value for point in entry_points(group=self.group)}
            self._offered = {of: at for of, at in offered.items() if of not in self.listed}
        return self._offered

    def _load(self, name: str) -> T:
        listed = self.listed.get(name)
        location = listed.location if listed is not None else self._plugins().get(name)
        if location is None:
            raise unknown(self.kind, name, self.names())
        module, _, attribute = location.partition(":")
        try:
            thing: T = getattr(import_module(module, self._package), attribute)
        except (ImportError, AttributeError) as error:
            raise FarshoreError(
                f"the {self.kind} {name!r} is registered as {location!r}, which cannot be "
                f"imported: {error}"
            ) from error
        return thing
