"""All systems by name: continual methods, the offline upper bound, and adaptations."""

from ..adaptation import ADAPTATIONS
from ..entry import Entry, Kind
from ..errors import unknown
from ..methods import GROUPS as GROUPS
from ..methods import METHODS

# The order of sections in a table; only the first is ranked.
KINDS: tuple[Kind, ...] = ("continual", "offline", "adaptation", "reference")


def names() -> list[str]:
    """Names of all systems: methods first, then adaptations."""
    return [*METHODS.names(), *ADAPTATIONS.names()]


def find(name: str) -> type[Entry]:
    """Return the system called `name`; the error for an unknown name suggests the closest one."""
    if name in METHODS:
        return METHODS.get(name)
    if name in ADAPTATIONS:
        return ADAPTATIONS.get(name)
    raise unknown("method", name, names())


def grouped() -> dict[str, list[type[Entry]]]:
    """Entries by group, known groups first."""
    groups: dict[str, list[type[Entry]]] = {group: [] for group in GROUPS}
    for name in names():
        entry = find(name)
        groups.setdefault(entry.group, []).append(entry)
    return {group: members for group, members in groups.items() if members}
