"""What all loggers share: which numbers of a run they write, and how often."""

from abc import abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

from torch import Tensor

from ..observer import Observer

if TYPE_CHECKING:
    from ..runs.result import Result

# Reading a loss waits for the device, so it is not done in every step.
EVERY = 10


class Logger(Observer):
    """Writes the losses of every tenth step and all scores of every domain.

    Steps are counted over all domains. `finish` adds the scores on the target and closes the log; a
    learner that keeps learning calls `close` when it is done.

    folder: where the logs are; several runs share it.
    run: the name of the run.
    every: how many steps apart losses are written.
    """

    # The name of the logger on the command line.
    name: ClassVar[str]

    def __init__(
        self, folder: str | Path = "logs", run: str = "run", *, every: int = EVERY
    ) -> None:
        self.folder = Path(folder)
        self.run = run
        self.every = every
        self.count = 0
        self.open()

    def open(self) -> None:
        """Open the log, when the logger is made."""

    @classmethod
    def prepare(cls, folder: Path) -> None:
        """Make what several processes share, before any of them starts."""

    def step(self, domain: str, step: int, terms: Mapping[str, Tensor]) -> None:
        """Write the losses now and then."""
        if self.count % self.every == 0:
            self.write({f"loss/{name}": float(term) for name, term in terms.items()})
        self.count += 1

    def domain(self, domain: str, scores: Mapping[str, float]) -> None:
        """Write the scores after a domain."""
        self.write({f"score/{name}": value for name, value in scores.items()})

    def finish(self, result: "Result") -> None:
        """Write the settings and the scores on the target, and close the log."""
        self.describe({"benchmark": result.title, **_described(result)})
        if result.target is not None:
            scores = result.target.scores
            known = {name: score for name, score in scores.items() if score is not None}
            self.write({f"target/{name}": score for name, score in known.items()})
        self.close()

    @abstractmethod
    def write(self, values: Mapping[str, float]) -> None:
        """Write some numbers at the current step."""

    def describe(self, facts: Mapping[str, str]) -> None:
        """Write what the run is; a logger without a place for it leaves it out."""

    @abstractmethod
    def close(self) -> None:
        """Flush and close the log."""


def _described(result: "Result") -> dict[str, str]:
    run = result.run
    return {
        "method": run.method,
        "order": " ".join(result.sources),
        "target": result.target.name if result.target is not None else run.target or "",
        "seed": str(run.seed),
        "status": result.status,
        **{f"settings.{name}": str(value) for name, value in result.settings.items()},
    }
