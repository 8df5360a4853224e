"""Which methods are the paper's."""

from __future__ import annotations

from ...runs import catalog

# The paper's framework without penalty and alignment, a baseline that users expect, ours, and
# references.
BEYOND_THE_PAPER = (
    *("er", "er-kd", "der++", "cl-mix", "trees", "ridge", "ncm", "slda", "best"),
    *("majority", "joint"),
)


def paper_methods() -> list[str]:
    """The methods that the name `paper` selects, in the order of the catalog."""
    return [name for name in catalog.names() if name not in BEYOND_THE_PAPER]
