"""Tables on the terminal."""

from __future__ import annotations

from collections.abc import Sequence

from rich import box
from rich.console import Console
from rich.table import Table

LOG_WIDTH = 120


def make_console() -> Console:
    """Standard output, as wide as the terminal or, without one, wide enough for a table."""
    console = Console()
    return console if console.is_terminal else Console(width=LOG_WIDTH)


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
