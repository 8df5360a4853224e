"""All systems by one name: continual methods, the offline upper bound, and adaptations to the
target.
"""

from __future__ import annotations

from .adaptation import ADAPTATIONS
from .entry import Entry, Kind
from .errors import unknown
from .methods import METHODS

# The order of a table's sections; only the first is ranked.
KINDS: tuple[Kind, ...] = ("continual", "offline", "adaptation")
# The order in which groups are listed.
GROUPS = (
    "finetune",
    "optimization",
    "regularization",
    "replay",
    "latent-replay",
    "tailored",
    "naive",
    "adaptation",
    "upper-bound",
)


def names() -> list[str]:
    """Methods first, then adaptations."""
    return [*METHODS.names(), *ADAPTATIONS.names()]


def find(name: str) -> type[Entry]:
    """The system called `name`; an unknown name gets the nearest of all of them."""
    if name in METHODS:
        return METHODS.get(name)
    if name in ADAPTATIONS:
        return ADAPTATIONS.get(name)
    raise unknown("method", name, names())


def grouped() -> dict[str, list[type[Entry]]]:
    """Entries by group, the known groups first."""
    groups: dict[str, list[type[Entry]]] = {group: [] for group in GROUPS}
    for name in names():
        entry = find(name)
        groups.setdefault(entry.group, []).append(entry)
    return {group: members for group, members in groups.items() if members}
