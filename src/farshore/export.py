"""Export: the predictor with its preprocessing inside, as ONNX or as a torch.export program.

Tables: `numbers` [rows, number columns] as float64, NaN where nothing was measured, and
`categories` [rows, category columns] as int64 codes. Images: `images` as uint8. Learners of arrays:
`inputs` as they were learned. The answer is `probabilities`. Class names, column names and the
codes of the categories are in the file's metadata under `farshore`, as JSON.
"""

from __future__ import annotations

import json
import logging
import os
import uuid
import warnings
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor, nn

from . import __version__
from .data.table import LIMIT, TablePreprocessing
from .errors import FarshoreError, needs
from .learner import Learner

MISSING = -1
TOLERANCE = 1e-5
TRIAL_ROWS = 5


class TableInputs(nn.Module):
    """TablePreprocessing as tensor operations: the same numbers from raw columns and category
    codes.
    """

    centre: Tensor
    scale: Tensor

    def __init__(self, preprocessing: TablePreprocessing) -> None:
        super().__init__()
        fixed = [
            found if found is not None else (0.0, 1.0) for found in preprocessing.numbers.values()
        ]
        self.register_buffer(
            "centre", torch.tensor([centre for centre, _ in fixed], dtype=torch.float64)
        )
        self.register_buffer(
            "scale", torch.tensor([scale for _, scale in fixed], dtype=torch.float64)
        )
        self.indicators = preprocessing.indicators
        self.known = [len(known or []) for known in preprocessing.categories.values()]

    def forward(self, numbers: Tensor | None, categories: Tensor | None) -> Tensor:
        """Features [rows, width], in the order of the preprocessing."""
        parts = []
        if numbers is not None:
            missing = numbers.isnan() | (
                numbers.abs() == torch.inf
            )  # isinf would be taken in single precision by onnxruntime
            present = torch.where(missing, self.centre, numbers)
            scaled = torch.where(
                missing, 0.0, ((present - self.centre) / self.scale).clamp(-LIMIT, LIMIT)
            )
            both = torch.stack([scaled, missing.double()], dim=2).flatten(1)
            parts.append(both if self.indicators else scaled)
        for column, known in enumerate(self.known):
            assert categories is not None
            codes = categories[:, column : column + 1]
            missing = codes < 0
            seen = codes == torch.arange(known, device=codes.device)
            other = ~missing & (codes >= known)
            parts += [seen.double(), other.double(), missing.double()]
        return torch.cat(parts, dim=1).float()


class Exported(nn.Module):
    """Raw inputs to probabilities."""

    def __init__(self, predictor: nn.Module, table: TableInputs | None) -> None:
        super().__init__()
        self.predictor = predictor
        self.table = table

    def forward(self, *inputs: Tensor) -> Tensor:
        """The probability of each class."""
        if self.table is None:
            prepared = inputs[0]
        else:
            numbers = inputs[0] if len(self.table.centre) else None
            prepared = self.table(numbers, inputs[-1] if self.table.known else None)
        probabilities: Tensor = self.predictor(prepared).softmax(dim=1)
        return probabilities


def export_model(learner: Learner, file: str | Path) -> dict[str, Any]:
    """Write `file` (.onnx or .pt2) and compare its answers with the learner's. Returns what is
    in its metadata.
    """
    file = Path(file)
    if file.suffix not in (".onnx", ".pt2"):
        raise FarshoreError(
            f"{file} is not allowed: name a file that ends in .onnx, or in .pt2 for torch.export"
        )
    if learner.shape is None or learner.classes is None:
        raise FarshoreError("this learner has not learned a domain yet: there is nothing to export")
    if not file.parent.is_dir():
        raise FarshoreError(f"there is no folder {str(file.parent)!r} to write {file.name} into")
    preprocessing = learner.preprocessing
    table = TableInputs(preprocessing) if isinstance(preprocessing, TablePreprocessing) else None
    model = Exported(deepcopy(learner.system.predictor()).cpu(), table).eval()
    trial = trial_inputs(learner)
    facts = describe(learner, list(trial))
    with torch.no_grad():
        expected = model(*trial.values()).numpy()
    beside = file.with_name(
        f".{uuid.uuid4().hex[:8]}{file.name}"
    )  # a killed export leaves no half file under the name
    try:
        write, answers = (
            (_write_onnx, _answers_onnx)
            if file.suffix == ".onnx"
            else (_write_program, _answers_program)
        )
        write(model, trial, facts, beside)
        difference = float(np.abs(answers(beside, trial) - expected).max())
        if not difference <= TOLERANCE:
            raise FarshoreError(
                f"{file} was not written: its answers differ from the learner's by {difference:.2g}"
            )
        os.replace(beside, file)
    except OSError as error:
        raise FarshoreError(f"{file} cannot be written: {error.strerror or error}") from None
    finally:
        beside.unlink(missing_ok=True)
    return facts


