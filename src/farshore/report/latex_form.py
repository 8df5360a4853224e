"""A report as LaTeX: a document that compiles on its own, with tables that can be copied.

Tables use booktabs and are coloured by group. The best three are bold, underlined and dotted.
"""

from __future__ import annotations

import re
import unicodedata

from .colours import WHITE
from .grid import NOTHING, Entry, Grid, make_grid
from .table import Report, Row, Table

PACKAGES = (
    r"\usepackage[margin=1.5cm,landscape]{geometry}",
    r"\usepackage[table]{xcolor}",
    r"\usepackage{adjustbox,booktabs,amssymb}",
    r"\usepackage[normalem]{ulem}",
)
LONG = 20
MARKS = {1: r"\textbf", 2: r"\underline", 3: r"\dotuline"}
SPECIAL = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": "$<$",
    ">": "$>$",
    "|": "$|$",
    '"': "{''}",
    "`": "{`}",
    "★": r"$\bigstar$",
    "±": r"$\pm$",
    "—": "---",
    "–": "--",
    "−": "$-$",
    "·": r"$\cdot$",
    "→": r"$\rightarrow$",
    "×": r"$\times$",
    "χ": r"$\chi$",
    "²": r"$^{2}$",
    "λ": r"$\lambda$",
    "β": r"$\beta$",
    "ï": r"{\"i}",
    "é": r"{\'e}",
    "š": r"{\v{s}}",
}


def as_latex(report: Report) -> str:
    """The whole report as a document."""
    groups = {row.group: row.colour for table in report.tables for row in table.rows}
    colours = [
        rf"\definecolor{{{colour_name(group)}}}{{HTML}}{{{colour[1:].upper()}}}"
        for group, colour in groups.items()
        if colour != WHITE
    ]
    parts = [
        "\n".join([r"\documentclass{article}", *PACKAGES, *colours, r"\begin{document}"]),
        rf"\section*{{{escape(report.title)}}}",
    ]
    if report.problems:
        parts.append(_items("Read this first", report.problems))
    for table in report.tables:
        parts.append(latex_table(table))
        if len(table.rows) > LONG:  # it floats to its own page, and its conclusions come after it
            parts.append(r"\clearpage")
        if table.significance is not None:
            parts.append(_items(f"Conclusions: {table.title}", table.significance.sentences))
    if report.provenance.facts:
        parts.append(
            _items(
                "Where the numbers come from",
                [f"{what}: {value}" for what, value in report.provenance.facts],
            )
        )
    commands = "\n".join(report.provenance.commands)
    # Commands that LaTeX cannot typeset verbatim are only in the page and in Markdown.
    if commands and commands.isascii() and r"\end{verbatim}" not in commands:
        parts.append(
            "\n".join(
                [
                    r"\paragraph{To reproduce the tables}",
                    r"\begin{verbatim}",
                    commands,
                    r"\end{verbatim}",
                ]
            )
        )
    return "\n\n".join([*parts, r"\end{document}"]) + "\n"


def latex_table(table: Table) -> str:
    """One table, for a document with `PACKAGES` and the colours of the groups."""
    grid = make_grid(table)
    caption = [table.title.rstrip(".") + ".", table.about]
    if table.has_paper:
        source = f" ({table.paper_title})" if table.paper_title else ""
        caption.append(f"In brackets: the paper's number{source}.")
    marks = r" Marked: \textbf{best}, \underline{second}, \dotuline{third} of the ranked methods."
    notes, lines = _lines(grid)
    below = [rf"$^{{{letter}}}$~{escape(text)}" for text, letter in notes.items()] + [
        escape(note) for note in table.notes
    ]
    return "\n".join(
        [
            r"\begin{table*}[!htbp]",
            r"\centering",
            rf"\caption{{{escape(' '.join(caption))}{marks}}}",
            rf"\label{{tab:{re.sub('[^a-z0-9]+', '-', table.name.lower())}}}",
            r"\adjustbox{max width=\linewidth,max totalheight=0.8\textheight}{%",
            rf"\begin{{tabular}}{{l{'c' * (len(grid.heads) - 1)}}}",
            r"\toprule",
            " & ".join(rf"\textbf{{{escape(head)}}}" for head in grid.heads) + r" \\",
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}}",
            *(
                [
                    r"\par\vspace{2pt}\begin{minipage}{\linewidth}\scriptsize "
                    + r"\quad ".join(below)
                    + r"\end{minipage}"
                ]
                if below
                else []
            ),
            r"\end{table*}",
        ]
    )


def _lines(grid: Grid) -> tuple[dict[str, str], list[str]]:
    """The notes with their letters, and the lines of the rows.

    There is a rule between groups and a heading above each named section.
    """
    notes: dict[str, str] = {}
    lines: list[str] = []
    for title, rows in grid.sections:
        group = None
        for index, (row, entries) in enumerate(rows):
            if lines and row.group != group:
                lines.append(r"\midrule")
            if index == 0 and title:
                lines.append(
                    rf"\multicolumn{{{len(grid.heads)}}}{{l}}{{\emph{{{escape(title)}}}}} \\"
                )
            group = row.group
            lines.append(_line(row, entries, notes))
    return notes, lines


def _line(row: Row, entries: list[Entry], notes: dict[str, str]) -> str:
    colour = rf"\rowcolor{{{colour_name(row.group)}}} " if row.colour != WHITE else ""
    return (
        colour
        + " & ".join([escape(row.label), *(_cell(entry, notes) for entry in entries)])
        + r" \\"
    )


def _cell(entry: Entry, notes: dict[str, str]) -> str:
    text = entry.text if entry.text != NOTHING else "---"
    text = re.sub(r"^([+-])(?=\d)", r"$\1$", text)
    if entry.error:
        text += rf" $\pm$ {entry.error}"
    if entry.place in MARKS:
        text = f"{MARKS[entry.place]}{{{text}}}"
    if entry.paper:
        text += rf" {{\scriptsize ({escape(entry.paper)})}}"
    for note in entry.notes:
        letter = notes.setdefault(note, _letter(len(notes)))
        text += f"$^{{{letter}}}$"
    return text


def _letter(index: int) -> str:
    """The letters of a note by its index: a to z, then aa, ab, ..."""
    letters = ""
    while index >= 0:
        letters = chr(ord("a") + index % 26) + letters
        index = index // 26 - 1
    return letters


def _items(title: str, texts: tuple[str, ...] | list[str]) -> str:
    return "\n".join(
        [
            rf"\paragraph{{{escape(title)}}}",
            r"\begin{itemize}",
            *(rf"\item {escape(text)}" for text in texts),
            r"\end{itemize}",
        ]
    )


def colour_name(group: str) -> str:
    """The name of a group's colour in the document."""
    return f"farshore-{group}"


def escape(text: str) -> str:
    """Escape plain text for LaTeX; the result is ASCII, which every engine can typeset."""
    characters = " ".join(text.split())
    return "".join(SPECIAL.get(character) or _ascii(character) for character in characters)


def _ascii(character: str) -> str:
    """A character without accents, or `?` if it has no ASCII form."""
    if character.isascii():
        return character
    return (
        "".join(
            SPECIAL.get(part, part)
            for part in unicodedata.normalize("NFKD", character)
            if part.isascii()
        )
        or "?"
    )
