"""The store: all runs of a folder, as results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...errors import StateError
from ..result import Result
from .folder import RunFolder, run_folders


def checked_config(config: Mapping[str, Any] | None) -> dict[str, Any]:
    """The parts of a run's description that tables use, as far as they have the right types.

    It only describes a run: a part that cannot be used is left out.
    """
    checked: dict[str, Any] = {}
    planned, named_by, commit = (
        (config or {}).get(key) for key in ("planned", "named_by", "commit")
    )
    if isinstance(planned, Mapping):
        checked["planned"] = {
            key: value
            for key, value in planned.items()
            if (key in ("seed", "trial") and type(value) is int and abs(value) < 2**63)
            or (key not in ("seed", "trial") and isinstance(value, str | int | bool))
        }
    if isinstance(named_by, Mapping):
        versions = named_by.get("results_versions")
        versions = versions if isinstance(versions, Mapping) else {}
        whole = {key: value for key, value in versions.items() if type(value) is int}
        checked["named_by"] = {**named_by, "results_versions": whole}
    if isinstance(commit, str):
        checked["commit"] = commit
    return checked


class Store:
    """A folder of runs."""

    def __init__(self, runs: Path) -> None:
        self.runs = runs

    def folder(self, name: str) -> RunFolder:
        """The folder of a run."""
        return RunFolder(self.runs / name)

    def read(self, name: str) -> Result:
        """The result of a run."""
        return self.folder(name).read()

    def results(
        self, damaged: list[str] | None = None
    ) -> Iterator[tuple[str, Result, dict[str, Any]]]:
        """Name, result and config of every finished run.

        Damaged results are reported in `damaged` and left out; without it, they raise.
        """
        for folder in run_folders(self.runs):
            if not folder.finished():
                continue
            try:
                yield folder.path.name, folder.read(), checked_config(folder.read_config())
            except StateError as error:
                if damaged is None:
                    raise
                damaged.append(str(error))
