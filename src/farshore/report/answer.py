"""The answer first: which method leads, by how much, and whether that is more than chance."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from ..evaluation.over_units import FEWEST_UNITS
from .page_table import number
from .table import Lead, Report, Row, Table

# Two averages are level if they differ by less than this many points.
LEVEL = 0.05


class Verdict(StrEnum):
    """The result of the test on ranks for the lead; the values are what readers see."""

    SIGNIFICANT = "the lead is significant"
    NOT_SIGNIFICANT = "the lead is not significant"
    INDISTINGUISHABLE = "the methods are not distinguishable"
    TOO_FEW = "too few data sets for a test"
    NOT_INDEPENDENT = "not tested: the columns are not independent data sets"
    NOT_TESTED = "not tested"
    PAIRED = "the lead is larger than its 95% interval over the targets"
    NOT_PAIRED = "the lead is within its 95% interval over the targets"
    FEW_TARGETS = "too few targets for an interval"


@dataclass(frozen=True)
class Answer:
    """A headline, the verdict of the test, and the sentences and table behind both."""

    headline: str
    verdict: Verdict
    sentences: tuple[str, ...]
    table: Table

    @property
    def certain(self) -> bool:
        """Whether the lead is more than chance and the table is complete."""
        return self.verdict in (Verdict.SIGNIFICANT, Verdict.PAIRED) and self.table.whole

    @property
    def verdict_text(self) -> str:
        """The verdict as readers see it."""
        return self.verdict + ("" if self.table.whole else "; the table is incomplete")


def answer(report: Report) -> Answer | None:
    """The answer of the largest table with ranks or several targets.

    Else that of the largest with averages; None if there is none.
    """
    tables = [
        table
        for table in report.tables
        if table.lead is not None or len({row.method for row, _ in standings(table)}) > 1
    ]
    if not tables:
        return None
    table = max(
        tables,
        key=lambda table: (
            table.ranked or table.lead is not None,
            len(table.rows) * len(table.columns),
        ),
    )
    if table.lead is not None:
        return _over_targets(table, table.lead)
    rows = standings(table)
    return Answer(
        headline=_headline(table, rows),
        verdict=_verdict(table, rows[0][0], rows[1][0]),
        sentences=table.significance.sentences if table.significance is not None else (),
        table=table,
    )


def _over_targets(table: Table, lead: Lead) -> Answer:
    """The answer of a table in which every domain is the target in turn."""
    labels = {row.key: row.label for row in table.rows}
    first, second = labels[lead.first], labels[lead.second]
    over = f"on {lead.dataset} on average over {lead.difference.units} {lead.unit}"
    points = abs(lead.best - lead.next_best)
    headline = (
        f"{first} and {second} are level {over}: {number(lead.best)}%."
        if points < LEVEL
        else f"{first} leads {over}: {number(lead.best)}%, {number(points)} points ahead of "
        f"{second}."
    )
    enough = lead.difference.units >= FEWEST_UNITS
    verdict = (
        Verdict.FEW_TARGETS
        if not enough
        else Verdict.PAIRED
        if lead.difference.certain
        else Verdict.NOT_PAIRED
    )
    return Answer(headline, verdict, lead.sentences if enough else (), table)


def standings(table: Table) -> list[tuple[Row, float]]:
    """The ranked rows with their averages, best first.

    Rows without a number on every data set are left out: their averages are not comparable.
    """
    rows = []
    for row in table.rows:
        cell = row.average
        if cell is None and len(table.columns) == 1:
            cell = next(iter(row.cells.values()), None)
        complete = row.kind == "continual" and row.complete(table.columns)
        if complete and cell is not None and cell.mean is not None:
            rows.append((row, cell.mean))
    return sorted(rows, key=lambda pair: -pair[1] if table.higher_is_better else pair[1])


def _headline(table: Table, rows: list[tuple[Row, float]]) -> str:
    (first, best), (second, next_best) = rows[:2]
    count = len(table.columns)
    over = (
        f"on average over {count} {'data sets' if table.ranked else 'columns'}"
        if count > 1
        else f"on {table.columns[0].label}"
    )
    unit, points = ("%", "points") if table.unit == "%" else (f" {table.unit}", table.unit)
    lead = abs(best - next_best)
    if lead < LEVEL:
        text = f"{first.label} and {second.label} are level {over}: {number(best)}{unit}"
    else:
        text = (
            f"{first.label} leads {over}: {number(best)}{unit}, {number(lead)} {points} "
            f"ahead of {second.label}"
        )
    base = next((mean for row, mean in rows if row.method == table.baseline), None)
    if base is not None and table.baseline not in (first.method, second.method):
        side = "above" if best > base else "below"
        text += f" and {number(abs(best - base))} {points} {side} {table.baseline_label}"
    return f"{text}."


def _verdict(table: Table, first: Row, second: Row) -> Verdict:
    """Whether the test on ranks distinguishes the first from the second."""
    test = table.significance
    if not table.ranked:
        return Verdict.NOT_INDEPENDENT
    if test is None or test.friedman_p is None or test.critical_difference is None:
        return Verdict.TOO_FEW
    ranks = test.mean_ranks
    if first.key not in ranks or second.key not in ranks:
        return Verdict.NOT_TESTED
    if test.friedman_p >= test.alpha:
        return Verdict.INDISTINGUISHABLE
    if abs(ranks[first.key] - ranks[second.key]) < test.critical_difference:
        return Verdict.NOT_SIGNIFICANT
    return Verdict.SIGNIFICANT
