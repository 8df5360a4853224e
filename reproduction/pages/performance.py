"""The tables of pages that show what bench/measured keeps, such as docs/performance.md.

    python -m reproduction.pages.performance

A table stands between `<!-- bench/measured/NAME.csv -->` and `<!-- end of the table -->`, with a
line about the shapes, the command, the machine and the commit that it was measured with.
"""

from __future__ import annotations

import csv
import re
from pathlib import Path

from reproduction import DOCS, ROOT
from reproduction.formatting import markdown

NAMES = ("performance", "text", "arrive", "audit", "regression")
PAGE, *_ = PAGES = tuple(DOCS / f"{name}.md" for name in NAMES)
MEASURED = ROOT / "bench" / "measured"
BEGIN, END = "<!-- bench/measured/{}.csv -->\n", "<!-- end of the table -->\n"
TABLE = re.compile(BEGIN.format(r"(\S+)") + "(.*?)" + END, re.DOTALL)


def read(path: Path) -> tuple[dict[str, str], list[list[str]]]:
    """What a file says about its table, and the table, with its header."""
    lines = path.read_text().splitlines()
    about = [line for line in lines if line.startswith("# ")]
    pairs = (line.removeprefix("# ").split(": ", 1) for line in about)
    return dict(pairs), list(csv.reader(lines[len(about) :]))


def section(name: str) -> str:
    """One table, with what it was measured with."""
    about, (header, *rows) = read(MEASURED / f"{name}.csv")
    note = f" {about['note']}" if "note" in about else ""
    source = (
        f"{about['measured']}. Measured by `{about['command']}` on {about['machine']}, "
        f"commit {about['commit']}.{note}"
    )
    return f"\n{markdown(header, rows)}\n*{source}*\n\n"


def text(page: Path | None = None) -> str:
    """The whole page, with the tables of today."""
    return TABLE.sub(
        lambda table: BEGIN.format(table[1]) + section(table[1]) + END, (page or PAGE).read_text()
    )


if __name__ == "__main__":
    for page in PAGES:
        page.write_text(text(page))
