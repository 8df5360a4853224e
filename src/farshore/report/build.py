"""From a folder of runs, one run of it, or one recorded experiment to a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import catalog
from ..benchmarks import BENCHMARKS
from ..errors import FarshoreError
from .names import several
from .opening import find_runs
from .overlay import Overlay
from .paper import PAPER
from .provenance import Used, mixed_versions, provenance
from .reading import ReadingStore
from .swept import Swept, swept_tables
from .table import Report, Table
from .unplanned import NO_EXPERIMENT, UnplannedRun, unplanned_tables


def build_report(path: Path, overlay: Overlay = PAPER, *, experiment: str | None = None) -> Report:
    """All tables of a folder of runs, or those of one recorded experiment; of the folder of one run
    or of its result.json, this run alone.

    What is wrong with some of it is in the report's `problems`; where there is nothing at all to
    show, one error says so.
    """
    asked = find_runs(path, experiment)
    store = ReadingStore(asked.folder, asked.run)
    swept = swept_tables(store, overlay, asked.experiment) if asked.run is None else Swept()
    unplanned: list[UnplannedRun] = []
    used: list[Used] = []
    for name, result, config in store.all():
        if name in swept.names:
            used.append(Used(result, config))
        elif asked.run is not None:  # on its own, whatever planned it
            unplanned.append(UnplannedRun(name, result, {**config, "planned": {}}))
        elif asked.experiment is None:
            unplanned.append(UnplannedRun(name, result, config))
    problems = [*store.problems, *swept.problems]
    tables = list(swept.tables)
    kept, leftovers = _sort_unplanned(unplanned, {table.name for table in tables})
    problems += leftovers
    tables += unplanned_tables(kept, overlay)
    used += [
        Used(each.result, each.config, alone=each.experiment == NO_EXPERIMENT) for each in kept
    ]
    if not tables and not problems:
        raise FarshoreError(
            f"{path} holds no finished run{f' of {experiment}' if experiment else ''}: give a "
            "folder that `farshore run --out`, `farshore compare` or `farshore sweep` wrote into"
        )
    problems += [*mixed_versions(used), *_missing(tables)]
    return Report(
        title=_title(tables, asked.folder),
        tables=tuple(tables),
        provenance=provenance(used, swept.experiments),
        problems=tuple(problems),
        experiments=tuple(swept.experiments),
    )


def _sort_unplanned(
    runs: Sequence[UnplannedRun], tabled: set[str]
) -> tuple[list[UnplannedRun], list[str]]:
    """Runs that no plan names: those of an experiment without a table get one, of the newest
    results version of each system.

    The others are named in sentences: a changed experiment or a raised results version leaves such
    runs behind.
    """
    newest: dict[tuple[str, str], int] = {}
    for run in runs:
        for key, version in _versions(run).items():
            newest[key] = max(version, newest.get(key, 0))
    now = {key: _current(*key) for key in newest}
    old = [
        run for run in runs if any(version < newest[key] for key, version in _versions(run).items())
    ]
    behind = [
        run for run in runs if any(version < now[key] for key, version in _versions(run).items())
    ]
    older, lagging = {run.name for run in old}, {run.name for run in behind}
    behind = [run for run in behind if run.name not in older]
    kept = [run for run in runs if run.name not in older and run.experiment not in tabled]
    stray = [run for run in runs if run.name not in older | lagging and run.experiment in tabled]
    sentences = []
    if old:
        sentences.append(
            f"{_listing(old)} of an older results version than others of the same system are in "
            "no table."
        )
    if behind:
        sentences.append(
            f"{_listing(behind)} of an older results version than the installed farshore has; "
            "the same command would repeat them."
        )
    if stray:
        sentences.append(
            f"{_listing(stray)} of no recorded plan (the experiment has changed since) are in no "
            "table."
        )
    return kept, sentences


def _versions(run: UnplannedRun) -> dict[tuple[str, str], int]:
    named: Any = run.config.get("named_by")
    versions = named.get("results_versions", {}) if isinstance(named, Mapping) else {}
    names = {"method": run.result.run.method, "benchmark": run.result.run.benchmark}
    return {(kind, name): int(versions[kind]) for kind, name in names.items() if kind in versions}


def _current(kind: str, name: str) -> int:
    if kind == "method":
        return catalog.find(name).results_version if name in catalog.names() else 0
    return BENCHMARKS.get(name).results_version if name in BENCHMARKS else 0


def _listing(runs: Sequence[UnplannedRun]) -> str:
    counts = Counter(run.result.run.method for run in runs).most_common()
    shown = ", ".join(f"{count} of {method}" for method, count in counts[:4])
    return f"{several(len(runs), 'run')} ({shown}{' and others' if len(counts) > 4 else ''})"


def _missing(tables: Sequence[Table]) -> list[str]:
    """Data sets on which nothing has run are problems too: without their columns a table looks
    whole.
    """
    return [f"{table.name}: {text}" for table in tables for text in table.lacking_sentences]


def _title(tables: Sequence[Table], folder: Path) -> str:
    return (
        tables[0].title
        if len(tables) == 1
        else f"{len(tables)} tables of {folder.resolve().name}"
        if tables
        else folder.resolve().name
    )
