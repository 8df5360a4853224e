"""What was measured, in one line that stands below a verdict."""

from __future__ import annotations

from collections.abc import Sequence

from .contest import METRICS, Contest
from .names import several

# How many data sets the line names.
NAMED = 5


def conditions(contest: Contest) -> str:
    """What was measured, in one line: data, sources, target, chance and majority, seeds, orders."""
    datasets = contest.datasets
    # A method that learns all sources at once may have run in another order.
    continual = [one for one in contest.entrants if one.kind == "continual"] or contest.entrants
    places = list(dict.fromkeys(place for one in continual for place in one.scores))
    counts = [several(contest.seeds, "seed")]
    if len(datasets) > 1:
        shown = datasets if len(datasets) <= NAMED else [*datasets[: NAMED - 1], "others"]
        return f"{len(datasets)} data sets ({', '.join(shown)}); {', '.join(counts)}."
    facts = contest.facts.get(datasets[0])
    targets = list(dict.fromkeys(place.target for place in places))
    metric = METRICS[contest.metric[datasets[0]]].label
    parts = [f"{datasets[0]}, {metric}"]
    if len(targets) == 1:
        order = sorted({place.order for place in places})[0]
        parts.append(f"sources {_few(sorted(order, key=_natural))}, unseen target {targets[0]}")
    else:
        parts.append(f"unseen targets {_few(targets)}, each learned from the other domains")
    if facts is not None and facts.chance is not None:
        levels = f"{facts.classes} classes, chance {facts.chance:.1f}%"
        if shares := sorted(facts.majority[name] for name in targets if name in facts.majority):
            low, high = f"{shares[0]:.1f}", f"{shares[-1]:.1f}"
            levels += f", most frequent class {low}{'' if low == high else f' to {high}'}%"
        parts.append(levels)
    orders = max(len({each.order for each in places if each.target == name}) for name in targets)
    counts.append(several(orders, "order") + (" per target" if len(targets) > 1 else ""))
    if len(contest.steps) == 1:
        counts.append(f"{contest.steps[0]} steps per domain")
    return "; ".join([*parts, ", ".join(counts)]) + "."


def _natural(name: str) -> tuple[float, str]:
    try:
        return float(name), name
    except ValueError:
        return float("inf"), name


def _few(names: Sequence[str], most: int = 8) -> str:
    if len(names) <= most:
        return ", ".join(names)
    return f"{', '.join(names[: most - 1])} and {len(names) - most + 1} more"
