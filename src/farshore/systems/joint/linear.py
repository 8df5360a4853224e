"""LinearModel: a fitted linear classifier as arrays."""

from typing import Any

import numpy as np
import torch
from torch import Tensor

from ...base.forms import FormError, Like, check_form
from ...tasks.task import Task
from ..fitted import FittedModel

FIELDS = ("weight", "bias", "columns")


class LinearModel(FittedModel):
    """Logits x W + b for the classes `columns`; other classes, without rows, get none."""

    fields = FIELDS
    weight: Tensor
    bias: Tensor

    def scores(self, inputs: Tensor) -> Tensor:
        """x W + b, [n, outputs]. Sums of products have the same bits for any number of rows."""
        rows = inputs.flatten(1).double()
        outputs = [(rows * column).sum(dim=1) for column in self.weight.unbind(dim=1)]
        return torch.stack(outputs, dim=1) + self.bias


def from_sklearn(model: Any, mean: np.ndarray, deviation: np.ndarray, task: Task) -> LinearModel:
    """Copy a fitted LogisticRegression of class numbers, or a LinearRegression, before scaling."""
    weight = model.coef_ / deviation
    bias = model.intercept_ - weight @ mean
    classes = getattr(model, "classes_", np.arange(len(weight)))
    if len(weight) < len(classes):  # two classes: the logit of the second one
        weight, bias = (np.concatenate([np.zeros_like(each), each]) for each in (weight, bias))
    parts = {
        "weight": torch.from_numpy(np.ascontiguousarray(weight.T)),
        "bias": torch.from_numpy(bias),
        "columns": torch.from_numpy(classes.astype(np.int64)),
    }
    return LinearModel(task.outputs, parts)


def constant(label: np.ndarray | int, width: int, classes: int) -> LinearModel:
    """The model for rows of one class only, or with the same numbers."""
    numbers = np.ndim(label) > 0
    bias = (
        torch.from_numpy(np.asarray(label)).double()
        if numbers
        else torch.zeros(1, dtype=torch.float64)
    )
    columns = torch.arange(classes) if numbers else torch.tensor([int(label)])
    weight = torch.zeros(width, len(bias), dtype=torch.float64)
    return LinearModel(classes, {"weight": weight, "bias": bias, "columns": columns})


def from_parts(state: Any, width: int, classes: int) -> LinearModel:
    """Restore a model; raise a FormError if its arrays do not belong together."""
    check_form(state, dict.fromkeys(FIELDS), "linear")
    outputs = len(state["bias"]) if isinstance(state["bias"], Tensor) else 0
    forms = {
        "weight": Like((width, outputs), torch.float64, finite=True),
        "bias": Like((outputs,), torch.float64, finite=True),
        "columns": Like((outputs,), torch.long, below=classes),
    }
    check_form(state, forms, "linear")
    if not outputs or len(set(state["columns"].tolist())) < outputs:
        raise FormError("linear.columns do not name different classes")
    return LinearModel(classes, state)
