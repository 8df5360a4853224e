"""A run on disk: one folder, named by what determines its numbers.

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

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ...base.files import reason, remove_folder, remove_temporary, write_atomic
from ...errors import StateError
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
            data = self.result.read_bytes()
            expected = self.checksum.read_text().strip()
        except OSError as error:
            raise StateError(
                f"{error.filename or self.result} cannot be read: {error.strerror or error}"
            ) from error
        if hashlib.sha256(data).hexdigest() != expected:
            raise StateError(
                f"{self.result} is damaged: its checksum is not the one in {self.checksum.name}"
            )
        return Result.read(self.result)

    def write(self, result: Result) -> None:
        """Write the checksum, then the result: a run is finished once both are on disk."""
        data = result.text().encode()
        try:
            write_atomic(self.checksum, hashlib.sha256(data).hexdigest().encode())
            write_atomic(self.result, data)
        except OSError as error:
            raise StateError(f"could not write {self.result}: {reason(error)}") from error

    def write_config(self, config: dict[str, Any]) -> None:
        """Write the description of the run, unless there is one that can be read."""
        try:
            if self.read_config() is None:
                write_atomic(self.config, json.dumps(config, indent=1).encode())
        except OSError as error:
            raise StateError(f"could not write {self.config}: {reason(error)}") from error

    def read_config(self) -> dict[str, Any] | None:
        """The description that `write_config` wrote; None if it cannot be read."""
        try:
            config = json.loads(self.config.read_bytes())
        except (OSError, ValueError):
            return None
        return config if isinstance(config, dict) else None

    def discard_result(self) -> None:
        """Delete a damaged result, so that the run is repeated."""
        try:
            self.result.unlink(missing_ok=True)
        except OSError as error:
            raise StateError(f"could not delete {self.result}: {reason(error)}") from error

    def start_over(self) -> None:
        """Delete the result, the states that the run could resume from, and the model."""
        self.discard_result()
        for folder in (self.stages, self.model):
            remove_folder(folder)

    def remove_temporary(self) -> None:
        """Delete what killed writers left behind."""
        remove_temporary(self.path, WRITTEN)


def is_run_folder(path: Path) -> bool:
    """Whether this folder is itself the folder of a run."""
    return (path / "config.json").is_file() or (path / "result.json").is_file()


def run_folders(runs: Path) -> Iterator[RunFolder]:
    """All run folders in `runs`, sorted by name."""
    for path in sorted(runs.iterdir()) if runs.is_dir() else []:
        if is_run_folder(path):
            yield RunFolder(path)
