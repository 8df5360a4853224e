"""The result of a run: what was measured, and how it is saved, read and checked."""

import json
import math
from collections.abc import Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, Field, ValidationError, model_validator

from ..base.files import state_errors, write_atomic
from ..base.notebook import html_table
from ..entry import Kind
from ..errors import StateError
from ..settings import explain
from ..tasks.classification import CLASSIFICATION
from ..tasks.metrics import METRICS, MIXED, Metric, in_unit
from .run import Run

# R[i][j]: the score on source j after learning source i, in the order of training. R is square and
# includes sources that are not learned yet (j > i). With many sources only some are scored after
# each one (the protocol's `scored_after`): the other entries are None.
Matrix = Sequence[Sequence[float | None]]


def measured(row: Sequence[float | None]) -> list[float]:
    """The scores of a row that were measured."""
    return [value for value in row if value is not None]


def average(matrix: Matrix) -> float:
    """Mean of the last row: the final model's score over all sources."""
    return sum(measured(matrix[-1])) / len(matrix[-1])


def backward_transfer(matrix: Matrix) -> float | None:
    """BWT = 1/(k-1) Σ_{i<k} (R[k][i] - R[i][i]) (Lopez-Paz and Ranzato, 2017, Eq. 3).

    Negative values mean forgetting. None for one domain.
    """
    last = len(matrix) - 1
    if last < 1:
        return None
    pairs = [measured((matrix[last][i], matrix[i][i])) for i in range(last)]
    return sum(now - then for now, then in pairs) / last


def forgetting(matrix: Matrix) -> float | None:
    """1/(k-1) Σ_{i<k} max_{l<k} (R[l][i] - R[k][i]) (Chaudhry et al., 2018).

    None for one domain. If only some sources were scored after every other one, it is their mean.
    """
    last = len(matrix) - 1
    drops = []
    for i in range(last):
        column = [matrix[row][i] for row in range(i, last + 1)]
        *before, final = measured(column)
        if len(before) == last - i:
            drops.append(max(before) - final)
    return sum(drops) / len(drops) if drops else None


# The paper's three options of reporting source performance, as (split for selecting a run, split
# to report).
SOURCE_OPTIONS = {1: ("validation",) * 2, 2: ("validation", "train"), 3: ("train", "validation")}

# How a run ended. `pruned`: stopped between two domains because of the sources' scores; the target
# was never opened.
RunStatus = Literal["done", "diverged", "pruned"]
SPLITS: tuple[Literal["train", "validation"], ...] = ("train", "validation")


class TargetScores(BaseModel):
    """The scores of the frozen model on the target, measured once on all of its rows."""

    name: str
    rows: int
    scores: dict[str, float | None]
    confusion: list[list[int]]
    # Rows, mean confidence and share of right predictions by confidence; older results have none.
    reliability: list[tuple[int, float, float]] = []
    # Of numbers, label and prediction of some rows.
    examples: list[tuple[float, float]] = []
    opened_at: str
    weights: str


