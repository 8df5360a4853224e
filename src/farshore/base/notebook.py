"""What objects show of themselves: one line at a prompt, a small table in a notebook."""

import html
import sys
from collections.abc import Sequence

# A line shows at most so many names.
MOST_NAMES = 6
STYLE = "text-align:left;padding:2px 12px 2px 0"


def short_list(names: Sequence[object], most: int = MOST_NAMES) -> str:
    """`a, b, c`; of many, the first ones and how many more there are."""
    shown = [str(name) for name in names]
    if len(shown) > most:
        shown = [*shown[: most - 1], f"{len(shown) - most + 1} more"]
    return ", ".join(shown)


def html_table(title: str, header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """A title and a table for a notebook. All texts are escaped: names come from users' files."""
    head = "".join(f'<th style="{STYLE}">{html.escape(name)}</th>' for name in header)
    cells = [[f'<td style="{STYLE}">{html.escape(str(cell))}</td>' for cell in row] for row in rows]
    body = "".join(f"<tr>{''.join(row)}</tr>" for row in cells)
    above = f"<thead><tr>{head}</tr></thead>" if header else ""
    return f"<p>{html.escape(title)}</p><table>{above}<tbody>{body}</tbody></table>"


def in_notebook() -> bool:
    """Whether this process is the kernel of a notebook."""
    shell = sys.modules.get("IPython")
    found = shell.get_ipython() if shell is not None else None
    return type(found).__name__ == "ZMQInteractiveShell"
