"""Fifteen sources by repetition, to see how a step's time grows with the number of past domains."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from ..data.domain import Domain
from ..errors import FarshoreError
from .image import ImageBenchmark

SOURCES = 15


def repeated(sources: Sequence[str], target: str) -> tuple[str, ...]:
    """`a-1, b-1, ..., a-2, ...` up to fifteen sources, then the target."""
    return (
        *(f"{sources[k % len(sources)]}-{k // len(sources) + 1}" for k in range(SOURCES)),
        target,
    )


class ExtendedImages(ImageBenchmark):
    """Each round has the same rows under new names; the target stays, for every other domain
    stands among the sources.
    """

    def make(
        self, sources: Sequence[str], target: str, seed: int
    ) -> tuple[list[Domain], Callable[[], Domain], tuple[str, ...]]:
        """The domains once, under all their names."""
        if target != self.default_target:
            raise FarshoreError(
                f"target {target!r} is not unseen in {self.name}, whose sources repeat: use "
                f"{self.default_target}"
            )
        plain = [name.rpartition("-")[0] for name in sources]
        once = sorted(set(plain))
        domains, make_target, notes = super().make(once, target, seed)  # type: ignore[safe-super] # of the benchmark beside it
        by_name = dict(zip(once, domains, strict=True))
        named = [
            replace(by_name[short], name=name) for name, short in zip(sources, plain, strict=True)
        ]
        return (
            named,
            make_target,
            (
                *notes,
                "15 source domains by repetition: the same rows return under new names; for timing",
            ),
        )
