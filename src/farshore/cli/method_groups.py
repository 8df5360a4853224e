"""Names of groups of methods that are typed on the command line, besides those of the catalog."""

# The paper's framework without penalty and alignment, a baseline that users expect, ours, and
# references.
BEYOND_THE_PAPER = (
    *("er", "er-kd", "der++", "groupdro", "evos", "cl-mix", "trees", "ridge", "ncm", "slda"),
    *("auto", "best"),
    *("majority", "joint", "joint-linear", "joint-forest", "joint-trees"),
)


def method_groups() -> dict[str, list[str]]:
    """`paper`: all methods of the paper, in the order of the catalog."""
    from ..runs import catalog

    return {"paper": [name for name in catalog.names() if name not in BEYOND_THE_PAPER]}
