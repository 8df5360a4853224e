"""Convert user input (NumPy arrays, data frames, tensors, lists) to tensors, with clear errors."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.utils.data import Dataset

from ..errors import FarshoreError, unknown

Label = int | float | str | bool


def as_inputs(values: Any, *, where: str = "the inputs") -> Tensor:
    """Return rows as a tensor: uint8 (images) stays uint8, other numbers become float32."""
    if isinstance(values, Tensor):
        tensor = values.detach()
    else:
        array = np.asarray(values)
        if array.dtype.kind not in "buif":
            raise FarshoreError(
                f"{where} contain {array.dtype.name} values: give numbers, or encode the columns "
                "first"
            )
        tensor = torch.from_numpy(np.ascontiguousarray(array))
    if tensor.ndim < 2:
        raise FarshoreError(
            f"{where} have shape {tuple(tensor.shape)}: the first axis must be the rows, the "
            "others the features of a row"
        )
    return tensor if tensor.dtype == torch.uint8 else tensor.to(torch.float32)


def from_dataset(x: Any, y: Any = None) -> tuple[Any, Any]:
    """Read a torch Dataset of (input, label) pairs into memory; return anything else unchanged."""
    if not isinstance(x, Dataset):
        return x, y
    if y is not None:
        raise FarshoreError(
            "a torch Dataset contains its own labels: call learn(dataset) without y"
        )
    if not hasattr(x, "__len__") or not hasattr(x, "__getitem__"):
        raise FarshoreError(
            "a torch Dataset without a length cannot be learned from: collect its rows into "
            "arrays first"
        )
    items = [x[row] for row in range(len(x))]
    if not items:
        raise FarshoreError("the torch Dataset is empty: it needs at least one row")
    paired = isinstance(items[0], tuple | list) and len(items[0]) == 2
    inputs = [_row(item[0] if paired else item) for item in items]
    shapes = {tuple(row.shape) for row in inputs}
    if len(shapes) > 1:
        raise FarshoreError(
            f"the torch Dataset has rows of different shapes ({sorted(shapes)[:2]}): resize them "
            "to one shape"
        )
    return torch.stack(inputs), [_plain(item[1]) for item in items] if paired else None


def _row(value: Any) -> Tensor:
    """Return one input as a tensor; a Pillow image becomes uint8 [channels, height, width]."""
    if isinstance(value, Tensor):
        return value.detach()
    array = np.array(value)
    if hasattr(value, "getbands"):
        array = array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
    return torch.from_numpy(np.ascontiguousarray(array))


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, Tensor | np.generic) else label


def as_labels(values: Any, *, where: str = "the labels") -> list[Label]:
    """Return one plain label per row; missing labels are refused."""
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    if array.ndim != 1:
        raise FarshoreError(f"{where} have shape {array.shape}: give one label per row")
    labels: list[Label] = array.tolist()
    missing = [row for row, label in enumerate(labels) if label is None or label != label]
    if missing:
        raise FarshoreError(
            f"{where} are missing in {len(missing)} rows, the first is row {missing[0]}: drop "
            "those rows"
        )
    bad = next((label for label in labels if not isinstance(label, int | float | str | bool)), None)
    if bad is not None:
        raise FarshoreError(
            f"{where} contain a {type(bad).__name__}: labels must be numbers or strings"
        )
    return labels


def find_classes(labels: Sequence[Label]) -> list[Label]:
    """Return the distinct labels, sorted."""
    try:
        return sorted(set(labels))
    except TypeError:
        raise FarshoreError("the labels mix numbers and strings: use one type") from None


def encode_labels(labels: Sequence[Label], classes: Sequence[Label], *, domain: str) -> Tensor:
    """Return labels as class numbers; a label outside `classes` is refused."""
    numbers = {label: number for number, label in enumerate(classes)}
    for row, label in enumerate(labels):
        if label not in numbers:
            error = unknown("label", str(label), [str(known) for known in classes])
            raise FarshoreError(
                f"domain {domain!r}, row {row}: {error}. The classes are fixed by the first "
                "domain; to allow more, create the learner with classes=[...] naming all of them"
            )
    return torch.tensor([numbers[label] for label in labels], dtype=torch.long)
