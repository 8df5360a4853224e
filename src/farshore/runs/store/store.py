"""The store: all runs of a folder, as results and as one tidy table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pandas as pd

from ...errors import FarshoreError, StateError
from ...tasks.scores import SCORES
from ..averages import mean
from ..result import Result
from ..transfer import average
from .folder import RunFolder, run_folders

# Columns that differ when the same run is carried out again.
MEASURED = (
    "seconds_in_all",
    "seconds_of_training",
    "milliseconds_a_step",
    "target_opened_at",
    "commit",
    "torch_version",
    "device",
)


def checked_config(config: Mapping[str, Any] | None) -> dict[str, Any]:
    """The parts of a run's description that tables use, as far as they have the right types.

    It only describes a run: a part that cannot be used is left out.
    """
    checked: dict[str, Any] = {}
    planned, named_by, commit = (
        (config or {}).get(key) for key in ("planned", "named_by", "commit")
    )
    if isinstance(planned, Mapping):
        checked["planned"] = {
            key: value
            for key, value in planned.items()
            if (key in ("seed", "trial") and type(value) is int and abs(value) < 2**63)
            or (key not in ("seed", "trial") and isinstance(value, str | int | bool))
        }
    if isinstance(named_by, Mapping):
        versions = named_by.get("results_versions")
        versions = versions if isinstance(versions, Mapping) else {}
        whole = {key: value for key, value in versions.items() if type(value) is int}
        checked["named_by"] = {**named_by, "results_versions": whole}
    if isinstance(commit, str):
        checked["commit"] = commit
    return checked


class Store:
    """A folder of runs."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs

    def folder(self, name: str) -> RunFolder:
        """The folder of a run."""
        return RunFolder(self.runs / name)

    def read(self, name: str) -> Result:
        """The result of a run."""
        return self.folder(name).read()

    def results(
        self, damaged: list[str] | None = None
    ) -> Iterator[tuple[str, Result, dict[str, Any]]]:
        """Name, result and config of every finished run.

        Damaged results are reported in `damaged` and left out; without it, they raise.
        """
        for folder in run_folders(self.runs):
            if not folder.finished():
                continue
            try:
                yield folder.path.name, folder.read(), checked_config(folder.read_config())
            except StateError as error:
                if damaged is None:
                    raise
                damaged.append(str(error))


def tidy_table(store: Store, damaged: list[str] | None = None) -> pd.DataFrame:
    """One row per run, sorted so that the same runs give the same table."""
    if not store.runs.is_dir():
        raise FarshoreError(
            f"there is no folder {str(store.runs)!r}: give one that `farshore run --out`, "
            "`farshore compare` or `farshore sweep` wrote into"
        )
    rows = [row(name, result, config) for name, result, config in store.results(damaged)]
    if not rows:
        raise FarshoreError(f"{store.runs} contains no finished run")
    frame = pd.DataFrame(rows)
    return frame.sort_values(
        ["benchmark", "target", "method", "seed_number", "trial", "run"],
        na_position="last",
        ignore_index=True,
    )


def row(name: str, result: Result, config: dict[str, Any]) -> dict[str, Any]:
    """One run as a row: first what it is, then its scores, then its cost."""
    run = result.run
    done = result.status == "done"
    scores = result.target.scores if result.target is not None else {}
    source_scores = result.source_scores.get("validation", [])
    planned = config.get("planned", {})
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
        "target": result.target.name if result.target is not None else (run.target or ""),
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
        **{
            f"source_validation_{name}": mean([each[name] for each in source_scores])
            for name in SCORES
        },
        "backward_transfer": result.backward_transfer(),
        "forgetting": result.forgetting(),
        "rows_per_step_at_the_end": result.rows_per_step[-1] if result.rows_per_step else None,
        "memory_bytes": result.memory_bytes,
        "method_bytes": result.method_bytes,
        "weights": result.target.weights if result.target is not None else "",
        "message": result.message,
        "seconds_in_all": result.seconds["total"],
        "seconds_of_training": result.seconds["training"],
        "milliseconds_a_step": sum(result.step_milliseconds) / len(result.step_milliseconds)
        if result.step_milliseconds
        else None,
        "target_opened_at": result.target.opened_at if result.target is not None else "",
        "commit": config.get("commit", ""),
        "torch_version": result.versions["torch"],
        "device": run.device,
    }
