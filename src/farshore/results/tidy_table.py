"""One tidy table of a folder of runs, as `farshore results` writes it: a row per finished run."""

import json
from operator import itemgetter
from typing import Any

import pandas as pd

from ..errors import FarshoreError
from ..runs.result import Result, average
from ..runs.store.store import Store
from ..tasks.scores import SCORES
from .collect import WRITERS
from .measures import NUMBERS, mean_of, step_milliseconds


def tidy_table(store: Store, damaged: list[str] | None = None) -> pd.DataFrame:
    """One row per run, sorted so that the same runs give the same table."""
    if not store.runs.is_dir():
        raise FarshoreError(f"there is no folder {str(store.runs)!r}: give one {WRITERS}")
    rows = [row(name, result, config) for name, result, config in store.results(damaged)]
    if not rows:
        raise FarshoreError(f"{store.runs} contains no finished run")
    by = ["benchmark", "target", "method", "seed_number", "trial", "run"]
    return pd.DataFrame(rows).sort_values(by, na_position="last", ignore_index=True)


def row(name: str, result: Result, config: dict[str, Any]) -> dict[str, Any]:
    """One run as a row: first what it is, then its scores, then its cost."""
    run, target = result.run, result.target
    done = result.status == "done"
    scores = target.scores if target is not None else {}
    source_scores = result.source_scores.get("validation", [])
    planned = config.get("planned", {})
    of_sources = {name: mean_of(source_scores, itemgetter(name)) for name in SCORES}
    return {
        "run": name,
        "benchmark": result.title,
        "method": run.method,
        "kind": result.kind,
        "status": result.status,
        "seed_number": planned.get("seed"),
        "trial": planned.get("trial"),
        "run_seed": run.seed,
        "scenario_seed": run.scenario_seed,
        "target": target.name if target is not None else (run.target or ""),
        "left_out": ",".join(run.left_out),
        "order": ",".join(result.sources),
        "steps_a_domain": result.steps,
        "memory_rows": result.memory,
        "options": json.dumps(run.options, sort_keys=True),
        "settings": json.dumps(run.settings, sort_keys=True),
        "network": result.network["name"],
        "metric": result.metric,
        "target_score_unseen": result.target_score,
        **{f"target_{name}": scores.get(name) for name in SCORES},
        "source_validation_score": average(result.matrices["validation"]) if done else None,
        "source_train_score": average(result.matrices["train"]) if done else None,
        **{f"source_validation_{name}": value for name, value in of_sources.items()},
        "backward_transfer": result.backward_transfer(),
        "forgetting": result.forgetting(),
        "rows_per_step_at_the_end": NUMBERS["rows_per_step"](result),
        "memory_bytes": result.memory_bytes,
        "method_bytes": result.method_bytes,
        "weights": target.weights if target is not None else "",
        "message": result.message,
        "seconds_in_all": result.seconds["total"],
        "seconds_of_training": result.seconds["training"],
        "milliseconds_a_step": step_milliseconds(result),
        "target_opened_at": target.opened_at if target is not None else "",
        "commit": config.get("commit", ""),
        "torch_version": result.versions["torch"],
        "device": run.device,
    }