class Result(BaseModel):
    """The result of a run. Averages, BWT and forgetting are computed from the matrices."""

    # Of this form; results of older versions of farshore have none. 2 says what a label is.
    version: Literal[1, 2] = 1
    run: Run
    # The name of the benchmark, or of the file or folder for own data.
    title: str
    # Only continual methods are ranked: offline methods saw all sources at once, adaptations saw
    # the inputs of the target.
    kind: Kind = "continual"
    status: RunStatus
    message: str = ""
    metric: str
    # What a label is, as the task describes itself.
    task: dict[str, Any] = Field(default_factory=CLASSIFICATION.state_dict)
    classes: list[str]
    sources: list[str]
    settings: dict[str, Any]
    run_settings: dict[str, Any]
    network: dict[str, Any]
    # How the steps of the last domain were carried out (eager, graph or compiled), and in which
    # precision.
    execution: str = "eager"
    precision: str = "float32"
    steps: int
    memory: int
    rows_per_step: list[int]
    # By split: R[i][j], the score on source j after learning source i; one row if the sources were
    # learned at once.
    matrices: dict[str, list[list[float | None]]]
    # What had been learned at each row of the matrices.
    stages: list[str] = Field(default_factory=list)
    # By split: all scores of the final model on each source; the matrices show only one.
    source_scores: dict[str, list[dict[str, float | None]]] = Field(default_factory=dict)
    # By stage: how strongly each term besides ERM acted on a batch at the end of the domain: the
    # length of its weighted gradient relative to that of ERM, and the penalty's weight; for
    # cl-andmask, what the mask takes away. Empty for methods without such terms.
    doses: dict[str, dict[str, float | None]] = Field(default_factory=dict)
    target: TargetScores | None
    seconds: dict[str, float]
    step_milliseconds: list[float]
    memory_bytes: int
    memory_items: int
    method_bytes: int
    notes: list[str]
    versions: dict[str, str]
    # Processor and, if used, GPU; the exact data. Results of older versions lack both.
    hardware: dict[str, str] = Field(default_factory=dict)
    data: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _check_parts(self) -> "Result":
        """Refuse results whose parts do not belong together: every reader relies on them."""
        if self.target is not None and self.metric not in self.target.scores:
            raise ValueError(f"one whose target has a score {self.metric!r}")
        needed = {"seconds": ("total", "training"), "versions": ("torch", "farshore")}
        for key, names in needed.items():
            missing = [name for name in names if name not in getattr(self, key)]
            if missing:
                raise ValueError(f"one with {key}.{missing[0]}")
        if not isinstance(self.network.get("name"), str):
            raise ValueError("one with network.name")
        for split in SPLITS:
            rows = self.matrices.get(split)
            if rows is None or (not rows and self.status == "done"):
                raise ValueError(f"one with matrices.{split}")
            widths = {len(row) for row in rows}
            if len(widths) > 1 or any(not len(rows) <= n <= len(self.sources) for n in widths):
                raise ValueError(f"one with a score per source in each row of matrices.{split}")
            whole = rows[-1:] if self.status == "done" else []
            always = [row[number] for number, row in enumerate(rows)]
            if None in always or any(None in row for row in whole):
                raise ValueError(f"one with the newest and the final scores of matrices.{split}")
        learned = len(self.matrices["validation"])
        if learned > 1 and self.stages not in ([], list(self.sources[:learned])):
            raise ValueError("one with stages that are its sources")
        if not all(map(math.isfinite, self.seconds.values())):
            raise ValueError("one with finite seconds")
        return self

    def __repr__(self) -> str:
        at = f", target {self.target.name}" if self.target is not None else ""
        of = f"{self.run.method} on {self.title}{at}, seed {self.run.seed}"
        return f"Result({of}: {self._outcome()})"

    __str__ = __repr__

    def _outcome(self) -> str:
        """The main score on the target, or how the run ended."""
        metric = self.main_metric
        if self.target_score is None or metric is None:
            return self.status if self.target_score is None else f"{self.target_score:.4g}"
        return f"{metric.label} {metric.text(self.target_score)}{metric.unit}"

    def _repr_html_(self) -> str:
        """For notebooks: the score, and the final scores on the sources."""
        finals = {split: self.matrices[split][-1:] for split in SPLITS}
        metric = self.main_metric or METRICS["accuracy"]
        rows = [
            [name, *(metric.text(row[0][place]) if row else "" for row in finals.values())]
            for place, name in enumerate(self.sources)
        ]
        heading = ["source", *(f"{split}, {metric.label} {metric.unit}" for split in SPLITS)]
        return html_table(repr(self), heading, rows)

    def plot(self) -> Any:
        """A figure (plotly) of the final scores on the sources and on the target."""
        # By name, as a registry does: the report is above this layer.
        return import_module("farshore.report.plots").plot_result(self)

    @property
    def main_metric(self) -> Metric | None:
        """The metric, in the label's unit if it has that; None if it is not known."""
        found = METRICS.get(self.metric)
        return in_unit(found, str(self.task.get("unit", ""))) if found is not None else None

    @property
    def target_score(self) -> float | None:
        """The main score: the scenario's metric on the unseen target."""
        return self.target.scores[self.metric] if self.target is not None else None

    def source_score(self, option: int = 2) -> float | None:
        """Mean source score of the final model. Option 2, the paper's, uses the training split."""
        if self.status != "done":
            return None
        found = self.source_scores.get(SOURCE_OPTIONS[option][1], [])
        scores = [value for each in found if (value := each.get(self.metric)) is not None]
        if not scores:  # results of older versions
            return average(self.matrices[SOURCE_OPTIONS[option][1]])
        return sum(scores) / len(scores)

    def backward_transfer(self, split: str = "validation") -> float | None:
        """BWT as Lopez-Paz and Ranzato defined it, on the named split; errors count negative."""
        return backward_transfer(self._gains(split)) if self.status == "done" else None

    def forgetting(self, split: str = "validation") -> float | None:
        """Mean drop from the best score that each source ever had, on the named split."""
        return forgetting(self._gains(split)) if self.status == "done" else None

    def _gains(self, split: str) -> Matrix:
        """The scores with the sign under which higher is better."""
        if METRICS.get(self.metric, MIXED).higher_is_better:
            return self.matrices[split]
        return [
            [None if value is None else -value for value in row] for row in self.matrices[split]
        ]

    def save(self, path: str | Path) -> None:
        """Write the result as JSON, atomically."""
        path = Path(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, self.text().encode())

    def text(self) -> str:
        """The result as JSON."""
        return json.dumps(self.model_dump(mode="json"), indent=1)

    @classmethod
    def read(cls, path: str | Path) -> "Result":
        """Read a result written by `save`."""
        with state_errors(f"{path} cannot be read"):
            data = Path(path).read_bytes()
        try:
            return cls.model_validate_json(data)
        except ValidationError as error:
            reason = " ".join(explain(error, shown=60).split())
            raise StateError(f"{path} is not a complete result: {reason}") from error
