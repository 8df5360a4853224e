"""A report as GitHub-flavoured Markdown."""

from __future__ import annotations

from .conditions import conditions
from .grid import Entry, Grid, make_grid
from .table import Report, Table
from .verdict import judge

LEGEND = (
    "Mean ± standard error. **Best**, <ins>second</ins> and *third* of each column among the "
    "ranked methods."
)
LEGEND_PAPER = " In brackets: the paper's number, and our difference from it."
MARKS = {1: ("**", "**"), 2: ("<ins>", "</ins>"), 3: ("*", "*")}


def as_markdown(report: Report) -> str:
    """The whole report."""
    parts = [f"# {escape(report.title)}", *_opening(report)]
    if report.problems:
        parts.append(
            "\n".join(
                ["**Read this first:**", "", *(f"- {escape(text)}" for text in report.problems)]
            )
        )
    parts += [markdown_table(table) for table in report.tables]
    if report.provenance.facts:
        lines = ["## Where the numbers come from", "", "| what | value |", "|---|---|"]
        parts.append(
            "\n".join(
                [
                    *lines,
                    *(
                        f"| {escape(what)} | {escape(value)} |"
                        for what, value in report.provenance.facts
                    ),
                ]
            )
        )
    if report.provenance.commands:
        parts.append(
            "\n".join(["To reproduce the tables:", "", "```sh", *report.provenance.commands, "```"])
        )
    return "\n\n".join(parts) + "\n"


def _opening(report: Report) -> list[str]:
    """The verdict, its conditions, what backs it, and the next command."""
    table = report.main_table
    if table is None or table.contest is None:
        return []
    verdict = judge(table.contest)
    parts = [f"**{escape(verdict.sentence)}**", escape(conditions(table.contest))]
    if verdict.details:
        parts.append("\n".join(f"- {escape(text)}" for text in verdict.details))
    if report.next_command:
        reason = escape(report.next_reason)
        parts.append(f"Next, {reason}:\n\n```sh\n{report.next_command}\n```")
    return parts


def markdown_table(table: Table) -> str:
    """One table with its notes and conclusions."""
    grid = make_grid(table)
    parts = [
        f"## {escape(table.title)}",
        escape(table.about),
        _lines(grid),
        LEGEND + (LEGEND_PAPER if table.has_paper else ""),
    ]
    if table.has_paper and table.paper_title:
        parts[-1] += f" The paper's table: {escape(table.paper_title)}."
    if table.notes:
        parts.append("\n".join(f"- {escape(note)}" for note in table.notes))
    if table.significance is not None:
        lines = [
            "**Conclusions**",
            "",
            *(f"- {escape(text)}" for text in table.significance.sentences),
        ]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def _lines(grid: Grid) -> str:
    lines = [
        _line([escape(head) for head in grid.heads]),
        _line(["---", *["---:"] * (len(grid.heads) - 1)]),
    ]
    for title, rows in grid.sections:
        if title:
            lines.append(_line([f"*{escape(title)}*", *[""] * (len(grid.heads) - 1)]))
        lines += [
            _line([escape(row.label), *(_cell(entry) for entry in entries)])
            for row, entries in rows
        ]
    return "\n".join(lines)


def _line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(entry: Entry) -> str:
    before, after = MARKS.get(entry.place or 0, ("", ""))
    text = before + entry.text + (f" ± {entry.error}" if entry.error else "") + after
    if entry.paper:
        text += f" ({entry.paper}{'; ' + entry.difference if entry.difference else ''})"
    return text + "".join(f" \\[{escape(note)}\\]" for note in entry.notes)


def escape(text: str) -> str:
    """Escape plain text for Markdown."""
    for character in "\\`*_|<>[]":
        text = text.replace(character, f"\\{character}")
    return " ".join(text.split())
