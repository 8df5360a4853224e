"""A report as GitHub-flavoured Markdown."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..results.tables import Cell, Column, Table
from .cells import cell_text, head, legend

if TYPE_CHECKING:
    from .build import Report, Section

MARKED = " **Best**, <ins>second</ins> and *third* of each column among the ranked methods."
PUBLISHED = " In round brackets: the published number, and our difference from it."
MARKS = {1: ("**", "**"), 2: ("<ins>", "</ins>"), 3: ("*", "*")}


def as_markdown(report: "Report") -> str:
    """The whole report."""
    parts = [f"# {escape(report.title)}", *_opening(report)]
    if report.problems:
        parts.append("**Read this first:**\n\n" + _items(report.problems))
    main = report.main
    parts += [markdown_table(each, concluded=each is main) for each in report.sections]
    if report.provenance.facts:
        rows = [f"| {escape(what)} | {escape(value)} |" for what, value in report.provenance.facts]
        lines = ["## Where the numbers come from", "", "| what | value |", "|---|---|", *rows]
        parts.append("\n".join(lines))
    if report.provenance.commands:
        lines = ["To reproduce the tables:", "", "```sh", *report.provenance.commands, "```"]
        parts.append("\n".join(lines))
    return "\n\n".join(parts) + "\n"


def _opening(report: "Report") -> list[str]:
    """The verdict, its conditions, what backs it, and the next command."""
    main = report.main
    if main is None or main.verdict is None:
        return []
    verdict = main.verdict
    parts = [f"**{escape(verdict.sentence)}**", escape(main.conditions)]
    if verdict.details:
        parts.append(_items(verdict.details))
    if report.next_command:
        reason = escape(report.next_reason)
        parts.append(f"Next, {reason}:\n\n```sh\n{report.next_command}\n```")
    return parts


def markdown_table(section: "Section", *, concluded: bool = False) -> str:
    """One table with its legend and notes, and its conclusions unless they stand elsewhere."""
    table = section.table
    text = escape(legend(table)) + (MARKED if table.has_marks else "")
    text += PUBLISHED if table.has_published else ""
    if table.has_published and table.published_title:
        text += f" Published in: {escape(table.published_title)}."
    parts = [f"## {escape(table.title)}", escape(table.about), _lines(table), text]
    if table.remarks:
        parts.append(_items(table.remarks))
    if section.conclusions and not concluded:
        parts.append("**Conclusions**\n\n" + _items(section.conclusions))
    return "\n\n".join(parts)


def _items(texts: Sequence[str]) -> str:
    return "\n".join(f"- {escape(text)}" for text in texts)


def _lines(table: Table) -> str:
    lines = [
        _line(["Method", *(escape(head(column)) for column in table.columns)]),
        _line(["---", *["---:"] * len(table.columns)]),
    ]
    for heading, rows in table.sections().items():
        if heading:
            lines.append(_line([f"*{escape(heading)}*", *[""] * len(table.columns)]))
        for row in rows:
            cells = [_cell(row.cells.get(c.key), c, table) for c in table.columns]
            lines.append(_line([escape(row.row), *cells]))
    return "\n".join(lines)


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(cell: Cell | None, column: Column, table: Table) -> str:
    text = cell_text(cell, column, table)
    before, after = MARKS.get((cell.place if cell is not None else None) or 0, ("", ""))
    shown = before + escape(text.number) + (f" ± {text.error}" if text.error else "") + after
    shown += f" {escape(text.interval)}" if text.interval else ""
    if text.published:
        shown += f" ({text.published}{'; ' + text.difference if text.difference else ''})"
    return shown + "".join(f" \\[{escape(note)}\\]" for note in text.notes)


def escape(text: str) -> str:
    """Escape plain text for Markdown."""
    for character in "\\`*_|<>[]":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())
