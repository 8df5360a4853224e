"""What a sweep will cost: from the runs that are done, and a short probe of what is not."""

from __future__ import annotations

import resource
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import torch

from ..benchmarks import BENCHMARKS
from ..benchmarks.source import make_benchmark
from ..errors import FarshoreError
from ..protocol import Run, execute
from ..store.store import Store
from .plan import Plan, Planned

PROBE_STEPS = 3
PROBES_A_BENCHMARK = 2
PROBE_SECONDS = 60.0


@dataclass(frozen=True)
class Estimate:
    """Seconds of the open runs one after another, and the most bytes that one process needed."""

    seconds: float
    bytes: int
    probed: int


def estimate(plan: Plan, store: Store, todo: Mapping[str, Planned]) -> Estimate:
    """Done runs count as they were; a few open ones of each benchmark are begun, with three
    steps a domain, and extrapolated.
    """
    known = _known(plan, store, todo)
    probes: dict[str, list[Run]] = {}
    for planned in todo.values():
        of_benchmark = probes.setdefault(_pair(planned.run)[0], [])
        fresh = planned.run.method not in {run.method for run in of_benchmark}
        if _pair(planned.run) not in known and fresh and len(of_benchmark) < PROBES_A_BENCHMARK:
            of_benchmark.append(planned.run)
    found, peak = _probe([run for runs in probes.values() for run in runs])
    by_benchmark: dict[str, list[float]] = {}
    for pair, seconds in {**known, **found}.items():
        by_benchmark.setdefault(pair[0], []).append(seconds)
    total = 0.0
    for planned in todo.values():
        pair = _pair(planned.run)
        others = (
            by_benchmark.get(pair[0])
            or [second for each in by_benchmark.values() for second in each]
            or [0.0]
        )
        # Trials that a study has yet to draw count as whole: how many of them will be stopped
        # nobody knows.
        more = sum(study.ahead for study in plan.studies.values() if study.newest == planned.name)
        total += (1 + more) * known.get(pair, found.get(pair, sum(others) / len(others)))
    return Estimate(total, peak, len(found))


def _known(plan: Plan, store: Store, todo: Mapping[str, Planned]) -> dict[tuple[str, str], float]:
    """Seconds of one done run of each method on each benchmark."""
    known: dict[tuple[str, str], float] = {}
    for name, planned in plan.unique().items():
        pair = _pair(planned.run)
        if name not in todo and pair not in known and (result := store.read(name)).status == "done":
            known[pair] = result.seconds["total"]
    return known


def _pair(run: Run) -> tuple[str, str]:
    """The benchmark, or the file of own data, and the method."""
    return make_benchmark(run.benchmark, run.options).title, run.method


def _probe(runs: Sequence[Run]) -> tuple[dict[tuple[str, str], float], int]:
    """In a process of its own, so that its memory is that of a worker."""
    if not runs:
        return {}, 0
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(probe, list(runs)).result()


def probe(runs: Sequence[Run]) -> tuple[dict[tuple[str, str], float], int]:
    """Begin each run with three steps a domain, for a minute at most: seconds of the whole runs,
    and the peak of memory in bytes.
    """
    torch.set_num_threads(1)
    began = time.monotonic()
    found: dict[tuple[str, str], float] = {}
    for run in runs:
        if time.monotonic() - began > PROBE_SECONDS:
            break
        steps = run.steps or BENCHMARKS.get(run.benchmark).steps
        try:
            result = execute(run.model_copy(update={"steps": min(PROBE_STEPS, steps)}))
        except FarshoreError:
            continue  # the sweep itself will name it
        whole = result.seconds["training"] * steps / min(PROBE_STEPS, steps)
        found[_pair(run)] = result.seconds["total"] - result.seconds["training"] + whole
    kilobyte = 1 if sys.platform == "darwin" else 1024
    return found, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * kilobyte