def describe(learner: Learner, inputs: list[str]) -> dict[str, Any]:
    """What a program that uses the file has to know."""
    facts: dict[str, Any] = {
        "farshore": __version__,
        "method": learner.method_type.name,
        "domains": [domain["name"] for domain in learner.domains],
        "classes": [str(label) for label in learner.classes or []],
        "inputs": inputs,
    }
    if isinstance(learner.preprocessing, TablePreprocessing):
        known = {
            column: list(values or [])
            for column, values in learner.preprocessing.categories.items()
        }
        facts["numbers"] = list(learner.preprocessing.numbers)
        facts["categories"] = {
            column: {
                **{value: code for code, value in enumerate(values)},
                "(other)": len(values),
                "(missing)": MISSING,
            }
            for column, values in known.items()
        }
    return facts


def encode(preprocessing: TablePreprocessing, frame: pd.DataFrame) -> dict[str, Tensor]:
    """A data frame as the exported model wants it: numbers with NaN, and category codes."""
    numbers = [
        pd.to_numeric(frame[column]).to_numpy(dtype=float) for column in preprocessing.numbers
    ]
    codes = []
    for column, values in preprocessing.categories.items():
        number = {value: code for code, value in enumerate(values or [])}
        texts, missing = frame[column].astype(str), frame[column].isna()
        codes.append(
            [
                MISSING if gone else number.get(text, len(number))
                for text, gone in zip(texts, missing, strict=True)
            ]
        )
    found = {"numbers": torch.from_numpy(np.stack(numbers, axis=1))} if numbers else {}
    return found | (
        {"categories": torch.tensor(codes, dtype=torch.long).T.contiguous()} if codes else {}
    )


def trial_inputs(learner: Learner) -> dict[str, Tensor]:
    """A few made-up rows by the names of the inputs, with gaps and unknown categories, to trace
    and to try the model.
    """
    draw = torch.Generator().manual_seed(0)
    if isinstance(learner.preprocessing, TablePreprocessing):
        table = learner.preprocessing
        fixed = torch.tensor(
            [found or (0.0, 1.0) for found in table.numbers.values()], dtype=torch.float64
        ).reshape(-1, 2)
        numbers = fixed[:, 0] + fixed[:, 1] * torch.randn(
            TRIAL_ROWS, len(fixed), generator=draw, dtype=torch.float64
        )
        numbers[0] = torch.nan
        counts = torch.tensor([len(known or []) for known in table.categories.values()])
        codes = torch.arange(TRIAL_ROWS)[:, None] % (counts + 2) + MISSING
        found = {"numbers": numbers} if len(fixed) else {}
        return found | ({"categories": codes} if len(counts) else {})
    assert learner.shape is not None
    if learner.dtype == torch.uint8:
        return {
            "images": torch.randint(
                256, (TRIAL_ROWS, *learner.shape), generator=draw, dtype=torch.uint8
            )
        }
    return {"inputs": torch.randn(TRIAL_ROWS, *learner.shape, generator=draw)}


def _rows(trial: dict[str, Tensor]) -> Any:
    """Every input may have any number of rows."""
    rows = torch.export.Dim("rows", min=1)
    return (tuple({0: rows} for _ in trial),)


def _write_program(
    model: Exported, trial: dict[str, Tensor], facts: dict[str, Any], file: Path
) -> None:
    program = torch.export.export(model, tuple(trial.values()), dynamic_shapes=_rows(trial))
    with open(file, "wb") as opened:
        torch.export.save(program, opened, extra_files={"farshore": json.dumps(facts)})


def _answers_program(file: Path, trial: dict[str, Tensor]) -> np.ndarray:
    with open(file, "rb") as opened, torch.no_grad():
        answers: np.ndarray = torch.export.load(opened).module()(*trial.values()).numpy()
    return answers


def _write_onnx(
    model: Exported, trial: dict[str, Tensor], facts: dict[str, Any], file: Path
) -> None:
    try:
        import onnx
        import onnxruntime  # noqa: F401
        import onnxscript  # noqa: F401
    except ImportError:
        raise needs(
            "export",
            "an .onnx file needs onnx, onnxscript and onnxruntime",
            otherwise="export to a .pt2 file",
        ) from None
    # It says at every export that torchvision is not there, which nothing here needs.
    logging.getLogger("torch.onnx._internal.exporter._registration").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        warnings.filterwarnings(
            "ignore", message="# The axis name: rows will not be used"
        )  # both inputs have the same rows: it is used
        warnings.filterwarnings(
            "ignore", message=r"`isinstance\(treespec, LeafSpec\)` is deprecated"
        )  # PyTorch of itself
        program = torch.onnx.export(
            model,
            tuple(trial.values()),
            dynamo=True,
            dynamic_shapes=_rows(trial),
            input_names=list(trial),
            output_names=["probabilities"],
            verbose=False,
        )
    assert program is not None
    made = program.model_proto
    onnx.helper.set_model_props(made, {"farshore": json.dumps(facts)})
    onnx.save(made, str(file))


def _answers_onnx(file: Path, trial: dict[str, Tensor]) -> np.ndarray:
    import onnxruntime

    session = onnxruntime.InferenceSession(str(file), providers=["CPUExecutionProvider"])
    answers: np.ndarray = session.run(
        None, {name: values.numpy() for name, values in trial.items()}
    )[0]
    return answers
