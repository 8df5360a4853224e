"""What a report shows: a folder of runs, a single run in it, or one recorded experiment."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..errors import FarshoreError
from ..runs.store.folder import is_run_folder


@dataclass(frozen=True)
class Requested:
    """The folder of runs, and the only run or the only experiment of it to show."""

    folder: Path
    run: str | None = None
    experiment: str | None = None


def find_runs(path: Path, experiment: str | None = None) -> Requested:
    """Resolve a path to a folder of runs, the folder of one run, or its result.json."""
    if path.is_file():
        if path.name != "result.json":
            raise FarshoreError(
                f"{str(path)!r} contains no runs: give a folder that `farshore run --out`, "
                "`farshore compare` or `farshore sweep` wrote into, the folder of one run in it, "
                "or its result.json"
            )
        path = path.parent
    if not path.is_dir():
        raise FarshoreError(
            f"there is no folder {str(path)!r}: give one that `farshore run --out`, `farshore "
            "compare` or `farshore sweep` wrote into"
        )
    if is_run_folder(path):
        return Requested(path.parent, run=path.name if path.name else path.resolve().name)
    return Requested(path, experiment=experiment)
