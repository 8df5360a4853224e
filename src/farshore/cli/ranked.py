"""The ranking, the verdict and the next command on the terminal, the same for all commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from .engine_options import print_line

if TYPE_CHECKING:
    from rich.console import Console

    from ..report.contest import Contest
    from ..report.ranking import RankedRow, Ranking
    from ..report.verdict import Verdict

# Headings above the rows that are not ranked.
UNRANKED = {
    "offline": "upper bound (offline)",
    "adaptation": "adapted to the target",
    "reference": "for reference",
    "continual": "not ranked: scores are missing",
}


def print_ranking(
    console: Console,
    contest: Contest,
    verdict: Verdict,
    title: str,
    *,
    further: Mapping[str, Mapping[str, str]] | None = None,
) -> None:
    """Print the methods by rank, in percent.

    further: more columns by heading, then by the key of the row. They are left out where the
        terminal is too narrow.
    """
    from ..report.ranking import rankings

    (ranking, *_) = rankings(contest, verdict)
    header = ["method", "rank", "unseen target", "worst", "best"]
    header += [f"minus {ranking.reference}", "better in"] if ranking.reference else []
    header += further or {}
    rows: list[list[str]] = []
    heading = ""
    for row in ranking.rows:
        above = "" if row.rank is not None else UNRANKED[row.entrant.kind]
        if above != heading:
            heading = above
            rows += [[""] * len(header), [heading, *[""] * (len(header) - 1)]]
        cells = _cells(row, ranking)
        cells += [of_row.get(row.entrant.key, "-") for of_row in (further or {}).values()]
        rows.append(cells)
    _print(console, title, header, rows, ["best", "better in", *(further or {})])
    flagged = [row.entrant.label for row in ranking.rows if row.constant]
    if flagged:
        print_line(console, f"! balanced accuracy at the level of chance: {', '.join(flagged)}")


def _cells(row: RankedRow, ranking: Ranking) -> list[str]:
    digits = ranking.metric.decimals
    mean = f"{row.mean:.{digits}f}" + (f" ± {row.half:.{digits}f}" if row.half is not None else "")
    cells = [
        row.entrant.label + (" !" if row.constant else ""),
        str(row.rank or "-"),
        mean,
        f"{row.worst:.{digits}f}",
        f"{row.best:.{digits}f}",
    ]
    if not ranking.reference:
        return cells
    difference = row.difference
    if difference is None:
        return [*cells, "", ""]
    text = f"{difference.mean:+.{digits}f}"
    if difference.low is not None and difference.high is not None and difference.units > 2:
        text += f" [{difference.low:+.{digits}f}, {difference.high:+.{digits}f}]"
    return [*cells, text, f"{difference.won} of {difference.units}"]


def _print(
    console: Console,
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


def print_datasets(console: Console, contest: Contest, verdict: Verdict) -> None:
    """Print the score on each of several data sets, as many as fit."""
    names = contest.datasets
    rows = []
    for standing in verdict.standings:
        scores = [
            [
                score
                for place in standing.entrant.scores
                if place.dataset == name
                and (score := contest.score(standing.entrant, place)) is not None
            ]
            for name in names
        ]
        cells = [f"{sum(of) / len(of):.1f}" if of else "-" for of in scores]
        rows.append([standing.entrant.label, *cells])
    _print(console, "unseen target by data set, %", ["method", *names], rows, names)


def print_verdict(
    console: Console,
    contest: Contest,
    verdict: Verdict,
    next_step: tuple[str, str] = ("", ""),
) -> None:
    """Print the verdict, its conditions, what backs it, and the command to type next."""
    from ..report.conditions import conditions

    print_line(console, verdict.sentence)
    print_line(console, conditions(contest))
    for text in verdict.details:
        print_line(console, f"- {text}")
    print_next(console, *next_step)


def print_next(console: Console, command: str, reason: str) -> None:
    """Print the command to type next, and what for."""
    if command:
        print_line(console, f"next, {reason}:")
        print_line(console, f"  {command}")
