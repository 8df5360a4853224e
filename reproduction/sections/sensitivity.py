"""How much λ and β matter, over orders of the sources, for docs/reproduction.md."""

from __future__ import annotations

import json
from collections.abc import Sequence

from farshore.benchmarks import BENCHMARKS
from farshore.methods import METHODS
from farshore.training.profiles import PROFILES
from reproduction.arithmetic import Difference, paired_difference, scores
from reproduction.finished_runs import rows_of
from reproduction.formatting import interval, markdown, several

# The paper calls its methods robust: changes are often less than this many points.
ALMOST_EQUAL = 2.0
# No method is robust to a weight of which a value in the search's range costs this many points.
GREAT_HARM = 10.0
SYMBOLS = {"penalty_weight": "λ", "alignment_weight": "β"}


def changes_by_weight(
    benchmark: str, methods: Sequence[str]
) -> dict[tuple[str, str], dict[float, Difference]]:
    """By method and weight: for every value, its score minus the default's in the same orders.

    Where one of the values is the default, its runs are the reference: they ran on the same
    machine. Otherwise those of all_orders are.
    """
    kind = BENCHMARKS.get(benchmark)
    profile = PROFILES.get(kind.profile)
    usual = scores(rows_of("all_orders", benchmark))
    frame = rows_of("orders_sensitivity", benchmark)
    changes: dict[tuple[str, str], dict[float, Difference]] = {}
    for method in methods:
        usual_values = METHODS.get(method).Settings.defaults(profile, method) | dict(kind.settings)
        by_value = {
            next(iter(json.loads(str(settings)).items())): scores(part)[method]
            for settings, part in frame[frame["method"] == method].groupby("settings")
        }
        default = [
            of_value for (name, value), of_value in by_value.items() if value == usual_values[name]
        ]
        for (name, value), of_value in by_value.items():
            change = paired_difference(of_value, default[0] if default else usual[method])
            if change is not None and of_value not in default:
                changes.setdefault((method, name), {})[float(value)] = change
    return changes


def sensitivity_section(benchmark: str, methods: Sequence[str]) -> str:
    """One row per method and weight: the change from the default by value."""
    changes = changes_by_weight(benchmark, methods)
    if not changes:
        return f"## {benchmark}\n\nNot run yet.\n"
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
    widest = max(
        (change for by_value in changes.values() for change in by_value.values()),
        key=lambda change: change.runs,
    )
    over = f"{several(widest.units, widest.unit)}, {several(widest.runs, 'run')} each"
    return f"## {benchmark}: {over}\n\n" + markdown(
        ["method", "weight", "value: minus the default [95%]"], rows
    )
