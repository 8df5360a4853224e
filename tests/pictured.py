"""Made-up results for tests of figures and tables."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pandas as pd

from farshore.results.frame import frame_of_results
from farshore.results.select import select
from farshore.runs import catalog
from farshore.runs.result import Result, TargetScores
from farshore.runs.run import Run

SOURCES = ("cleveland", "hungarian", "switzerland")


def result(
    method: str = "er",
    benchmark: str = "heart-hospitals",
    *,
    target: float = 0.6,
    source: float = 0.8,
    seed: int = 0,
    status: str = "done",
    order: tuple[str, ...] = SOURCES,
    memory: int = 100,
    settings: dict[str, Any] | None = None,
    name: str = "va",
    scores: dict[str, float] | None = None,
    confusion: list[list[int]] | None = None,
    **run: Any,
) -> Result:
    """A result with the score `target` on the target and `source` on all sources at the end."""
    done = status == "done"
    stages = [
        [source - 0.1 * (after < of) for of in range(len(order))] for after in range(len(order))
    ]
    on_target = TargetScores(
        name=name,
        rows=10,
        scores={"accuracy": target, "macro_f1": target, **(scores or {})},
        confusion=confusion or [],
        opened_at="",
        weights="",
    )
    return Result(
        run=Run(
            benchmark=benchmark,
            method=method,
            seed=seed,
            order=None if order == SOURCES else order,
            settings=settings or {},
            **run,
        ),
        title=benchmark,
        kind=catalog.find(method).kind,
        status=status,
        metric="accuracy",
        classes=["no", "yes"],
        sources=list(order),
        settings={"batch_size": 8, **(settings or {})},
        run_settings={},
        network={"name": "mlp"},
        steps=2,
        memory=memory,
        rows_per_step=[8, 16, 24],
        matrices={"train": stages, "validation": stages}
        if done
        else {"train": [], "validation": []},
        stages=list(order) if done else [],
        target=on_target if done else None,
        seconds={"total": 1.0, "training": 0.5},
        step_milliseconds=[1.0, 2.0, 3.0] if done else [],
        memory_bytes=0,
        memory_items=0,
        method_bytes=0,
        notes=[],
        versions={"farshore": "0", "torch": "0"},
    )


def shown(*results: Result, experiment: str = "toy", trials: int = 1) -> pd.DataFrame:
    """The frame of one experiment.

    Every `trials` results of a method on the same target in the same order have the same seed.
    """
    counts: Counter[tuple[Any, ...]] = Counter()
    named = []
    for index, made in enumerate(results):
        target = made.target.name if made.target is not None else ""
        key = made.run.method, made.title, tuple(made.sources), target
        seed, trial = divmod(counts[key], trials)
        counts[key] += 1
        planned = {"experiment": experiment, "seed": seed, "trial": trial}
        named.append((f"{experiment} {index}", made, {"planned": planned}))
    return select(frame_of_results(named))


def together(*frames: pd.DataFrame) -> pd.DataFrame:
    """The frame of several experiments."""
    return pd.concat(frames, ignore_index=True)
