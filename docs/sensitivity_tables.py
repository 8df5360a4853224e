"""How much λ and β matter, over orders of the sources, for docs/reproduction.md."""

from __future__ import annotations

import json
from collections.abc import Sequence

from tidy_tables import interval, markdown, rows_of, scores

from farshore.evaluation.over_units import Difference, paired_difference

# The paper calls its methods robust: changes are often less than this many points.
ALMOST_EQUAL = 2.0
SYMBOLS = {"penalty_weight": "λ", "alignment_weight": "β"}


def changes_by_weight(
    benchmark: str, methods: Sequence[str]
) -> dict[tuple[str, str], dict[float, Difference]]:
    """By method and weight: for every value, its score minus the default's in the same orders."""
    usual = scores(rows_of("all_orders", benchmark))
    frame = rows_of("orders_sensitivity", benchmark)
    changes: dict[tuple[str, str], dict[float, Difference]] = {}
    for (method, settings), part in frame.groupby(["method", "settings"]):
        varied = json.loads(str(settings))
        if method not in methods or not varied:
            continue
        [(name, value)] = varied.items()
        change = paired_difference(scores(part)[str(method)], usual[str(method)])
        if change is not None:
            changes.setdefault((str(method), name), {})[float(value)] = change
    return changes


def sensitivity_section(benchmark: str, methods: Sequence[str]) -> str:
    """One row per method and weight: the change from the default by value."""
    changes = changes_by_weight(benchmark, methods)
    if not changes:
        return f"### {benchmark}\n\nNot run yet.\n"
    rows = [
        [
            f"`{method}`",
            SYMBOLS[weight],
            "; ".join(f"{value:.3g}: {interval(by_value[value])}" for value in sorted(by_value)),
        ]
        for method in methods
        for weight in SYMBOLS
        if (by_value := changes.get((method, weight)))
    ]
    orders = max(change.units for by_value in changes.values() for change in by_value.values())
    return f"### {benchmark}: {orders} orders\n\n" + markdown(
        ["method", "weight", "value: minus the default [95%]"], rows
    )
