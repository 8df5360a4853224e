"""Resume: the learner's state at the end of each domain of a run, so that a killed run continues
instead of starting over.
"""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import Any

from .errors import StateError
from .learner import Learner
from .state import load_state, write_atomic

RECORD = "record.json"


class Resume:
    """A folder with one saved learner per finished domain (`1`, `2`, ...) and the record of what
    was measured so far.

    The record is written last and names the state that it belongs to: whenever a run is killed, the
    two fit together. Earlier states are deleted unless `keep`. Work of less than `least_seconds` is
    not worth the disk: it is repeated.
    """

    def __init__(
        self, folder: str | Path, *, keep: bool = False, least_seconds: float = 0.0
    ) -> None:
        self.folder = Path(folder)
        self.keep = keep
        self.least_seconds = least_seconds
        self._saved_at = time.monotonic()

    def restore(self, learner: Learner) -> tuple[int, dict[str, Any]]:
        """Bring a fresh learner to where the run stopped: how many domains it has learned, and the
        record; (0, {}) to begin.
        """
        path = self.folder / RECORD
        if not path.is_file():
            return 0, {}
        try:
            saved = json.loads(path.read_bytes())
            done, record = int(saved["done"]), dict(saved["record"])
            state = load_state(self.folder / str(done), kind="learner")
        except (OSError, KeyError, TypeError, ValueError, StateError) as error:
            # Repeating a run costs time only; continuing from damaged numbers would cost the truth.
            learner.observer.note(f"{path} cannot be used, the run starts over: {error}")
            return 0, {}
        learner.load_state_dict(state)
        return done, record

    def save(self, learner: Learner, record: dict[str, Any]) -> None:
        """The end of a domain."""
        if not self.keep and time.monotonic() - self._saved_at < self.least_seconds:
            return
        done = len(learner.domains)
        learner.save(self.folder / str(done))
        try:
            data = json.dumps({"done": done, "record": record}).encode()
            write_atomic(self.folder / RECORD, data)
        except OSError as error:
            raise StateError(
                f"could not save into {self.folder / RECORD}: {error.strerror or error}"
            ) from error
        self._saved_at = time.monotonic()
        if not self.keep:
            for old in self.folder.iterdir():
                if old.is_dir() and old.name != str(done):
                    shutil.rmtree(old, ignore_errors=True)

    def clear(self) -> None:
        """The result is written: nothing of this is needed any more, unless it is kept."""
        if not self.keep and self.folder.is_dir():
            shutil.rmtree(self.folder, ignore_errors=True)
