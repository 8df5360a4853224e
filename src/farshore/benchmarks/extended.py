"""Fifteen sources by repetition, to time steps as the number of past domains grows."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..data.domain import Domain
from ..errors import FarshoreError
from .image import ImageBenchmark

SOURCES = 15


def repeated(sources: Sequence[str], target: str) -> tuple[str, ...]:
    """Return `a-1, b-1, ..., a-2, ...` up to fifteen sources, then the target."""
    return (
        *(f"{sources[k % len(sources)]}-{k // len(sources) + 1}" for k in range(SOURCES)),
        target,
    )


class ExtendedImages(ImageBenchmark):
    """Each round repeats the same rows under new names.

    Only the default target is allowed, because every other domain is one of the sources.
    """

    def each_target(self) -> dict[str, tuple[str, ...]]:
        """Refuse: no domain but the default target is unseen."""
        raise FarshoreError(
            f"target each is not allowed in {self.name}, where sources repeat: use "
            f"{self.default_target}"
        )

    def make(
        self, sources: Sequence[str], target: str, seed: int
    ) -> tuple[list[Domain], Callable[[], Domain], tuple[str, ...]]:
        """Make each domain once and repeat it under all its names."""
        if target != self.default_target:
            raise FarshoreError(
                f"target {target!r} is not unseen in {self.name}, where sources repeat: use "
                f"{self.default_target}"
            )
        base_names = [name.rpartition("-")[0] for name in sources]
        once = sorted(set(base_names))
        domains, make_target, notes = super().make(once, target, seed)  # type: ignore[safe-super] # of the other base class
        by_name = dict(zip(once, domains, strict=True))
        named = [
            replace(by_name[base], name=name)
            for name, base in zip(sources, base_names, strict=True)
        ]
        return (
            named,
            make_target,
            (
                *notes,
                "15 source domains by repetition: the same rows repeat under new names; for timing",
            ),
        )
