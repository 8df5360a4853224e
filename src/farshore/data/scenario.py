"""A Scenario: ordered source domains, a sealed target, and what the protocol needs to know of
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from ..errors import FarshoreError, unknown
from .domain import Domain
from .preprocessing import Preprocessing
from .seal import SealedTarget

Metric = Literal["accuracy", "macro_f1"]


@dataclass(frozen=True, eq=False)
class Scenario:
    """What a run learns from. Its data depend on the scenario's seed and settings only, never on
    method or run seed.
    """

    name: str
    sources: tuple[Domain, ...]
    target: SealedTarget
    classes: tuple[str, ...]
    metric: Metric
    network: str
    network_settings: Mapping[str, Any]
    steps: int
    memory: int
    # The name of the settings profile whose defaults hold.
    profile: str
    seed: int
    # Defaults of method settings that this scenario sets otherwise than its profile, for example a
    # batch size.
    settings: Mapping[str, Any] = field(default_factory=dict)
    # What a reader of the result must know about the data: counts, what was left out, what was
    # generated.
    notes: tuple[str, ...] = ()
    # Which data exactly: the prepared set and a checksum over its files.
    data: Mapping[str, str] = field(default_factory=dict)
    # What turned raw rows into these inputs; saved with the model, so that new rows can be treated
    # the same way.
    preprocessing: Preprocessing | None = None


def arrange(domains: Sequence[str], target: str, order: Sequence[str] | None) -> list[str]:
    """The source names in the order of training: all but the target, as listed or as `order`
    says.
    """
    if target not in domains:
        raise unknown("target", target, domains)
    sources = [name for name in domains if name != target]
    if order is None:
        return sources
    for name in order:
        if name == target:
            raise FarshoreError(
                f"order names {name!r}, which is the target: order the sources only "
                f"({', '.join(sources)})"
            )
        if name not in sources:
            raise unknown("domain in order", name, sources)
    if sorted(order) != sorted(sources):
        raise FarshoreError(
            f"order = {','.join(order)} must name every source once: {', '.join(sources)}"
        )
    return list(order)
