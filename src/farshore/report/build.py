"""The report of a folder of runs, of one run, or of one recorded experiment."""

import shlex
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pandas as pd

from ..base.files import write_inside
from ..data.tables.spreadsheet import as_csv_text
from ..errors import FarshoreError
from ..results.collect import WRITERS, Collected, collect
from ..results.data_sets import Significance
from ..results.describe import conditions, describe, is_ranked
from ..results.measures import MEASURES, TARGET
from ..results.next_step import next_step
from ..results.published import published_for, read_published
from ..results.select import observed
from ..results.tables import Table, make_table, nothing_on
from ..results.verdict import Verdict, judge
from ..runs.plan.experiment import Experiment
from ..runs.store.store import TINY
from .csv_form import as_csv
from .latex_form import as_latex
from .markdown_form import as_markdown
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

    @property
    def significance(self) -> Significance | None:
        """The tests over data sets behind the verdict, if there are any."""
        return self.verdict.significance if self.verdict is not None else None

    @property
    def conclusions(self) -> Sequence[str]:
        """What these tests say."""
        return self.significance.sentences if self.significance is not None else ()


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

        def size(section: Section) -> tuple[int, int]:
            titles = section.frame.loc[section.frame["score"].notna(), "benchmark"]
            return titles.nunique(), len(titles)

        return max(judged, key=size, default=None)

    @property
    def has_published(self) -> bool:
        """Whether any table has published numbers."""
        return any(table.has_published for table in self.tables)


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
    found = {name: collected.experiment(name) for name in collected.names}
    experiments = {name: each for name, each in found.items() if each is not None}
    frame = collected.shown()
    problems += mixed_versions(frame)
    # A table that leaves out data sets without runs looks complete.
    tables = [section.table for section in sections if section.table.absent]
    problems += [f"{table.name}: {nothing_on(table.absent)}" for table in tables]
    title = collected.folder.resolve().name
    if sections:
        several = f"{len(sections)} tables of {title}"
        title = several if len(sections) > 1 else sections[0].table.title
    origin = provenance(frame, experiments)
    report = Report(title, tuple(sections), provenance=origin, problems=tuple(problems))
    main = report.main
    if main is None or main.verdict is None:
        return report
    experiment = collected.experiment(main.table.name)
    command, reason = next_step(main.frame, main.verdict, experiment, collected.folder)
    return replace(report, next_command=command, next_reason=reason)


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
    described = describe(name, experiment, plans, frame, measure)
    ranking = verdict.ranking if verdict is not None else None
    table = make_table(frame, described, measure, ranking, numbers)
    return Section(table, frame, verdict)


def published_name(experiment: Experiment | None) -> str:
    """The name under which published numbers are looked up.

    A comparison is shown with them, as `compare`, only if it ran under the benchmark's conditions.
    """
    if experiment is None or experiment.command != "compare":
        return experiment.name if experiment is not None else ""
    what = {"benchmarks", "methods", "orders", "search"}
    default = all(
        part.orders == ["listed"]
        and not part.model_dump(exclude=what, exclude_defaults=True)
        and not any(data.options for data in part.data)
        for part in experiment.parts
    )
    return "compare" if default else ""


TEXT_FORMS: dict[str, Callable[[Report], str]]
TEXT_FORMS = {".md": as_markdown, ".csv": as_csv, ".tex": as_latex}
FORMS = (".html", *TEXT_FORMS)
FIGURE_FORMS = (".html", ".csv", ".json")
DIAGRAM, DIAGRAM_FORMS = "critical-difference", (".svg", ".csv")


def write_report(
    runs: Path, out: Path, *, experiment: str | None = None, published: Path | None = None
) -> list[str]:
    """Write the report of runs, with `published` numbers beside if given; return its problems."""
    if out.suffix not in FORMS:
        raise FarshoreError(f"--out {str(out)!r} is not allowed: end it in {', '.join(FORMS)}")
    numbers = read_published(published) if published is not None else None
    if out.suffix == ".html":
        from .page import needed

        needed()
    collected = collect(runs, experiment)
    report = report_of(collected, numbers)
    if out.suffix == ".html":
        from .figures.shape import draw_all
        from .page import page

        drawings = draw_all(collected.shown(), collected.folder)
        text = page(report, drawings, source=_typed(runs, experiment))
    else:
        text = TEXT_FORMS[out.suffix](report)
    write_inside(runs, out, text.encode())
    return list(report.problems)


def write_figure(runs: Path, name: str, out: Path, *, experiment: str | None = None) -> None:
    """Write one figure as a page, as CSV or as plotly's JSON; the rank diagram as SVG or CSV."""
    forms = DIAGRAM_FORMS if name == DIAGRAM else FIGURE_FORMS
    if out.suffix not in forms:
        why = f"--out {str(out)!r} is not allowed for this figure: end it in {', '.join(forms)}"
        raise FarshoreError(why)
    from .page import needed

    needed()
    if name == DIAGRAM:
        from .figures.critical_difference import diagram

        main = build_report(runs, experiment=experiment).main
        frame, drawn = diagram(main.significance if main is not None else None)
        write_inside(runs, out, (drawn if out.suffix == ".svg" else as_csv_text(frame)).encode())
        return
    from .figures.shape import SCORES, check_figure, draw_one, no_data
    from .page import figure_data, main_figure, page

    check_figure(name)
    collected = collect(runs, experiment)
    if name == SCORES:
        drawing = main_figure(report_of(collected))
    else:
        drawing = draw_one(name, collected.shown(), collected.folder)
    if drawing is None:
        raise no_data(name, "a run with a score on the target")
    if out.suffix == ".csv":
        text = as_csv_text(drawing.frame)
    elif out.suffix == ".json":
        text = figure_data([drawing])
    else:
        text = page(Report(drawing.title), [drawing], source=_typed(runs, experiment))
    write_inside(runs, out, text.encode())


def _typed(runs: Path, experiment: str | None) -> str:
    """The arguments of `farshore report` for the same runs."""
    return shlex.join([str(runs), *(["--experiment", experiment] if experiment else [])])
