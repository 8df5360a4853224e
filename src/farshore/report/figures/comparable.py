"""The runs that a figure may compare, and means over them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from ...results.select import observed
from ...results.summary import Place, Unit, estimate, metric_of
from ...results.words import several
from ...runs import catalog
from ...runs.store.folder import FEATURES

PLACE = ["benchmark", "target"]
# What must be equal at a place for runs to be comparable.
CONDITIONS = ["sources", "steps", "memory", "scenario_seed"]
# What every line of the numbers behind a figure names; `row` becomes the column `method`.
OF_ROW = [*PLACE, "metric", "group", "row"]


def finished(frame: pd.DataFrame, folder: Path) -> pd.DataFrame:
    """The finished runs in the order of the catalog, with what figures need of their results.

    folder: contains the runs, and thus the files of features that some of them saved.
    """
    scored = frame["score"].notna() | ~frame["selected"].astype(bool)
    row = [frame[name] for name in ("experiment", *PLACE, "row")]
    frame = frame.assign(complete=scored.groupby(row).transform("all"))
    runs = frame[(frame["status"] == "done") & (frame["held_out"] == "")]
    known = [entry.name for members in catalog.grouped().values() for entry in members]
    files = [folder / name / FEATURES for name in runs["run"]]
    results = list(runs["result"])
    validation = pd.Series([result.source_score(1) for result in results], runs.index, float)
    runs = runs.assign(
        number=runs["method"].map({name: index for index, name in enumerate(known)}),
        listed=[result.run.order is None for result in results],
        steps=[result.steps for result in results],
        memory=[result.memory for result in results],
        scenario_seed=[result.run.scenario_seed for result in results],
        target_score_unseen=runs["score"].astype(float),
        source_validation_score=validation,
        features=[str(file) if file.is_file() else "" for file in files],
    )
    by, ascending = ["number", "listed"], [True, False]
    return runs.sort_values(by, ascending=ascending, kind="stable", ignore_index=True)


def comparable(runs: pd.DataFrame, vary: str = "") -> pd.DataFrame:
    """The selected runs at each place under one set of conditions, but for the one that varies.

    The listed order of the sources is preferred, then the conditions with the most methods. Where
    experiments share conditions, the one with the most methods counts: an ablation repeats the
    conditions of a comparison with a fixed setting.
    """
    runs = observed(runs)
    fixed = [*PLACE, *(name for name in CONDITIONS if name != vary)]
    runs = runs.assign(
        wide=runs.groupby(fixed)["row"].transform("nunique"),
        widest=runs.groupby("experiment")["row"].transform("nunique"),
    )
    preferred = ["wide"] if vary == "sources" else ["listed", "wide"]
    chosen = runs.sort_values(preferred, ascending=False, kind="stable").drop_duplicates(PLACE)
    runs = runs.merge(chosen[fixed], on=fixed)
    runs = runs.sort_values("widest", ascending=False, kind="stable")
    first = runs.groupby([*PLACE, *CONDITIONS, "row"])["experiment"].transform("first")
    return runs[runs["experiment"] == first].drop_duplicates("run").sort_index()


def everywhere(runs: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """The runs of those groups that ran at every place."""
    place = runs.groupby(PLACE).ngroup()
    reached = place.groupby([runs[name] for name in by]).transform("nunique")
    return runs[reached == place.nunique()]


def estimates(
    runs: pd.DataFrame, by: Sequence[str], column: str, unit: Unit = Unit.SEED
) -> pd.DataFrame:
    """Mean of a column and its standard error over units, one line per group of runs."""
    metric = metric_of(runs)
    levels = ["benchmark", "target", "last_source", "order", "seed", column]
    groups: dict[tuple[Any, ...], dict[Place, list[float]]] = {}
    lines = runs.dropna(subset=[column])[[*by, *levels]].itertuples(index=False, name=None)
    for line in lines:
        key, place = line[: len(by)], line[len(by) : -1]
        groups.setdefault(key, {}).setdefault(place, []).append(line[-1])
    rows = []
    for key, places in groups.items():
        scores = {place: sum(values) / len(values) for place, values in places.items()}
        found = estimate(scores, unit, metric)
        if found is not None:
            measured = {column: found.mean, "standard_error": found.error}
            counted = {"unit": str(unit), "units": found.units}
            rows.append({**dict(zip(by, key, strict=True)), **measured, **counted})
    return pd.DataFrame(rows).rename(columns={"row": "method"})


def error_bars(frame: pd.DataFrame) -> str:
    """What the error bars of a picture are; empty if it has none."""
    drawn = frame[frame["standard_error"].notna()]
    if drawn.empty:
        return ""
    least, most, unit = drawn["units"].min(), drawn["units"].max(), drawn["unit"].iloc[0]
    over = several(most, unit) if least == most else f"{least} to {most} {unit}s"
    return f"Error bars: the standard error of the mean over {over}."
