"""Frames of made-up runs for tests of rankings and verdicts: no results, nothing is trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pandas as pd

from farshore.results.frame import COLUMNS, SEPARATOR, method_group, row_name

# Scores of one method: by order of the sources, one number per seed; None is a diverged run.
ByOrder = Mapping[str, Sequence[float | None]]


def made_run(method: str, score: float | None, **values: Any) -> dict[str, Any]:
    """A row of a frame: a run with this score on the target, a fraction; None is a diverged run."""
    group, kind = method_group(method)
    order = str(values.get("order", "a → b"))
    variant = str(values.get("variant", ""))
    metric = str(values.get("metric", "accuracy"))
    return {
        **dict.fromkeys(COLUMNS),
        "run": " ".join(map(str, [method, *values.values()])),
        "experiment": "made",
        "part": 0,
        "benchmark": "toy",
        "method": method,
        "variant": variant,
        "row": row_name(method, variant),
        "group": group,
        "kind": kind,
        "target": "t",
        "order": order,
        "last_source": order.split(SEPARATOR)[-1],
        "sources": order,
        "condition": "",
        "seed": 0,
        "trial": 0,
        "held_out": "",
        "status": "done" if score is not None else "diverged",
        "selected": True,
        "metric": metric,
        "score": score,
        metric: score,
        "balanced_accuracy": score,
        "classes": 10,
        "config": {},
        **values,
    }


def frame_of_runs(runs: Sequence[Mapping[str, Any]]) -> pd.DataFrame:
    """The frame of made runs."""
    return pd.DataFrame(list(runs), columns=list(COLUMNS))


def made_frame(
    scores: Mapping[str, ByOrder],
    *,
    targets: Mapping[str, str] | None = None,
    balanced: Mapping[str, float] | None = None,
    **values: Any,
) -> pd.DataFrame:
    """The frame of one data set; scores are in percent, and orders are written as `a>b`.

    targets: the target of each key of `scores`, if there are several; the order is the key.
    balanced: the balanced accuracy of a method everywhere; by default its score.
    """
    runs = []
    for method, by_order in scores.items():
        for order, of_seeds in by_order.items():
            for seed, score in enumerate(of_seeds):
                fields = {
                    "order": order.replace(">", SEPARATOR),
                    "target": (targets or {}).get(order, "t"),
                    "seed": seed,
                    **values,
                }
                if balanced and method in balanced:
                    fields["balanced_accuracy"] = balanced[method] / 100
                runs.append(made_run(method, score / 100 if score is not None else None, **fields))
    return frame_of_runs(runs)


def over_data_sets(scores: Mapping[str, Sequence[float]], seeds: int = 3) -> pd.DataFrame:
    """A frame over as many data sets as each method has scores, in percent."""
    return frame_of_runs(
        [
            made_run(method, score / 100, benchmark=f"data {index}", seed=seed)
            for method, of_method in scores.items()
            for index, score in enumerate(of_method)
            for seed in range(seeds)
        ]
    )
