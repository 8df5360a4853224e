"""Groups of methods that the command line adds to those of the catalog."""

from __future__ import annotations

# Not in the paper: replay without penalty and alignment, and a baseline that users expect.
BEYOND_THE_PAPER = ("er", "der++")


def method_groups() -> dict[str, list[str]]:
    """`paper`: all methods of the paper."""
    from .. import catalog

    return {"paper": [name for name in catalog.names() if name not in BEYOND_THE_PAPER]}
