"""A report as LaTeX: a document that compiles on its own, with tables that can be copied.

Tables use booktabs and are coloured by group. The best three are bold, underlined and dotted.
"""

import re
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..results.tables import Column, Row, Table
from .cells import NOTHING, WHITE, cell_text, fill, head, legend, letter_of

if TYPE_CHECKING:
    from .build import Report

PACKAGES = (
    r"\usepackage[margin=1.5cm,landscape]{geometry}",
    r"\usepackage[table]{xcolor}",
    r"\usepackage{adjustbox,booktabs,amssymb}",
    r"\usepackage[normalem]{ulem}",
)
LONG = 20
MARKED = r" Marked: \textbf{best}, \underline{second}, \dotuline{third} of the ranked methods."
MARKS = {1: r"\textbf", 2: r"\underline", 3: r"\dotuline"}
SYMBOLS = {
    **{"★": "bigstar", "±": "pm", "·": "cdot", "→": "rightarrow", "×": "times"},
    **{"χ": "chi", "λ": "lambda", "β": "beta"},
}
SPECIAL = {
    **{sign: rf"\{sign}" for sign in "&%$#_{}"},
    **{sign: f"${sign}$" for sign in "<>|"},
    **{sign: rf"$\{name}$" for sign, name in SYMBOLS.items()},
    **{"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"},
    **{'"': "{''}", "`": "{`}", "—": "---", "–": "--", "−": "$-$", "²": r"$^{2}$"},
    **{"ï": r"{\"i}", "é": r"{\'e}", "š": r"{\v{s}}"},
}


def as_latex(report: "Report") -> str:
    """The whole report as a document."""
    groups = {row.group: fill(row.group) for table in report.tables for row in table.rows}
    shown = {colour_name(group): colour[1:] for group, colour in groups.items() if colour != WHITE}
    colours = [rf"\definecolor{{{of}}}{{HTML}}{{{colour.upper()}}}" for of, colour in shown.items()]
    parts = [
        "\n".join([r"\documentclass{article}", *PACKAGES, *colours, r"\begin{document}"]),
        rf"\section*{{{escape(report.title)}}}",
    ]
    if report.problems:
        parts.append(_items("Read this first", report.problems))
    main = report.main
    if main is not None and main.verdict is not None:
        sentence, measured = escape(main.verdict.sentence), escape(main.conditions)
        parts.append(rf"\noindent\textbf{{{sentence}}} {measured}")
        if main.verdict.details:
            parts.append(_items("What backs the verdict", main.verdict.details))
    for section in report.sections:
        table = section.table
        parts.append(latex_table(table))
        if len(table.rows) > LONG:  # it floats to its own page, and its conclusions come after it
            parts.append(r"\clearpage")
        if section.conclusions and section is not main:
            parts.append(_items(f"Conclusions: {table.title}", section.conclusions))
    if report.provenance.facts:
        facts = [f"{what}: {value}" for what, value in report.provenance.facts]
        parts.append(_items("Where the numbers come from", facts))
    commands = "\n".join(report.provenance.commands)
    # Commands that LaTeX cannot typeset verbatim are only in the page and in Markdown.
    if commands and commands.isascii() and r"\end{verbatim}" not in commands:
        head = r"\paragraph{To reproduce the tables}"
        parts.append("\n".join([head, r"\begin{verbatim}", commands, r"\end{verbatim}"]))
    return "\n\n".join([*parts, r"\end{document}"]) + "\n"


def latex_table(table: Table) -> str:
    """One table, for a document with `PACKAGES` and the colours of the groups."""
    caption = [table.title.rstrip(".") + ".", table.about, legend(table)]
    if table.has_published:
        source = f" ({table.published_title})" if table.published_title else ""
        caption.append(f"In round brackets: the published number{source}.")
    marks = MARKED if table.has_marks else ""
    heads = ["Method", *(head(column) for column in table.columns)]
    notes, lines = _lines(table)
    below = [rf"$^{{{letter}}}$~{escape(text)}" for text, letter in notes.items()]
    below += map(escape, table.remarks)
    small = r"\par\vspace{2pt}\begin{minipage}{\linewidth}\scriptsize "
    return "\n".join(
        [
            r"\begin{table*}[!htbp]",
            r"\centering",
            rf"\caption{{{escape(' '.join(caption))}{marks}}}",
            rf"\label{{tab:{re.sub('[^a-z0-9]+', '-', table.name.lower())}}}",
            r"\adjustbox{max width=\linewidth,max totalheight=0.8\textheight}{%",
            rf"\begin{{tabular}}{{l{'c' * len(table.columns)}}}",
            r"\toprule",
            " & ".join(rf"\textbf{{{escape(text)}}}" for text in heads) + r" \\",
            r"\midrule",
            *lines,
            r"\bottomrule",
            r"\end{tabular}}",
            *([small + r"\quad ".join(below) + r"\end{minipage}"] if below else []),
            r"\end{table*}",
        ]
    )


def _lines(table: Table) -> tuple[dict[str, str], list[str]]:
    """The notes with their letters, and the rows, with a rule and a heading per section."""
    notes: dict[str, str] = {}
    lines: list[str] = []
    width = len(table.columns) + 1
    for heading, rows in table.sections().items():
        lines += [r"\midrule"] if lines else []
        if heading:
            lines.append(rf"\multicolumn{{{width}}}{{l}}{{\emph{{{escape(heading)}}}}} \\")
        for row in rows:
            colour = rf"\rowcolor{{{colour_name(row.group)}}} " if fill(row.group) != WHITE else ""
            cells = [escape(row.row), *(_cell(row, c, table, notes) for c in table.columns)]
            lines.append(colour + " & ".join(cells) + r" \\")
    return notes, lines


def _cell(row: Row, column: Column, table: Table, notes: dict[str, str]) -> str:
    cell = row.cells.get(column.key)
    shown = cell_text(cell, column, table)
    text = escape(shown.number) if shown.number not in ("", NOTHING) else "---"
    if shown.error:
        text += rf" $\pm$ {shown.error}"
    if cell is not None and cell.place in MARKS:
        text = f"{MARKS[cell.place]}{{{text}}}"
    if shown.interval:
        text += " " + escape(shown.interval)
    if shown.published:
        text += rf" {{\scriptsize ({escape(shown.published)})}}"
    for note in shown.notes:
        text += f"$^{{{letter_of(note, notes)}}}$"
    return text


def _items(title: str, texts: Sequence[str]) -> str:
    items = [rf"\item {escape(text)}" for text in texts]
    head = [rf"\paragraph{{{escape(title)}}}", r"\begin{itemize}"]
    return "\n".join([*head, *items, r"\end{itemize}"])


def colour_name(group: str) -> str:
    """The name of a group's colour in the document."""
    return f"farshore-{group}"


def escape(text: str) -> str:
    """Escape plain text for LaTeX; the result is ASCII, which every engine can typeset."""
    characters = " ".join(text.split())
    shown = "".join(SPECIAL.get(character) or _ascii(character) for character in characters)
    # After an item or the end of a row, these would begin an option.
    return f"{{{shown[0]}}}{shown[1:]}" if shown.startswith(("[", "*")) else shown


def _ascii(character: str) -> str:
    """A character without accents, or `?` if it has no ASCII form."""
    if character.isascii():
        return character
    parts = unicodedata.normalize("NFKD", character)
    return "".join(SPECIAL.get(part, part) for part in parts if part.isascii()) or "?"
