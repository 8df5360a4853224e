"""Registries: names for methods, benchmarks and networks, open to other packages through entry
points.

A built-in entry is the text "module:attribute" and is imported only when asked for, so that listing
names stays light.
"""

from __future__ import annotations

from importlib import import_module
from importlib.metadata import entry_points
from typing import Generic, TypeVar

from .errors import FarshoreError, unknown

T = TypeVar("T")


class Registry(Generic[T]):
    """Names of one kind of thing. Other packages add theirs under the entry-point group `group`."""

    def __init__(self, kind: str, group: str, builtin: dict[str, str]) -> None:
        self.kind = kind
        self.group = group
        self._builtin = dict(builtin)
        self._added: dict[str, T] = {}
        self._loaded: dict[str, T] = {}
        self._offered: dict[str, str] | None = None

    def names(self) -> list[str]:
        """All known names, the built-in ones first and in the order in which they are listed."""
        return [
            *self._builtin,
            *self._added,
            *(name for name in self._plugins() if name not in self._added),
        ]

    def __contains__(self, name: str) -> bool:
        """Whether there is such a name; looks at other packages only if it is not ours."""
        return name in self._builtin or name in self._added or name in self._plugins()

    def get(self, name: str) -> T:
        """The thing called `name`, imported now if it was not yet."""
        if name in self._added:
            return self._added[name]
        if name not in self._loaded:
            self._loaded[name] = self._load(name)
        return self._loaded[name]

    def add(self, name: str, thing: T) -> None:
        """Give `thing` a name in this process. A name that is taken is refused."""
        if name in self.names():
            raise FarshoreError(f"the {self.kind} name {name!r} is taken: choose another one")
        self._added[name] = thing

    def remove(self, name: str) -> None:
        """Take back what `add` did."""
        self._added.pop(name, None)

    def _plugins(self) -> dict[str, str]:
        """What other packages offer. Looked for once: what is installed does not change while a
        process runs, and it is slow.
        """
        if self._offered is None:
            self._offered = {
                point.name: point.value
                for point in entry_points(group=self.group)
                if point.name not in self._builtin
            }
        return self._offered

    def _load(self, name: str) -> T:
        place = self._builtin.get(name) or self._plugins().get(name)
        if place is None:
            raise unknown(self.kind, name, self.names())
        module, _, attribute = place.partition(":")
        try:
            thing: T = getattr(import_module(module), attribute)
        except (ImportError, AttributeError) as error:
            raise FarshoreError(
                f"the {self.kind} {name!r} is registered as {place!r}, which cannot be imported: "
                f"{error}"
            ) from error
        return thing
