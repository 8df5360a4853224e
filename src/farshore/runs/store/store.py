"""The store: all runs of a folder, as results."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...errors import FarshoreError, StateError
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


class _ReadOnce(RunFolder):
    def __init__(self, path: Path, store: ReadingStore) -> None:
        super().__init__(path)
        self.store = store

    def finished(self, *, features: bool = False) -> bool:
        """Whether there is a result that can be read."""
        return self.store.find(self.path.name) is not None and super().finished(features=features)

    def read(self) -> Result:
        """The result, read once."""
        result = self.store.find(self.path.name)
        if result is None:
            raise StateError(f"{self.result} cannot be read")
        return result


# How many damaged results are listed by name.
NAMED = 5


class ReadingStore(Store):
    """A store that reads each result once and keeps the parts that tables need.

    `problems` lists the results that could not be read. With `only`, all other runs are ignored.
    """

    def __init__(self, runs: Path, only: str | None = None) -> None:
        super().__init__(runs)
        self.only = only
        self.damaged: list[str] = []
        self._read: dict[str, Result | None] = {}

    def folder(self, name: str) -> RunFolder:
        """The folder of a run, which counts as finished only if its result can be read."""
        return _ReadOnce(self.runs / name, self)

    def find(self, name: str) -> Result | None:
        """The result of a run; None if there is none or it cannot be read."""
        if name not in self._read:
            self._read[name] = self._try(RunFolder(self.runs / name))
        return self._read[name]

    def all(self) -> Iterator[tuple[str, Result, dict[str, Any]]]:
        """Name, result and config of every run that has a readable result."""
        for folder in run_folders(self.runs):
            if self.only not in (None, folder.path.name):
                continue
            result = self.find(folder.path.name)
            if result is not None:
                yield folder.path.name, result, checked_config(folder.read_config())

    @property
    def problems(self) -> list[str]:
        """The damaged results: the first few by name, and the number of the others."""
        more = len(self.damaged) - NAMED
        return [
            *self.damaged[:NAMED],
            *(
                [f"{more:,} more results cannot be read and also count as missing"]
                if more > 0
                else []
            ),
        ]

    def _try(self, folder: RunFolder) -> Result | None:
        if not folder.finished():
            return None
        try:
            result = folder.read()
        except FarshoreError as error:
            self.damaged.append(
                f"{error}; its run counts as missing, and the same command will repeat it"
            )
            return None
        if result.target is None:
            return result
        # No table shows the confusion matrix, which is most of a result's size if there are many
        # classes; the rows of each class are enough for the level of the most frequent one.
        counts = [[sum(row)] for row in result.target.confusion]
        return result.model_copy(
            update={"target": result.target.model_copy(update={"confusion": counts})}
        )
