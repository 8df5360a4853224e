"""The answer first: who wins, by how much, and whether that is more than chance."""

from __future__ import annotations

from dataclasses import dataclass

from .page_table import number
from .table import Report, Row, Table


@dataclass(frozen=True)
class Answer:
    """A headline, a verdict in one or two words, and the numbers behind both."""

    headline: str
    verdict: str
    certain: bool
    facts: tuple[tuple[str, str], ...]
    sentences: tuple[str, ...]
    table: Table


def answer(report: Report) -> Answer | None:
    """Of the largest table that ranks its rows, or else of the largest that averages them; None
    where there is neither.
    """
    found = [
        table for table in report.tables if len({row.method for row, _ in standings(table)}) > 1
    ]
    if not found:
        return None
    table = max(found, key=lambda each: (each.ranked, len(each.rows) * len(each.columns)))
    return _answer(table, standings(table))


def standings(table: Table) -> list[tuple[Row, float]]:
    """The ranked rows with their average, best first; rows that lack a data set are left out,
    for their average is of other data.
    """
    found = []
    for row in table.rows:
        cell = (
            row.average
            if row.average is not None
            else next(iter(row.cells.values()), None)
            if len(table.columns) == 1
            else None
        )
        full = all(
            column.key in row.cells and row.cells[column.key].mean is not None
            for column in table.columns
        )
        if row.kind == "continual" and full and cell is not None and cell.mean is not None:
            found.append((row, cell.mean))
    return sorted(found, key=lambda pair: -pair[1] if table.higher_is_better else pair[1])


def _answer(table: Table, rows: list[tuple[Row, float]]) -> Answer:
    (first, best), (second, next_best) = rows[:2]
    sets = len(table.columns)
    over = (
        f"on average over {sets} {'data sets' if table.ranked else 'columns'}"
        if sets > 1
        else f"on {table.columns[0].label}"
    )
    unit = "%" if table.unit == "%" else f" {table.unit}"
    points = "points" if table.unit == "%" else table.unit
    lead = abs(best - next_best)
    if lead < 0.05:
        text = f"{first.label} and {second.label} are level {over}: {number(best)}{unit}"
    else:
        text = (
            f"{first.label} leads {over}: {number(best)}{unit}, {number(lead)} {points} "
            f"before {second.label}"
        )
    base = next((mean for row, mean in rows if row.method == "finetune"), None)
    if base is not None and "finetune" not in (first.method, second.method):
        text += (
            f" and {number(abs(best - base))} {points} "
            f"{'above' if (best > base) == table.higher_is_better else 'below'} Finetune"
        )
    verdict, certain = _verdict(table, first, second)
    verdict, certain = (
        (verdict, certain) if table.whole else (f"{verdict}, and the table is not whole", False)
    )
    facts = [
        ("first", f"{first.label}, {number(best)}{unit}"),
        ("second", f"{second.label}, {number(next_best)}{unit}"),
    ]
    if first.rank_arithmetic is not None:
        facts.append(("mean rank of the first", f"{number(first.rank_arithmetic)} of {len(rows)}"))
    if table.significance is not None and table.significance.friedman_p is not None:
        facts.append(("Friedman test", f"p = {table.significance.friedman_p:.2g}"))
    sentences = table.significance.sentences if table.significance is not None else ()
    return Answer(f"{text}.", verdict, certain, tuple(facts), sentences, table)


def _verdict(table: Table, first: Row, second: Row) -> tuple[str, bool]:
    """Whether the first and the second are told apart by the test on ranks."""
    found = table.significance
    if not table.ranked:
        return "not tested: the columns are no independent data sets", False
    if found is None or found.friedman_p is None or found.critical_difference is None:
        return "too few data sets for a test", False
    ranks = found.mean_ranks
    if first.key not in ranks or second.key not in ranks:
        return "not tested", False
    if found.friedman_p >= found.alpha:
        return "the methods are not told apart", False
    if abs(ranks[first.key] - ranks[second.key]) < found.critical_difference:
        return "the lead is not significant", False
    return "the lead is significant", True
