"""Made-up contests for tests of the verdict: nothing is trained."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from farshore.report.contest import Contest, Entrant, Facts, Place
from farshore.report.overlay import Overlay
from farshore.report.table import Cell, Column

from farshore.runs import catalog

# Scores of one method: by order of the sources, one number per seed.
ByOrder = Mapping[str, Sequence[float]]


def contest(
    scores: Mapping[str, ByOrder],
    *,
    targets: Mapping[str, str] | None = None,
    balanced: Mapping[str, float] | None = None,
    classes: int = 10,
    dataset: str = "toy",
    whole: bool = True,
    failed: Mapping[str, int] | None = None,
) -> Contest:
    """A contest on one data set.

    targets: the target of each key of `scores`, if there are several; the order is the key.
    balanced: the balanced accuracy of a method everywhere; by default its score.
    """
    entrants = []
    for method, by_order in scores.items():
        places = {
            Place(dataset, (targets or {}).get(order, "t"), tuple(order.split(">"))): {
                seed: {
                    "accuracy": value,
                    "balanced_accuracy": (balanced or {}).get(method, value),
                }
                for seed, value in enumerate(values)
            }
            for order, values in by_order.items()
        }
        kind, group = catalog.find(method).kind, catalog.find(method).group
        lacking = (failed or {}).get(method, 0)
        entrants.append(
            Entrant(method, method, places, group=group, kind=kind, without_score=lacking)
        )
    targets_shown = {place.target: 60.0 for one in entrants for place in one.scores}
    return Contest(
        tuple(entrants),
        {dataset: "accuracy"},
        {dataset: Facts(classes, targets_shown)},
        whole=whole,
    )


def over_datasets(scores: Mapping[str, Sequence[float]], seeds: int = 3) -> Contest:
    """A contest over as many data sets as each method has scores."""
    entrants = [
        Entrant(
            method,
            method,
            {
                Place(f"data {index}", "t", ("a", "b")): {
                    seed: {"accuracy": value} for seed in range(seeds)
                }
                for index, value in enumerate(values)
            },
            kind=catalog.find(method).kind,
        )
        for method, values in scores.items()
    ]
    count = max(map(len, scores.values()))
    return Contest(tuple(entrants), {f"data {index}": "accuracy" for index in range(count)})


def of_cells(
    entries: Mapping[tuple[str, str], Mapping[str, Cell]],
    columns: Sequence[Column],
    overlay: Overlay,
) -> Contest:
    """The contest behind a table of made-up cells: every column is a data set, with one seed."""
    labels = {column.key: column.label for column in columns}
    entrants = [
        Entrant(
            method,
            overlay.label(method),
            {
                Place(labels[key], "t", ("a", "b")): {0: {column.metric: cell.mean}}
                for column in columns
                for key, cell in cells.items()
                if key == column.key and cell.mean is not None
            },
            variant,
            kind=catalog.find(method).kind,
        )
        for (method, variant), cells in entries.items()
    ]
    return Contest(
        tuple(entrants),
        {column.label: column.metric for column in columns},
        whole=all(cell.whole for cells in entries.values() for cell in cells.values()),
    )
