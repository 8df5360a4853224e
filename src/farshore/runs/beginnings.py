"""Runs that begin alike are trained once, up to where they part.

With one target left out after the other, and in several orders, many runs learn the same first
sources. A process keeps the state after each source of a run under a checksum of all that decided
it: settings, seeds, steps, and the rows themselves. A later run takes the state instead of training
again, and goes on to the same bits, as a run does that was stopped and resumed.
"""

import hashlib
from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from torch import Tensor

from ..base.trees import mapped, tensors
from ..benchmarks import make_benchmark
from ..data.domain import Domain
from ..errors import FarshoreError
from ..learner.learner import Learner
from . import catalog
from .run import Run

# What a process keeps; the states that were not used for longest go first.
MOST_BYTES = 128 << 20
# What tells the runs of a family apart.
APART = {"target", "order", "left_out", "held_out"}


@dataclass(frozen=True)
class Stage:
    """A source that was learned: what that took, how its terms acted, and what there was to note.

    shared: whether an earlier run learned it.
    """

    seconds: dict[str, float]
    rows_per_step: int
    notes: list[str]
    doses: dict[str, float | None]
    shared: bool = False

    @classmethod
    def of(cls, learner: Learner) -> "Stage":
        """What the learner's newest source took."""
        system = learner.system
        notes, doses = list(system.notes), dict(system.doses)
        return cls(dict(system.seconds), system.rows_per_step, notes, doses)


class Beginnings:
    """The states that this process keeps, and what their last source took to learn."""

    def __init__(self, most_bytes: int = MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self.bytes = 0
        self._kept: OrderedDict[bytes, tuple[dict[str, Any], Stage, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def learn(
        self, key: bytes, learner: Learner, domain: Domain, steps: int, *, last: bool
    ) -> Stage:
        """Learn the next source, or take the state that an earlier run had after it.

        The last source is always learned, so that a result says how this run was carried out.
        """
        if not last and key in self._kept:
            self._kept.move_to_end(key)
            state, stage, _ = self._kept[key]
            own = learner.preprocessing
            learner.load_state_dict(mapped(state, Tensor.clone))
            learner.preprocessing = own
            return replace(stage, shared=True)
        learner.learn_domain(domain, steps=steps)
        stage = Stage.of(learner)
        self._keep(key, learner.state_dict(), stage)
        return stage

    def _keep(self, key: bytes, state: dict[str, Any], stage: Stage) -> None:
        """Keep a copy of a state, unless it alone is too large."""
        size = sum(each.numel() * each.element_size() for each in tensors(state))
        if size > self.most_bytes or key in self._kept:
            return
        self._kept[key] = mapped(state, Tensor.clone), stage, size
        self.bytes += size
        while self.bytes > self.most_bytes:
            _, (_, _, freed) = self._kept.popitem(last=False)
            self.bytes -= freed


def beginning_keys(learner: Learner, sources: Iterable[Domain], steps: int) -> Iterator[bytes]:
    """After each source, a checksum of all that decides the learner's state by then."""
    digest = hashlib.blake2b(repr((learner.config, str(learner.device), steps)).encode())
    for source in sources:
        _add(digest, source)
        yield digest.digest()


def _add(digest: hashlib.blake2b, source: Domain) -> None:
    """Add the name and every row of a domain."""
    for name, value in vars(source).items():
        if value is None or isinstance(value, str):
            digest.update(repr((name, value)).encode())
            continue
        array = value.cpu().numpy() if isinstance(value, Tensor) else value
        digest.update(repr((name, str(array.dtype), array.shape)).encode())
        digest.update(np.ascontiguousarray(array).data)


def family(run: Run) -> str:
    """A name that runs with the same settings and the same first source share.

    Empty if no two runs have the same bits, or if nothing is learned in turn.
    """
    in_turn = catalog.find(run.method).kind == "continual"
    same_bits = run.device == "cpu" or run.settings.get("deterministic", False)
    if not (in_turn and same_bits) or run.halving:
        return ""
    try:
        first = run.order[0] if run.order else _listed(run)[0]
    except (FarshoreError, IndexError):  # the run itself will say why
        return ""
    return repr((first, run.model_dump(exclude=APART)))


def _listed(run: Run) -> list[str]:
    """The sources of a run without an order of its own."""
    names = make_benchmark(run.benchmark, run.options).domain_names()
    return [name for name in names if name != run.target and name not in run.left_out]
