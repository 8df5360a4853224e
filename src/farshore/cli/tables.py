"""Tables on the terminal."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

LOG_WIDTH = 120


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


def make_console(*, stderr: bool = False) -> Console:
    """Standard output, as wide as the terminal or, without one, wide enough for a table."""
    console = PlainConsole(stderr=stderr)
    return console if console.is_terminal else PlainConsole(stderr=stderr, width=LOG_WIDTH)


def plain_table(
    title: str, header: Sequence[str], rows: Sequence[Sequence[str]], *, text: bool = False
) -> Table:
    """A table with text in the first column and numbers (or `text`) in the others."""
    table = Table(title=title, box=box.SIMPLE_HEAD, title_justify="left", title_style="bold")
    for index, name in enumerate(header):
        table.add_column(
            name, justify="left" if text or index == 0 else "right", no_wrap=index == 0
        )
    for row in rows:
        table.add_row(*row)
    return table
