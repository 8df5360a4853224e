"""The runs of a folder or of a comparison, for figures."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ...errors import FarshoreError
from ...plan.record import recorded_experiments
from ...protocol import Result
from ..build import COMPARISON
from ..reading import ReadingStore
from ..unplanned import read_comparison
from .runs import Shown, shown


def read_runs(folder: Path) -> list[Shown]:
    """Every readable run of a folder and of the comparisons in it. What cannot be read is said
    by the report, not here.
    """
    if folder.is_file():
        return of_results(read_comparison(folder).results, folder.parent.name)
    experiments = recorded_experiments(folder, [])
    found = shown(
        ReadingStore(folder).all(),
        folder,
        {experiment.name: experiment.selection for experiment, _ in experiments.values()},
    )
    for path in [folder / COMPARISON, *sorted(folder.glob(f"*/{COMPARISON}"))]:
        try:
            found += (
                of_results(read_comparison(path).results, path.parent.name)
                if path.is_file()
                else []
            )
        except FarshoreError:
            continue
    return found


def of_results(results: Sequence[Result], name: str) -> list[Shown]:
    """Results that lie in no folders of their own."""
    return shown(
        (f"{name} {place}", result, {"planned": {"experiment": name}})
        for place, result in enumerate(results)
    )
