"""The report of a folder of runs, of one run, or of one recorded experiment."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import pandas as pd

from ..errors import FarshoreError
from ..results.collect import WRITERS, Collected, collect
from ..results.describe import conditions, describe, is_ranked
from ..results.measures import MEASURES, TARGET
from ..results.next_step import next_step
from ..results.published import published_for
from ..results.select import observed
from ..results.tables import Table, make_table, nothing_on
from ..results.verdict import Verdict, judge
from ..runs.plan.experiment import Experiment
from ..runs.plan.record import TINY
from .provenance import Provenance, mixed_versions, provenance


@dataclass(frozen=True)
class Section:
    """A table; the verdict on its runs, if it is about scores on the target; the runs."""

    table: Table
    frame: pd.DataFrame
    verdict: Verdict | None = None

    @property
    def conditions(self) -> str:
        """What was measured, in one line."""
        return conditions(self.frame)


@dataclass(frozen=True)
class Report:
    """A whole report.

    problems: damaged runs, mixed versions, missing data sets; they come first for readers.
    next_command, next_reason: a command to type next and what for; empty if there is none.
    """

    title: str
    sections: tuple[Section, ...] = ()
    provenance: Provenance = field(default_factory=Provenance)
    problems: tuple[str, ...] = ()
    next_command: str = ""
    next_reason: str = ""

    @property
    def tables(self) -> list[Table]:
        """The tables."""
        return [section.table for section in self.sections]

    @property
    def main(self) -> Section | None:
        """What the page's verdict is about: the table with most data sets, then with most runs."""
        judged = [section for section in self.sections if section.verdict is not None]
        return max(judged, key=lambda section: _size(section.frame), default=None)

    @property
    def has_published(self) -> bool:
        """Whether any table has published numbers."""
        return any(table.has_published for table in self.tables)


def _size(frame: pd.DataFrame) -> tuple[int, int]:
    scored = frame[frame["score"].notna()]
    return int(scored["benchmark"].nunique()), len(scored)


def build_report(
    path: Path, *, experiment: str | None = None, published: pd.DataFrame | None = None
) -> Report:
    """Build the report of a folder of runs, or of one experiment that is recorded in it.

    If `path` is the folder of one run or its result.json, the report shows this run alone. Errors
    in some of the runs are listed in the report's `problems`; if there is nothing to show, an error
    is raised.
    """
    return report_of(collect(path, experiment), published)


def report_of(collected: Collected, published: pd.DataFrame | None = None) -> Report:
    """The report of what was read from a folder."""
    problems = list(collected.problems)
    sections = []
    for name in collected.names:
        section = _section(collected, name, published)
        if section.table.rows:
            sections.append(section)
        else:
            problems.append(f"{name} has no table because none of its runs has finished")
    if not sections and not problems:
        raise FarshoreError(f"{collected.folder} contains no finished run: give a folder {WRITERS}")
    frame = collected.shown()
    problems += [*mixed_versions(frame), *_absent(sections)]
    report = Report(
        title=_title(sections, collected.folder),
        sections=tuple(sections),
        provenance=provenance(frame, _experiments(collected)),
        problems=tuple(problems),
    )
    main = report.main
    if main is None or main.verdict is None:
        return report
    command, reason = next_step(
        main.frame, main.verdict, collected.experiment(main.table.name), collected.folder
    )
    return Report(
        report.title, report.sections, report.provenance, report.problems, command, reason
    )


def _section(collected: Collected, name: str, published: pd.DataFrame | None) -> Section:
    experiment = collected.experiment(name)
    frame = collected.table_of(name)
    shown = experiment.table if experiment is not None else None
    measure = MEASURES[shown] if shown is not None else TARGET
    if shown == "naive and tailored":
        frame = frame[frame["group"].isin(["finetune", "naive", "tailored"])]
    plans = [collected.plans[each] for each in collected.read_by(name) if each in collected.plans]
    verdict = None
    if measure is TARGET and is_ranked(plans) and observed(frame)["score"].notna().any():
        verdict = judge(frame)
    numbers = None
    if published is not None and not name.endswith(TINY):
        numbers = published_for(published, published_name(experiment))
    table = make_table(
        frame,
        describe(name, experiment, plans, frame, measure),
        measure,
        verdict.ranking if verdict is not None else None,
        numbers,
    )
    return Section(table, frame, verdict)


def published_name(experiment: Experiment | None) -> str:
    """The name under which published numbers are looked up.

    A comparison is shown with them, as `compare`, only if it ran under the benchmark's conditions.
    """
    if experiment is None or experiment.command != "compare":
        return experiment.name if experiment is not None else ""
    default = all(
        part.orders == ["listed"]
        and not part.model_dump(
            exclude={"benchmarks", "methods", "orders", "search"}, exclude_defaults=True
        )
        and not any(data.options for data in part.data)
        for part in experiment.parts
    )
    return "compare" if default else ""


def _experiments(collected: Collected) -> dict[str, Experiment]:
    found = {name: collected.experiment(name) for name in collected.names}
    return {name: experiment for name, experiment in found.items() if experiment is not None}


def _absent(sections: Sequence[Section]) -> list[str]:
    """Sentences about data sets without runs: a table that leaves them out looks complete."""
    tables = [section.table for section in sections]
    return [f"{table.name}: {nothing_on(table.absent)}" for table in tables if table.absent]


def _title(sections: Sequence[Section], folder: Path) -> str:
    if len(sections) == 1:
        return sections[0].table.title
    name = folder.resolve().name
    return f"{len(sections)} tables of {name}" if sections else name
