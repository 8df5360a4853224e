"""Groups of methods that the command line adds to those of the catalog."""

from __future__ import annotations


def method_groups() -> dict[str, list[str]]:
    """`paper`: all methods of the paper."""
    from ..report.paper import paper_methods

    return {"paper": paper_methods()}
