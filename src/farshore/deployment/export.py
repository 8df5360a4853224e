"""Export of a model with its preprocessing, as ONNX or as a torch.export program.

Inputs of table models: `numbers` [rows, number columns] as float64, NaN where nothing was measured,
`categories` [rows, category columns] as int64 codes, and `texts` [rows, features] as float32: words
are not hashed in the file, `Learner.text_features` makes these features. Image models: `images` as
uint8. Array models: `inputs` as they were learned. The output is `probabilities`, or `values` in
the label's unit. The file's metadata contain class names, or label and unit, column names and the
codes of the categories as JSON, under `farshore`.
"""

import io
import json
import logging
import warnings
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from .. import __version__
from ..base.files import write_output
from ..data.tables.table import LIMIT, TablePreprocessing
from ..errors import FarshoreError, needs
from ..learner.learner import Learner
from ..tasks.calibration import Calibration, unchanged
from ..tasks.classification import CLASSIFICATION
from ..tasks.task import Task

MISSING = -1
TOLERANCE = 1e-5
TRIAL_ROWS = 5


class TableInputs(nn.Module):
    """TablePreprocessing as tensor operations on raw columns and category codes."""

    centre: Tensor
    scale: Tensor

    def __init__(self, preprocessing: TablePreprocessing) -> None:
        super().__init__()
        # Copies: buffers that share memory cannot be saved one by one.
        centre, scale = (column.clone() for column in _scalings(preprocessing).T)
        self.register_buffer("centre", centre)
        self.register_buffer("scale", scale)
        self.indicators = preprocessing.indicators
        self.known = [len(known or []) for known in preprocessing.categories.values()]
        self.reads = preprocessing.texts is not None

    def forward(
        self, numbers: Tensor | None, categories: Tensor | None, texts: Tensor | None
    ) -> Tensor:
        """Features [rows, width], in the order of the preprocessing."""
        parts = []
        if numbers is not None:
            # Not isinf, which onnxruntime computes in single precision.
            missing = numbers.isnan() | (numbers.abs() == torch.inf)
            away = torch.where(missing, self.centre, numbers) - self.centre
            scaled = torch.where(missing, 0.0, (away / self.scale).clamp(-LIMIT, LIMIT))
            with_indicators = torch.stack([scaled, missing.double()], dim=2).flatten(1)
            parts.append(with_indicators if self.indicators else scaled)
        for column, known in enumerate(self.known):
            assert categories is not None
            codes = categories[:, column : column + 1]
            missing = codes < 0
            seen = codes == torch.arange(known, device=codes.device)
            other = ~missing & (codes >= known)
            parts += [seen.double(), other.double(), missing.double()]
        parts += [texts.double()] if texts is not None else []
        return torch.cat(parts, dim=1).float()


def _scalings(preprocessing: TablePreprocessing) -> Tensor:
    """Centre and scale of each number column, [columns, 2]."""
    known = [scaling or (0.0, 1.0) for scaling in preprocessing.numbers.values()]
    return torch.tensor(known, dtype=torch.float64).reshape(-1, 2)


class Exported(nn.Module):
    """The exported model: raw inputs in, probabilities or values out."""

    offsets: Tensor

    def __init__(
        self,
        predictor: nn.Module,
        table: TableInputs | None,
        calibration: Calibration,
        task: Task = CLASSIFICATION,
    ) -> None:
        super().__init__()
        self.task = task
        self.predictor = predictor
        self.table = table
        self.temperature = calibration.temperature
        self.register_buffer("offsets", torch.tensor(calibration.offsets))

    def forward(self, *inputs: Tensor) -> Tensor:
        """The probability of each class, or the value of each label."""
        if self.table is None:
            prepared = inputs[0]
        else:
            given = list(inputs)
            has = (len(self.table.centre) > 0, len(self.table.known) > 0, self.table.reads)
            prepared = self.table(*(given.pop(0) if each else None for each in has))
        logits: Tensor = self.predictor(prepared)
        return self.task.delivered(logits / self.temperature + self.offsets)


def export_model(
    learner: Learner, file: str | Path, calibration: Calibration | None = None
) -> dict[str, Any]:
    """Write a .onnx or .pt2 file, calibrated if given, check its outputs; return its metadata."""
    file = Path(file)
    if file.suffix not in (".onnx", ".pt2"):
        raise FarshoreError(
            f"{file} is not allowed: name a file that ends in .onnx, or in .pt2 for torch.export"
        )
    template = not learner.domains and learner.shape is not None and learner.system.forgets_exactly
    if learner.shape is None or template:
        raise FarshoreError("this learner has not learned a domain yet: there is nothing to export")
    if not file.parent.is_dir():
        raise FarshoreError(f"there is no folder {str(file.parent)!r} to write {file.name} into")
    preprocessing = learner.preprocessing
    table = TableInputs(preprocessing) if isinstance(preprocessing, TablePreprocessing) else None
    task = learner.known_task
    applied = calibration or unchanged(task.outputs)
    model = Exported(deepcopy(learner.predictor()).cpu(), table, applied, task).eval()
    trial = trial_inputs(learner)
    facts = describe(learner, list(trial))
    with torch.no_grad():
        expected = model(*trial.values()).numpy()
    # In memory: PyTorch aborts the whole process if the disk is full while it writes a file.
    encoded = _as_onnx if file.suffix == ".onnx" else _as_program
    data, again = encoded(model, trial, facts)
    difference = float(np.abs(again - expected).max())
    if not difference <= TOLERANCE * max(1.0, float(np.abs(expected).max())):
        raise FarshoreError(
            f"{file} was not written: its outputs differ from the learner's by {difference:.2g}"
        )
    write_output(file, data)
    return facts


