"""Tables and lines on the terminal."""

import re
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from textwrap import fill
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

LOG_WIDTH = 120
# A space on both sides of a column, and one between columns.
PADDING = 3
# A longer name in the first column breaks over lines.
WIDEST_NAME = 32


class PlainConsole(Console):
    """A console that prints texts as they are: names of domains, files and labels hold anything.

    Brackets are no markup, `:smile:` is no picture, and control characters, which could rewrite the
    terminal, are shown as escapes.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(markup=False, emoji=False, highlight=False, **options)

    def render_str(self, text: str, **options: Any) -> Text:
        """Convert every text that is printed, also the cells of tables."""
        return super().render_str(printable(text), **options)


def printable(text: str) -> str:
    """The text with control characters as escapes; line breaks stay."""
    return "".join(
        character
        if character == "\n" or unicodedata.category(character) not in ("Cc", "Cf", "Cs")
        else character.encode("unicode_escape", "surrogatepass").decode()
        for character in text
    )


def linked(text: str) -> Text:
    """The text, in which the path of a page that exists can be clicked."""
    shown = Text(printable(text))
    for found in re.finditer(r"\S+\.html\b", shown.plain):
        page = Path(found[0])
        if page.is_file():
            shown.stylize(f"link {page.resolve().as_uri()}", *found.span())
    return shown


def make_console() -> Console:
    """Standard output, as wide as the terminal or, without one, wide enough for a table."""
    console = PlainConsole()
    return console if console.is_terminal else PlainConsole(width=LOG_WIDTH)


def plain_table(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], *, text: bool = False
) -> Table:
    """Text in the first column, numbers (or `text`) in the others; a number never breaks."""
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
    for index, name in enumerate(header):
        table.add_column(
            name,
            justify="left" if text or index == 0 else "right",
            no_wrap=index == 0 and all(len(row[0]) <= WIDEST_NAME for row in rows),
            overflow="fold",
            min_width=None if text else _width(name, rows, index),
        )
    for row in rows:
        table.add_row(*row)
    return table


def fold(
    header: Sequence[str], rows: Sequence[Sequence[str]], secondary: Sequence[str], width: int
) -> tuple[list[str], list[list[str]], list[str]]:
    """Header and rows without secondary columns that do not fit, and what those are called."""
    widths = [_width(name, rows, index) for index, name in enumerate(header)]
    kept = list(range(len(header)))
    for name in reversed(secondary):
        if sum(widths[index] + PADDING for index in kept) + PADDING <= width:
            break
        kept = [index for index in kept if header[index] != name]
    left_out = [name for index, name in enumerate(header) if index not in kept]
    # Headings are broken here: rich would also narrow the numbers, and then cut the last column.
    full = sum(max(widths[index], len(header[index])) + PADDING for index in kept) + PADDING
    heads = [header[index] for index in kept]
    if full > width:
        heads = [fill(header[index], max(widths[index], 1)) for index in kept]
    return heads, [[row[index] for index in kept] for row in rows], left_out


def print_next(console: Console, command: str, reason: str) -> None:
    """Print the command to type next, and what for."""
    if command:
        console.print(f"next, {reason}:", soft_wrap=True)
        console.print(f"  {command}", soft_wrap=True)


def _width(name: str, rows: Sequence[Sequence[str]], column: int) -> int:
    """The width of a column whose heading breaks between words, and long names anywhere."""
    widest = max([*map(len, name.split()), *(len(row[column]) for row in rows)], default=0)
    return min(widest, WIDEST_NAME) if column == 0 else widest
