"""Compare methods on one benchmark: every method with every seed and order, one ranked table."""

from __future__ import annotations

import csv
import io
import json
import math
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from pydantic import BaseModel

from . import catalog
from .benchmarks.source import make_benchmark
from .data.scenario import arrange
from .entry import Kind
from .errors import FarshoreError, unknown
from .origin import commit
from .protocol import Result, Run, execute
from .randomness import derive
from .state import write_atomic

# Methods that are not the paper's: its own frame without penalty and alignment, and a baseline that
# users expect.
BEYOND_THE_PAPER = ("er", "der++")
# In an order that is given by its names: a shell and YAML leave it alone, and no domain has it in
# its name.
BETWEEN_NAMES = "/"
# The order of a table's parts; only the first is ranked.
KINDS: tuple[Kind, ...] = ("continual", "offline", "adaptation")


class Row(BaseModel):
    """One method: means and standard errors over its runs. A mean over fewer runs than planned
    says so in `runs`.
    """

    method: str
    group: str
    kind: Kind
    rank: int | None
    runs: int
    planned: int
    target: float | None
    target_error: float | None
    source: float | None
    validation: float | None
    backward_transfer: float | None
    seconds: float
    rows_per_step: int

    @property
    def whole(self) -> bool:
        """Whether every planned run gave a number."""
        return self.runs == self.planned


class Comparison(BaseModel):
    """A ranked table and the results that it was made of."""

    benchmark: str
    metric: str
    rows: list[Row]
    results: list[Result]
    # Of the code that ran, where it is known.
    commit: str = ""

    def by_order(self) -> dict[str, list[Row]]:
        """The same rows for each order of the sources on its own, in the order of this table:
        the order decides much.
        """
        apart: dict[str, list[Result]] = {}
        for result in self.results:
            apart.setdefault(" ".join(result.sources), []).append(result)
        place = {row.method: number for number, row in enumerate(self.rows)}
        return {
            order: sorted(rank(found), key=lambda row: place[row.method])
            for order, found in apart.items()
        }

    def save(self, folder: Path) -> None:
        """`comparison.json` with everything, `comparison.csv` with the table."""
        folder.mkdir(parents=True, exist_ok=True)
        write_atomic(
            folder / "comparison.json", json.dumps(self.model_dump(mode="json"), indent=1).encode()
        )
        text = io.StringIO()
        writer = csv.DictWriter(text, fieldnames=list(Row.model_fields))
        writer.writeheader()
        writer.writerows(row.model_dump() for row in self.rows)
        write_atomic(folder / "comparison.csv", text.getvalue().encode())


def select_methods(words: Sequence[str]) -> list[str]:
    """Names of methods and of groups (tailored, naive, ..., adaptation, upper-bound, `paper`,
    `all`) as methods, each once.
    """
    names = catalog.names()
    groups: dict[str, list[str]] = {
        "all": names,
        "paper": [name for name in names if name not in BEYOND_THE_PAPER],
    }
    for name in names:
        group = catalog.find(name).group
        if group not in names:
            groups.setdefault(group, []).append(name)
    chosen: list[str] = []
    for word in words:
        if word not in groups and word not in names:
            raise unknown("method or group", word, [*names, *groups])
        chosen += [name for name in groups.get(word, [word]) if name not in chosen]
    return chosen


def select_orders(
    benchmark: str,
    words: Sequence[str],
    *,
    target: str | None,
    seed: int,
    options: Mapping[str, Any] | None = None,
) -> list[tuple[str, ...]]:
    """`listed`, `reversed`, `random1`, `random2`, ... or names as in `45/30/0/15`, as orders of the
    sources.

    A random one depends on the scenario's seed alone.
    """
    made = make_benchmark(benchmark, options)
    target = made.choose_target(target)
    listed = made.listed(target)
    orders = []
    for word in words:
        if word in ("listed", "reversed"):
            orders.append(tuple(listed if word == "listed" else listed[::-1]))
        elif word.startswith("random") and word[6:].isdecimal() and int(word[6:]) > 0:
            orders.append(_random_order(listed, int(word[6:]), seed))
        elif BETWEEN_NAMES in word:
            orders.append(tuple(arrange(made.domain_names(), target, word.split(BETWEEN_NAMES))))
        else:
            names = BETWEEN_NAMES.join(listed[::-1])
            raise FarshoreError(
                f"unknown order {word!r}: use listed, reversed, random1, random2, ..., or names "
                f"as in {names}"
            )
    return orders