def describe(learner: Learner, inputs: list[str]) -> dict[str, Any]:
    """The metadata that a program needs to use the file."""
    facts: dict[str, Any] = {
        "farshore": __version__,
        "method": learner.method_type.name,
        "domains": [domain["name"] for domain in learner.domains],
        "classes": [str(label) for label in learner.classes or []],
        "inputs": inputs,
        **learner.known_task.either({}, {"task": learner.known_task.state_dict()}),
    }
    table = learner.preprocessing
    if isinstance(table, TablePreprocessing):
        facts["numbers"] = list(table.numbers)
        if table.dates:
            facts["dates"] = table.dates
        if table.texts is not None:
            facts["texts"] = {"columns": table.texts.columns, "features": table.texts.names}
            facts["texts_from"] = "farshore.load(FOLDER).text_features(frame)"
        facts["categories"] = {}
        for column, known in table.categories.items():
            codes = {value: code for code, value in enumerate(known or [])}
            codes |= {"(other)": len(codes), "(missing)": MISSING}
            facts["categories"][column] = codes
    return facts


def trial_inputs(learner: Learner) -> dict[str, Tensor]:
    """A few random rows by input, with gaps and unknown categories, to trace and check with."""
    generator = torch.Generator().manual_seed(0)
    if isinstance(learner.preprocessing, TablePreprocessing):
        table = learner.preprocessing
        scalings = _scalings(table)
        numbers = scalings[:, 0] + scalings[:, 1] * torch.randn(
            TRIAL_ROWS, len(scalings), generator=generator, dtype=torch.float64
        )
        numbers[0] = torch.nan
        counts = torch.tensor([len(known or []) for known in table.categories.values()])
        codes = torch.arange(TRIAL_ROWS)[:, None] % (counts + 2) + MISSING
        inputs = {"numbers": numbers} if len(scalings) else {}
        inputs |= {"categories": codes} if len(counts) else {}
        if table.texts is not None:
            width = len(table.texts.names)
            inputs["texts"] = torch.rand(TRIAL_ROWS, width, generator=generator)
        return inputs
    assert learner.shape is not None
    shape = (TRIAL_ROWS, *learner.shape)
    if learner.dtype == torch.uint8:
        return {"images": torch.randint(256, shape, generator=generator, dtype=torch.uint8)}
    return {"inputs": torch.randn(shape, generator=generator)}


def _dynamic_shapes(trial: dict[str, Tensor]) -> Any:
    """The shapes for the tracer: all inputs have the same, arbitrary number of rows."""
    rows = torch.export.Dim("rows", min=1)
    return (tuple({0: rows} for _ in trial),)


# The file's contents, and what it says about the trial rows.
Encoded = tuple[bytes, np.ndarray]


def _as_program(model: Exported, trial: dict[str, Tensor], facts: dict[str, Any]) -> Encoded:
    shapes = _dynamic_shapes(trial)
    program = torch.export.export(model, tuple(trial.values()), dynamic_shapes=shapes)
    for node in program.graph.nodes:
        node.meta.pop("stack_trace", None)  # it names this machine's files
    buffer = io.BytesIO()
    torch.export.save(program, buffer, extra_files={"farshore": json.dumps(facts)})
    data = buffer.getvalue()
    with torch.no_grad():
        again = torch.export.load(io.BytesIO(data)).module()(*trial.values())
    return data, again.numpy()


def _as_onnx(model: Exported, trial: dict[str, Tensor], facts: dict[str, Any]) -> Encoded:
    try:
        import onnx
        import onnxruntime
        import onnxscript  # noqa: F401
    except ImportError:
        what = "an .onnx file needs onnx, onnxscript and onnxruntime"
        raise needs("export", what, otherwise="export to a .pt2 file") from None

    # It warns at every export that torchvision is not installed, which is not needed here.
    logging.getLogger("torch.onnx._internal.exporter._registration").setLevel(logging.ERROR)
    with warnings.catch_warnings():
        # Not true: both inputs share the axis.
        warnings.filterwarnings("ignore", message="# The axis name: rows will not be used")
        # PyTorch warns about its own code.
        warnings.filterwarnings(
            "ignore", message=r"`isinstance\(treespec, LeafSpec\)` is deprecated"
        )
        program = torch.onnx.export(
            model,
            tuple(trial.values()),
            dynamo=True,
            dynamic_shapes=_dynamic_shapes(trial),
            input_names=list(trial),
            output_names=[model.task.either("probabilities", "values")],
            verbose=False,
        )
    assert program is not None
    onnx_model = program.model_proto
    for node in onnx_model.graph.node:
        del node.metadata_props[:]  # they name this machine's files
    onnx.helper.set_model_props(onnx_model, {"farshore": json.dumps(facts)})
    data = onnx_model.SerializeToString()
    session = onnxruntime.InferenceSession(data, providers=["CPUExecutionProvider"])
    given = {name: values.numpy() for name, values in trial.items()}
    return data, session.run(None, given)[0]
