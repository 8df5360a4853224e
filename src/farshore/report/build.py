"""From a folder of runs, or a comparison, to a report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from .. import catalog
from ..benchmarks import BENCHMARKS
from ..comparison import Comparison
from ..errors import FarshoreError
from .names import several
from .overlay import Overlay
from .paper import PAPER
from .provenance import Used, mixed_versions, provenance
from .reading import ReadingStore
from .swept import swept_tables
from .table import Report, Table
from .unplanned import Loose, comparison_table, loose_tables, read_comparison

COMPARISON = "comparison.json"


def build_report(folder: Path, overlay: Overlay = PAPER) -> Report:
    """All tables of a folder that `farshore sweep` or `farshore compare` wrote into, or of one
    comparison.json.

    What is wrong with some of it stands in the report's `problems`; where there is nothing at all
    to show, one error says so.
    """
    if folder.is_file():
        return _of_comparison(folder, overlay)
    if not folder.is_dir():
        raise FarshoreError(
            f"there is no folder {str(folder)!r}: give the one that `farshore sweep --runs` or "
            "`farshore compare` wrote into"
        )
    store = ReadingStore(folder)
    swept = swept_tables(store, overlay)
    loose: list[Loose] = []
    used: list[Used] = []
    for name, result, config in store.all():
        if name in swept.names:
            used.append(Used(result, config))
        else:
            loose.append(Loose(name, result, config))
    problems = [*store.problems, *swept.problems]
    tables = list(swept.tables)
    kept, said = _sort_loose(loose, {table.name for table in tables})
    problems += said
    if kept:
        tables += loose_tables(kept, overlay)
        used += [Used(each.result, each.config) for each in kept]
    comparisons = _comparisons(folder, problems)
    tables += [comparison_table(found, name, overlay) for name, found in comparisons.items()]
    used += [each for found in comparisons.values() for each in _used(found)]
    if not tables and not problems:
        raise FarshoreError(
            f"{folder} holds no finished run and no comparison: give a folder that `farshore "
            "sweep --runs` or `farshore compare` wrote"
        )
    problems += [*mixed_versions(used), *_missing(tables)]
    return Report(
        title=_title(tables, folder),
        tables=tuple(tables),
        provenance=provenance(used, swept.experiments, list(comparisons.values())),
        problems=tuple(problems),
        experiments=tuple(swept.experiments),
    )


def _of_comparison(path: Path, overlay: Overlay) -> Report:
    found = read_comparison(path)
    table = comparison_table(found, f"compare-{found.benchmark}", overlay)
    used = _used(found)
    return Report(table.title, (table,), provenance(used, {}, [found]), tuple(mixed_versions(used)))


def _used(found: Comparison) -> list[Used]:
    return [Used(result, {"commit": found.commit}) for result in found.results]


def _comparisons(folder: Path, problems: list[str]) -> dict[str, Comparison]:
    """That of the folder itself and those in folders inside it, where `farshore compare` puts
    them.
    """
    found: dict[str, Comparison] = {}
    for path in [folder / COMPARISON, *sorted(folder.glob(f"*/{COMPARISON}"))]:
        if not path.is_file():
            continue
        try:
            read = read_comparison(path)
        except FarshoreError as error:
            problems.append(f"{error}; it is left out")
            continue
        name = path.parent.name if path.parent != folder else f"compare-{read.benchmark}"
        found[name] = read
    return found


def _sort_loose(runs: Sequence[Loose], tabled: set[str]) -> tuple[list[Loose], list[str]]:
    """Runs that no plan names: those of an experiment without a table get one, of the newest
    results version of each system.

    The others are said: a changed experiment or a raised results version leaves such runs behind.
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
    said = []
    if old:
        said.append(
            f"{_listing(old)} of an older results version than others of the same system are in "
            "no table."
        )
    if behind:
        said.append(
            f"{_listing(behind)} of an older results version than the installed farshore has; "
            "the same sweep would repeat them."
        )
    if stray:
        said.append(
            f"{_listing(stray)} of no recorded plan (the experiment has changed since) are in no "
            "table."
        )
    return kept, said


def _versions(run: Loose) -> dict[tuple[str, str], int]:
    named: Any = run.config.get("named_by")
    found = named.get("results_versions", {}) if isinstance(named, Mapping) else {}
    names = {"method": run.result.run.method, "benchmark": run.result.run.benchmark}
    return {(kind, name): int(found[kind]) for kind, name in names.items() if kind in found}


def _current(kind: str, name: str) -> int:
    if kind == "method":
        return catalog.find(name).results_version if name in catalog.names() else 0
    return BENCHMARKS.get(name).results_version if name in BENCHMARKS else 0


def _listing(runs: Sequence[Loose]) -> str:
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
