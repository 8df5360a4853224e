"""All systems by one name: continual methods, the offline upper bound, and adaptations to the
target.
"""

from __future__ import annotations

from typing import Literal

from .adaptation import ADAPTATIONS
from .adaptation.adaptation import Adaptation
from .errors import unknown
from .methods import METHODS
from .methods.method import Method

Kind = Literal["continual", "offline", "adaptation"]
# The order of a table's sections; only the first is ranked.
KINDS: tuple[Kind, ...] = ("continual", "offline", "adaptation")
# In the order of the paper's tables.
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


def find(name: str) -> type[Method] | type[Adaptation]:
    """The system called `name`; an unknown name gets the nearest of all of them."""
    if name in METHODS:
        return METHODS.get(name)
    if name in ADAPTATIONS:
        return ADAPTATIONS.get(name)
    raise unknown("method", name, names())


def grouped() -> dict[str, list[type[Method] | type[Adaptation]]]:
    """Systems by group, the paper's groups first and in its order."""
    found: dict[str, list[type[Method] | type[Adaptation]]] = {group: [] for group in GROUPS}
    for name in names():
        kind = find(name)
        found.setdefault(kind.group, []).append(kind)
    return {group: members for group, members in found.items() if members}
