"""Fifteen sources by repetition, to time steps as the number of past domains grows."""

from collections.abc import Sequence
from dataclasses import replace

from ..errors import FarshoreError
from .benchmark import Made
from .prepared import PreparedBenchmark

SOURCES = 15


def repeated(sources: Sequence[str], target: str) -> tuple[str, ...]:
    """Return `a-1, b-1, ..., a-2, ...` up to fifteen sources, then the target."""
    places = (divmod(k, len(sources)) for k in range(SOURCES))
    return (*(f"{sources[place]}-{turn + 1}" for turn, place in places), target)


class Extended(PreparedBenchmark):
    """Rounds repeat the same rows under new names; only the default target is unseen."""

    def each_target(self) -> dict[str, tuple[str, ...]]:
        """Refuse: no domain but the default target is unseen."""
        raise self._repeats("target each is not allowed")

    def make(self, sources: Sequence[str], target: str, seed: int) -> Made:
        """Make each domain once and repeat it under all its names."""
        if target != self.default_target:
            raise self._repeats(f"target {target!r} is not unseen")
        base_names = [name.rpartition("-")[0] for name in sources]
        once = sorted(set(base_names))
        domains, make_target, notes = super().make(once, target, seed)
        by_name = dict(zip(once, domains, strict=True))
        pairs = zip(sources, base_names, strict=True)
        named = [replace(by_name[base], name=name) for name, base in pairs]
        note = "15 source domains by repetition: the same rows repeat under new names; for timing"
        return named, make_target, (*notes, note)

    def _repeats(self, what: str) -> FarshoreError:
        why = f"{what} in {self.name}, where sources repeat"
        return FarshoreError(f"{why}: use {self.default_target}, or {self.set_name}")
