"""Resume a killed run from the learner's state at the end of the last finished domain."""

import json
import shutil
import time
from pathlib import Path
from typing import Any

from ..base.files import read_file, reason, write_atomic
from ..base.state import load_state
from ..errors import StateError
from ..learner.learner import Learner

RECORD = "record.json"


class Resume:
    """A folder with saved learners (`1`, `2`, ... finished domains) and a record of measurements.

    The record is written last and names the state it belongs to, so that the two match whenever a
    run is killed.

    keep: keep the states of earlier domains too.
    least_seconds: work of less than this time is not saved but repeated.
    """

    def __init__(
        self, folder: str | Path, *, keep: bool = False, least_seconds: float = 0.0
    ) -> None:
        self.folder = Path(folder)
        self.keep = keep
        self.least_seconds = least_seconds
        self._saved_at = time.monotonic()

    def restore(self, learner: Learner) -> tuple[int, dict[str, Any]]:
        """Restore a fresh learner; how many domains it has learned, and the record, or (0, {})."""
        path = self.folder / RECORD
        if not path.is_file():
            return 0, {}
        try:
            saved = json.loads(path.read_bytes())
            done, record = int(saved["done"]), dict(saved["record"])
            state = load_state(self.folder / str(done), kind="learner")
        except (OSError, KeyError, TypeError, ValueError, StateError) as error:
            # Repeating a run only costs time; continuing from damaged numbers gives wrong results.
            learner.observer.note(f"{path} cannot be used, the run starts over: {error}")
            return 0, {}
        learner.load_state_dict(state)
        return done, record

    def save(self, learner: Learner, record: dict[str, Any]) -> None:
        """Save the state at the end of a domain; with a full disk the run goes on without."""
        if not self.keep and time.monotonic() - self._saved_at < self.least_seconds:
            return
        done = len(learner.domains)
        try:
            learner.save(self.folder / str(done))
            data = json.dumps({"done": done, "record": record, "keep": self.keep}).encode()
            write_atomic(self.folder / RECORD, data)
        except (OSError, StateError) as error:
            if self.keep:
                raise StateError(f"could not save the state: {reason(error)}") from error
            learner.observer.note(
                f"the state after {done} domains could not be saved ({reason(error)}): if the run "
                "is interrupted, it repeats more"
            )
            return
        self._saved_at = time.monotonic()
        if not self.keep:
            for old in self.folder.iterdir():
                if old.is_dir() and old.name != str(done):
                    shutil.rmtree(old, ignore_errors=True)

    def clear(self) -> None:
        """Delete the states, once there is a result, unless they are kept."""
        if not self.keep and self.folder.is_dir():
            shutil.rmtree(self.folder, ignore_errors=True)


def is_litter(folder: Path) -> bool:
    """Whether these states of a finished run were to be deleted when their process was killed."""
    try:
        return not json.loads(read_file(folder / RECORD))["keep"]
    except (OSError, ValueError, KeyError, TypeError):
        return True