def _random_order(listed: Sequence[str], number: int, seed: int) -> tuple[str, ...]:
    """Neither listed nor reversed nor an earlier random one, as long as there are others: two
    words for one order would count it twice.
    """
    taken = {tuple(listed), tuple(listed[::-1])}
    for each in range(1, number + 1):
        if len(taken) >= math.factorial(len(listed)):
            taken.clear()
        draws = np.random.default_rng(derive(seed, "order", each))
        order = _shuffled(listed, draws)
        while order in taken:
            order = _shuffled(listed, draws)
        taken.add(order)
    return order


def _shuffled(names: Sequence[str], draws: np.random.Generator) -> tuple[str, ...]:
    return tuple(names[place] for place in draws.permutation(len(names)))


def compare(
    runs: Sequence[Run], *, workers: int = 1, done: Callable[[Result], None] | None = None
) -> Comparison:
    """Carry out the runs, `workers` at a time, and rank the methods by their mean target score."""
    if not runs:
        raise FarshoreError("there is nothing to compare: name at least one method, seed and order")
    results: dict[int, Result] = {}
    for place, result in _carry_out(runs, workers):
        results[place] = result
        if done is not None:
            done(result)
    ordered = [results[place] for place in range(len(runs))]
    return Comparison(
        benchmark=ordered[0].title,
        metric=ordered[0].metric,
        rows=rank(ordered),
        results=ordered,
        commit=commit(),
    )


def _carry_out(runs: Sequence[Run], workers: int) -> Iterator[tuple[int, Result]]:
    if workers == 1:
        for place, run in enumerate(runs):
            yield place, execute(run)
        return
    with ProcessPoolExecutor(
        workers, mp_context=get_context("spawn"), initializer=_one_thread
    ) as pool:
        futures = {pool.submit(execute, run): place for place, run in enumerate(runs)}
        for future in as_completed(futures):
            yield futures[future], future.result()


def _one_thread() -> None:
    """Workers share the cores: a thread each, and numbers that do not depend on how many workers
    there are.
    """
    torch.set_num_threads(1)


def default_workers(device: str, runs: int) -> int:
    """As many processes as cores on the CPU, one on a GPU."""
    return max(1, min(os.cpu_count() or 1, runs)) if device == "cpu" else 1


def rank(results: Sequence[Result]) -> list[Row]:
    """A row a method, best mean target score first; methods without any number come last and have
    no rank.

    Offline methods and adaptations stand below the continual methods, apart and without rank: they
    saw more.
    """
    by_method: dict[str, list[Result]] = {}
    for result in results:
        by_method.setdefault(result.run.method, []).append(result)
    rows = [_row(method, found) for method, found in by_method.items()]
    rows.sort(
        key=lambda row: (
            KINDS.index(row.kind),
            -row.target if row.target is not None else float("inf"),
        )
    )
    ranks = [
        place + 1 if row.kind == "continual" and row.target is not None else None
        for place, row in enumerate(rows)
    ]
    return [row.model_copy(update={"rank": place}) for row, place in zip(rows, ranks, strict=True)]


def _row(method: str, results: Sequence[Result]) -> Row:
    done = [result for result in results if result.status == "done"]
    targets = [value for result in done if (value := result.target_score) is not None]
    return Row(
        method=method,
        group=catalog.find(method).group,
        kind=results[0].kind,
        rank=None,
        runs=len(done),
        planned=len(results),
        target=mean(targets),
        target_error=standard_error(targets),
        source=mean([result.source_score(2) for result in done]),
        validation=mean([result.source_score(1) for result in done]),
        backward_transfer=mean([result.backward_transfer() for result in done]),
        seconds=float(np.mean([result.seconds["total"] for result in results])),
        rows_per_step=max(
            (result.rows_per_step[-1] for result in results if result.rows_per_step), default=0
        ),
    )


def mean(values: Sequence[float | None]) -> float | None:
    """Mean of the values that are there."""
    there = [value for value in values if value is not None]
    return float(np.mean(there)) if there else None


def standard_error(values: Sequence[float]) -> float | None:
    """Standard deviation (divisor n, as in DomainBed's tables) over the root of n; not defined
    for one value.
    """
    return float(np.std(values) / np.sqrt(len(values))) if len(values) > 1 else None
