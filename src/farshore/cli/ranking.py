"""The ranking, the verdict and the next command on the terminal, the same for all commands."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import FarshoreError
from .engine_options import print_line
from .flags import answers

if TYPE_CHECKING:
    import pandas as pd
    from rich.console import Console

    from ..results.summary import Ranking, Standing
    from ..results.verdict import Verdict
    from ..runs.plan.experiment import Experiment

# Headings above the rows that are not ranked.
UNRANKED = {
    "continual": "scores are missing",
    "offline": "all data at once",
    "adaptation": "adapted to the target",
    "reference": "for reference",
}
# Headings of further columns: the number of a run, and its form; None is that of the metric.
FURTHER = {
    "sources train": ("source_train_score", None),
    "sources valid.": ("source_validation_score", None),
    "BWT": ("backward_transfer", None),
    "s per run": ("seconds", ".1f"),
    "rows per step": ("rows_per_step", ".0f"),
}
# A table of the units has at most this many rows; targets and data sets are always shown.
MOST_ORDERS = 12


def print_results(
    console: "Console",
    frame: "pd.DataFrame",
    experiment: "Experiment | None",
    runs: Path,
    *,
    more: Sequence[str] = (),
    where: str = "",
) -> None:
    """Print ranking, verdict, what was measured, what backs the verdict, and what to type next.

    more: further sentences; where: a line that says where the runs are.
    """
    from ..results.describe import conditions
    from ..results.next_step import next_step
    from ..results.verdict import judge
    from .tables import print_next

    verdict, title, measured = judge(frame), title_of(frame, experiment), conditions(frame)
    command, reason = next_step(frame, verdict, experiment, runs)
    told = {"title": title, "conditions": measured, **verdict.plain(), "more": more}
    answers.setdefault("comparisons", []).append({**told, "next": command})
    print_ranking(console, verdict, title, further=further_columns(frame))
    print_units(console, frame, verdict.ranking)
    details = [f"- {text}" for text in (*verdict.details, *more)]
    for text in (verdict.sentence, measured, *details):
        print_line(console, text)
    if where:
        print_line(console, where)
    print_next(console, command, reason)


def title_of(frame: "pd.DataFrame", experiment: "Experiment | None") -> str:
    """What the experiment is about; of runs without one, their method and data."""
    if experiment is not None:
        return experiment.about
    names = [list(dict.fromkeys(frame[name])) for name in ("method", "benchmark")]
    single = len(names[0]) == len(names[1]) == 1
    return " on ".join(name for (name,) in names) if single else str(frame["experiment"].iloc[0])


def write_page(runs: Path, name: str) -> str:
    """Write an experiment's page to the store; return where it is, or why there is none."""
    from ..report.build import write_report

    path = runs / f"{name}.html"
    try:
        write_report(runs, path, experiment=name)
    except FarshoreError as error:
        return f"no {path.name}: {error}"
    answers["page"] = path
    return f"the page is {path}"


def print_ranking(
    console: "Console",
    verdict: "Verdict",
    title: str,
    *,
    further: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Print the rows by rank, and what errors and intervals are over.

    further: more columns by heading, then by row. They are left out where the terminal is too
        narrow.
    """
    from ..results.verdict import legend

    ranking = verdict.ranking
    minus = f"minus {ranking.reference}"
    header = ["method", "rank", "unseen target", "worst", "best"]
    header += [minus, "better in"] if ranking.reference else []
    header += further or {}
    rows: list[list[str]] = []
    heading = ""
    for standing in (each for each in ranking.standings if each.estimate is not None):
        above = "" if standing.rank is not None else UNRANKED.get(standing.kind, standing.kind)
        if above != heading:
            heading = above
            rows += [[""] * len(header), [heading, *[""] * (len(header) - 1)]]
        more = [of_row.get(standing.row, "-") for of_row in (further or {}).values()]
        rows.append([*_cells(standing, ranking), *more])
    if not rows:
        return
    secondary = [minus, "worst", "best", "better in", *(further or {})]
    _print(console, f"{title}: {_heading(ranking)}", header, rows, secondary)
    for text in legend(ranking):
        print_line(console, text)


def _heading(ranking: "Ranking") -> str:
    unit = f" in {ranking.metric.unit.strip()}" if ranking.metric.unit else ""
    return f"{ranking.metric.label} on the unseen target{unit}"


def _print(
    console: "Console",
    title: str,
    header: Sequence[str],
    rows: Sequence[Sequence[str]],
    secondary: Sequence[str],
) -> None:
    from .tables import fold, plain_table

    shown, cells, left_out = fold(header, rows, secondary, console.width)
    console.print(plain_table(title, shown, cells))
    if left_out:
        print_line(console, f"a wider terminal also shows: {', '.join(left_out)}")


def _cells(standing: "Standing", ranking: "Ranking") -> list[str]:
    text, found, difference = ranking.metric.text, standing.estimate, standing.difference
    assert found is not None
    cells = [
        standing.row + (" !" if standing.guessing else ""),
        str(standing.rank or "-"),
        text(found.mean) + (f" ± {text(found.error)}" if found.error is not None else ""),
        text(found.values[found.worst]),
        text(found.values[found.best]),
    ]
    if not ranking.reference:
        return cells
    if difference is None:
        return [*cells, "", ""]
    shown = text(difference.mean, sign=True)
    if difference.low is not None and difference.high is not None:
        low, high = (text(value, sign=True) for value in (difference.low, difference.high))
        shown += f" [{low}, {high}]"
    return [*cells, shown, f"{difference.won} of {difference.units}"]


def print_units(console: "Console", frame: "pd.DataFrame", ranking: "Ranking") -> None:
    """Print the score at every data set, target or order: a mean would hide a bad one."""
    from ..results.summary import Unit

    standings = {each.row: each.estimate for each in ranking.standings if each.estimate is not None}
    units = list(dict.fromkeys(unit for found in standings.values() for unit in found.values))
    many = ranking.unit not in (Unit.DATASET, Unit.TARGET) and len(units) > MOST_ORDERS
    if ranking.unit is Unit.SEED or many or len(units) < 2:
        return
    text = ranking.metric.text
    rows = [[unit, *(text(of.values.get(unit)) for of in standings.values())] for unit in units]
    header = [str(ranking.unit), *standings]
    if ranking.unit is Unit.TARGET:
        targets = [result.target for result in frame["result"] if result is not None]
        counts = {target.name: target.rows for target in targets if target is not None}
        header.insert(1, "rows")
        rows = [[row[0], str(counts.get(row[0], "")), *row[1:]] for row in rows]
    title = f"{_heading(ranking)}, by {ranking.unit}"
    _print(console, title, header, rows, list(standings))


def further_columns(frame: "pd.DataFrame") -> dict[str, dict[str, str]]:
    """The columns that a narrow terminal leaves out, by heading and row: means over the runs."""
    from ..results.measures import mean_numbers
    from ..results.summary import metric_of

    means, metric = mean_numbers(frame), metric_of(frame)
    return {
        heading: {
            row: f"{value:{form}}"
            if form is not None
            else metric.text(value, sign=heading == "BWT").replace("\u2212", "-")
            for row, of_row in means.items()
            if (value := of_row[name]) is not None
        }
        for heading, (name, form) in FURTHER.items()
    }
