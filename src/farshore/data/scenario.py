"""Scenario: ordered source domains, a sealed target, and the settings of the protocol."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ..errors import FarshoreError, unknown
from ..tasks.task import Label, MetricName, Task
from .domain import Domain
from .preprocessing import Preprocessing
from .seal import SealedTarget


@dataclass(frozen=True, eq=False)
class Scenario:
    """The data of a run; they depend on the scenario's seed and settings alone."""

    name: str
    sources: tuple[Domain, ...]
    target: SealedTarget
    task: Task
    metric: MetricName
    network: str
    network_settings: Mapping[str, Any]
    steps: int
    memory: int
    # The settings profile that provides the defaults.
    profile: str
    seed: int
    # Defaults of method settings that differ from the profile, for example a batch size.
    settings: Mapping[str, Any] = field(default_factory=dict)
    # Remarks on the data for readers of the result: counts, what was left out or generated.
    notes: tuple[str, ...] = ()
    # The exact data: the prepared set and a checksum of its files.
    data: Mapping[str, str] = field(default_factory=dict)
    # How raw rows became these inputs; saved with the model to treat new rows the same way.
    preprocessing: Preprocessing | None = None

    @property
    def classes(self) -> tuple[Label, ...]:
        """The classes, if labels are classes."""
        return self.task.classes


def arrange(domains: Sequence[str], target: str, order: Sequence[str] | None) -> list[str]:
    """Return the source names in training order: all but the target, as listed or by `order`."""
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
        why = f"order = {','.join(order)} must name every source once: {', '.join(sources)}"
        raise FarshoreError(why)
    return list(order)
