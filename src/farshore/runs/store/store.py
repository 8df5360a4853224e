"""The store: a folder of runs, each in a folder named by what determines its numbers.

Experiments are recorded next to their runs, as RUNS/experiments/NAME.yaml, so that a folder of runs
documents what was planned. A run may belong to several experiments; a report plans the recorded
experiments again and finds their runs. The folder of a run contains:

- `config.json`: the run, what its name is made of, and the commit of the code
- `progress.jsonl`: one line per finished domain
- `stages/`: the learner's state at the end of the newest domain, until there is a result (all of
  them with --keep-states)
- `claim-N`: the process that carries it out
- `failure.txt`: why the last attempt failed, if it did
- `features.safetensors`: features of sources and target, if the experiment asks for them
- `model/`: the trained learner, if `farshore run` carried out the run
- `result.sha256`, `result.json`: the result; `result.json` is written last
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ...base.files import (
    read_file,
    refuse_links,
    remove_folder,
    state_errors,
    write_atomic,
    write_inside,
)
from ...errors import FarshoreError, StateError
from ..plan.bounded_yaml import write_yaml
from ..plan.experiment import Book, Experiment, check_dependencies, needs, read_experiment
from ..result import Result

FEATURES = "features.safetensors"
# The files that only the process with the claim writes.
WRITTEN = re.compile(r"config\.json|result\.json|result\.sha256|failure\.txt|features\.safetensors")


class RunFolder:
    """The folder of a run: the paths of its files, and how they are read and written."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.json"
        self.progress = path / "progress.jsonl"
        self.stages = path / "stages"
        self.failure = path / "failure.txt"
        self.features = path / FEATURES
        self.model = path / "model"
        self.checksum = path / "result.sha256"
        self.result = path / "result.json"

    def finished(self, *, features: bool = False) -> bool:
        """Whether there is a result. Its checksum is verified only when it is read."""
        return self.result.is_file() and (not features or self.features.is_file())

    def read(self) -> Result:
        """Read the result. One that does not match its checksum is refused by name."""
        try:
            data = read_file(self.result)
            expected = read_file(self.checksum).decode(errors="replace").strip()
        except OSError as error:
            why = f"{error.filename or self.result} cannot be read: {error.strerror or error}"
            raise StateError(why) from error
        if hashlib.sha256(data).hexdigest() != expected:
            why = f"{self.result} is damaged: its checksum is not the one in {self.checksum.name}"
            raise StateError(why)
        return Result.read(self.result)

    def write(self, result: Result) -> None:
        """Write the checksum, then the result: a run is finished once both are on disk."""
        data = result.text().encode()
        with state_errors(f"could not write {self.result}"):
            write_atomic(self.checksum, hashlib.sha256(data).hexdigest().encode())
            write_atomic(self.result, data)

    def write_config(self, config: dict[str, Any]) -> None:
        """Write the description of the run, unless there is one that can be read."""
        with state_errors(f"could not write {self.config}"):
            if self.read_config() is None:
                write_atomic(self.config, json.dumps(config, indent=1).encode())

    def read_config(self) -> dict[str, Any] | None:
        """The description that `write_config` wrote; None if it cannot be read."""
        try:
            config = json.loads(read_file(self.config))
        except (OSError, ValueError):
            return None
        return config if isinstance(config, dict) else None

    def discard_result(self) -> None:
        """Delete a damaged result, so that the run is repeated."""
        refuse_links(self.path)
        with state_errors(f"could not delete {self.result}"):
            self.result.unlink(missing_ok=True)

    def start_over(self) -> None:
        """Delete the result, the states that the run could resume from, and the model."""
        self.discard_result()
        for folder in (self.stages, self.model):
            remove_folder(folder)


def is_run_folder(path: Path) -> bool:
    """Whether this folder is itself the folder of a run."""
    return (path / "config.json").is_file() or (path / "result.json").is_file()


def run_folders(runs: Path) -> Iterator[RunFolder]:
    """All run folders in `runs`, sorted by name."""
    for path in sorted(runs.iterdir()) if runs.is_dir() else []:
        if is_run_folder(path):
            yield RunFolder(path)


def checked_config(config: Mapping[str, Any] | None) -> dict[str, Any]:
    """What tables use of a run's description; parts of a wrong type are left out."""
    checked: dict[str, Any] = {}
    config = config or {}
    planned, named_by, commit = (config.get(key) for key in ("planned", "named_by", "commit"))
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
        """Name, result and config of finished runs; damaged ones go to `damaged`, or raise."""
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
    def __init__(self, path: Path, store: "ReadingStore") -> None:
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
    """A store that reads each result once; `problems` are damaged ones, `only` hides others."""

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
        hidden = len(self.damaged) - NAMED
        more = [f"{hidden:,} more results cannot be read and also count as missing"]
        return self.damaged[:NAMED] + (more if hidden > 0 else [])

    def _try(self, folder: RunFolder) -> Result | None:
        if not folder.finished():
            return None
        try:
            result = folder.read()
        except FarshoreError as error:
            what = "its run counts as missing, and the same command will repeat it"
            self.damaged.append(f"{error}; {what}")
            return None
        if result.target is None:
            return result
        # No table shows the confusion matrix, which is most of a result's size if there are many
        # classes; the rows of each class are enough for the level of the most frequent one.
        counts = [[sum(row)] for row in result.target.confusion]
        target = result.target.model_copy(update={"confusion": counts})
        return result.model_copy(update={"target": target})


FOLDER = "experiments"
# File name endings: an experiment at tiny scale, or searched differently from its file, is recorded
# next to the original and never replaces it.
TINY = ".tiny"
OPTUNA = ".optuna"


def record_experiment(experiment: Experiment, runs: Path, book: Book, *, ending: str = "") -> None:
    """Write the experiment, and those it depends on unless they are recorded already.

    The whole experiment is written even if a sweep was narrowed to a part of it: a report then
    shows what is missing.
    """
    check_dependencies(experiment, book)
    for name in needs(experiment):
        if not _file(runs, name, ending).is_file():
            record_experiment(book(name), runs, book, ending=ending)
    path = _file(runs, experiment.name, ending)
    text = write_yaml(experiment.model_dump(mode="json", exclude_defaults=True))
    write_inside(runs, path, text.encode())


def recorded_experiments(
    runs: Path, damaged: list[str] | None = None
) -> dict[str, tuple[Experiment, Book]]:
    """The recorded experiments by file name, each with its book.

    Unreadable ones are reported in `damaged`; without it, they raise.
    """
    recorded: dict[str, tuple[Experiment, Book]] = {}
    for path in sorted((runs / FOLDER).glob("*.yaml")):
        try:
            experiment = read_experiment(path, None)
            book = recorded_book(runs, path.stem.removeprefix(experiment.name))
            recorded[path.stem] = (experiment, book)
        except FarshoreError as error:
            if damaged is None:
                raise
            damaged.append(str(error))
    return recorded


def recorded_book(runs: Path, ending: str = "") -> Book:
    """A book of the experiments recorded in a folder of runs."""

    def find(name: str) -> Experiment:
        path = _file(runs, name, ending)
        if not path.is_file():
            why = f"{runs} does not record the experiment {name!r}: sweep it into this folder first"
            raise FarshoreError(why)
        return read_experiment(path, None)

    return find


def _file(runs: Path, name: str, ending: str) -> Path:
    return runs / FOLDER / f"{name}{ending}.yaml"
