"""Estimate the cost of a sweep from finished runs and short probes of the others."""

import resource
import sys
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from itertools import chain
from multiprocessing import get_context

import torch

from ...benchmarks import make_benchmark
from ...errors import FarshoreError
from ..protocol import execute
from ..run import Run
from ..store.store import Store
from .plan import Plan, Planned

PROBE_STEPS = 3
PROBES_PER_BENCHMARK = 2
PROBE_SECONDS = 60.0


@dataclass(frozen=True)
class CostEstimate:
    """Total seconds of the open runs, and the peak memory of one process in bytes."""

    seconds: float
    bytes: int
    probed: int


def estimate(plan: Plan, store: Store, todo: Mapping[str, Planned]) -> CostEstimate:
    """Estimate the cost of the open runs.

    Finished runs count with the time they took. A few open ones of each benchmark are started
    with three steps per domain and extrapolated.
    """
    known = _known(plan, store, todo)
    probes: dict[str, list[Run]] = {}
    for planned in todo.values():
        benchmark_probes = probes.setdefault(_pair(planned.run)[0], [])
        is_new = planned.run.method not in {run.method for run in benchmark_probes}
        few = len(benchmark_probes) < PROBES_PER_BENCHMARK
        if few and is_new and _pair(planned.run) not in known:
            benchmark_probes.append(planned.run)
    probed, peak = dict[tuple[str, str], float](), 0
    if runs := list(chain(*probes.values())):  # in its own process, whose memory is a worker's
        with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
            probed, peak = pool.submit(probe, runs).result()
    by_benchmark: dict[str, list[float]] = {}
    for pair, seconds in {**known, **probed}.items():
        by_benchmark.setdefault(pair[0], []).append(seconds)
    total = 0.0
    for planned in todo.values():
        pair = _pair(planned.run)
        others = by_benchmark.get(pair[0]) or list(chain(*by_benchmark.values())) or [0.0]
        # Trials that a study has yet to draw count in full: how many will be stopped is unknown.
        more = sum(study.ahead for study in plan.studies.values() if study.newest == planned.name)
        total += (1 + more) * known.get(pair, probed.get(pair, sum(others) / len(others)))
    return CostEstimate(total, peak, len(probed))


def _known(plan: Plan, store: Store, todo: Mapping[str, Planned]) -> dict[tuple[str, str], float]:
    """Seconds of one finished run per benchmark and method."""
    known: dict[tuple[str, str], float] = {}
    for name, planned in plan.unique().items():
        pair = _pair(planned.run)
        if name not in todo and pair not in known and (result := store.read(name)).status == "done":
            known[pair] = result.seconds["total"]
    return known


def _pair(run: Run) -> tuple[str, str]:
    """The title of the benchmark (the file name for own data) and the method."""
    return make_benchmark(run.benchmark, run.options).title, run.method


def probe(runs: Sequence[Run]) -> tuple[dict[tuple[str, str], float], int]:
    """Seconds of whole runs, from three steps of each within a minute, and peak memory."""
    torch.set_num_threads(1)
    start = time.monotonic()
    seconds: dict[tuple[str, str], float] = {}
    for run in runs:
        if time.monotonic() - start > PROBE_SECONDS:
            break
        steps = run.steps or make_benchmark(run.benchmark, run.options).usual_steps()
        try:
            result = execute(run.model_copy(update={"steps": min(PROBE_STEPS, steps)}))
        except FarshoreError:
            continue  # the sweep itself will report it
        whole = result.seconds["training"] * steps / min(PROBE_STEPS, steps)
        seconds[_pair(run)] = result.seconds["total"] - result.seconds["training"] + whole
    kilobyte = 1 if sys.platform == "darwin" else 1024
    return seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * kilobyte
