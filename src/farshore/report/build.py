"""Builds the report of a folder of runs, of one run, or of one recorded experiment."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..benchmarks import BENCHMARKS
from ..errors import FarshoreError
from ..runs import catalog
from ..runs.store.read_once import ReadingStore
from .names import several
from .next_step import next_step
from .opening import find_runs
from .overlay import Overlay
from .paper import PAPER
from .provenance import Used, mixed_versions, provenance
from .swept import Swept, swept_tables
from .table import Report, Table
from .unplanned import NO_EXPERIMENT, UnplannedRun, unplanned_tables
from .verdict import judge


def build_report(path: Path, overlay: Overlay = PAPER, *, experiment: str | None = None) -> Report:
    """Build the report of a folder of runs, or of one experiment that is recorded in it.

    If `path` is the folder of one run or its result.json, the report shows this run alone. Errors
    in some of the runs are listed in the report's `problems`; if there is nothing to show, an error
    is raised.
    """
    requested = find_runs(path, experiment)
    store = ReadingStore(requested.folder, requested.run)
    swept = swept_tables(store, overlay, requested.experiment) if requested.run is None else Swept()
    unplanned: list[UnplannedRun] = []
    used: list[Used] = []
    for name, result, config in store.all():
        if name in swept.names:
            used.append(Used(result, config))
        elif requested.run is not None:  # shown on its own, even if an experiment planned it
            unplanned.append(UnplannedRun(name, result, {**config, "planned": {}}))
        elif requested.experiment is None:
            unplanned.append(UnplannedRun(name, result, config))
    problems = [*store.problems, *swept.problems]
    tables = list(swept.tables)
    tabled, left_out = _sort_unplanned(unplanned, {table.name for table in tables})
    problems += left_out
    tables += unplanned_tables(tabled, overlay)
    used += [Used(run.result, run.config, alone=run.experiment == NO_EXPERIMENT) for run in tabled]
    if not tables and not problems:
        raise FarshoreError(
            f"{path} contains no finished run{f' of {experiment}' if experiment else ''}: give a "
            "folder that `farshore run --out`, `farshore compare` or `farshore sweep` wrote into"
        )
    problems += [*mixed_versions(used), *_missing(tables)]
    report = Report(
        title=_title(tables, requested.folder),
        tables=tuple(tables),
        provenance=provenance(used, swept.experiments),
        problems=tuple(problems),
        experiments=tuple(swept.experiments),
    )
    main = report.main_table
    if main is None or main.contest is None:
        return report
    command, reason = next_step(
        main.contest,
        judge(main.contest),
        swept.experiments.get(main.name),
        requested.folder,
    )
    return replace(report, next_command=command, next_reason=reason)


def _sort_unplanned(
    runs: Sequence[UnplannedRun], tabled: set[str]
) -> tuple[list[UnplannedRun], list[str]]:
    """The runs of no plan that get a table, and sentences about the others.

    Runs of an experiment without a table get one, with the newest results version of each system.
    The others are left over from a changed experiment or an older results version.
    """
    newest: dict[tuple[str, str], int] = {}
    for run in runs:
        for key, version in _versions(run).items():
            newest[key] = max(version, newest.get(key, 0))
    installed = {key: _installed_version(*key) for key in newest}
    superseded = [
        run for run in runs if any(version < newest[key] for key, version in _versions(run).items())
    ]
    outdated = [
        run
        for run in runs
        if any(version < installed[key] for key, version in _versions(run).items())
    ]
    superseded_names = {run.name for run in superseded}
    outdated_names = {run.name for run in outdated}
    outdated = [run for run in outdated if run.name not in superseded_names]
    current = [run for run in runs if run.name not in superseded_names]
    shown = [run for run in current if run.experiment not in tabled]
    stray = [run for run in current if run.name not in outdated_names and run.experiment in tabled]
    sentences = []
    if superseded:
        sentences.append(
            f"{_listing(superseded)} of an older results version than others of the same system "
            "are left out of the tables."
        )
    if outdated:
        sentences.append(
            f"{_listing(outdated)} of an older results version than the installed farshore has; "
            "the same command would repeat them."
        )
    if stray:
        sentences.append(
            f"{_listing(stray)} that belong to no recorded plan (the experiment has changed since) "
            "are left out of the tables."
        )
    return shown, sentences


def _versions(run: UnplannedRun) -> dict[tuple[str, str], int]:
    """The results versions that a run was made with, by (kind, name) of the system."""
    named: Any = run.config.get("named_by")
    versions = named.get("results_versions", {}) if isinstance(named, Mapping) else {}
    names = {"method": run.result.run.method, "benchmark": run.result.run.benchmark}
    return {(kind, name): int(versions[kind]) for kind, name in names.items() if kind in versions}


def _installed_version(kind: str, name: str) -> int:
    """The results version of the installed system; 0 if it is not installed."""
    if kind == "method":
        return catalog.find(name).results_version if name in catalog.names() else 0
    return BENCHMARKS.get(name).results_version if name in BENCHMARKS else 0


def _listing(runs: Sequence[UnplannedRun]) -> str:
    counts = Counter(run.result.run.method for run in runs).most_common()
    shown = ", ".join(f"{count} of {method}" for method, count in counts[:4])
    return f"{several(len(runs), 'run')} ({shown}{' and others' if len(counts) > 4 else ''})"


def _missing(tables: Sequence[Table]) -> list[str]:
    """Sentences about data sets without runs: a table that leaves them out looks complete."""
    return [f"{table.name}: {text}" for table in tables for text in table.lacking_sentences]


def _title(tables: Sequence[Table], folder: Path) -> str:
    return (
        tables[0].title
        if len(tables) == 1
        else f"{len(tables)} tables of {folder.resolve().name}"
        if tables
        else folder.resolve().name
    )
