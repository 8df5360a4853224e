"""What users hand in (NumPy arrays, data frames, tensors, lists) to tensors, with clear
refusals.
"""

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
    """Rows as a tensor: uint8 stays uint8 (images), every other number becomes float32."""
    if isinstance(values, Tensor):
        tensor = values.detach()
    else:
        array = np.asarray(values)
        if array.dtype.kind not in "buif":
            raise FarshoreError(
                f"{where} hold {array.dtype.name} values: give numbers, or encode the columns first"
            )
        tensor = torch.from_numpy(np.ascontiguousarray(array))
    if tensor.ndim < 2:
        raise FarshoreError(
            f"{where} have shape {tuple(tensor.shape)}: the first axis counts rows, the others "
            "describe a row"
        )
    return tensor if tensor.dtype == torch.uint8 else tensor.to(torch.float32)


def from_dataset(x: Any, y: Any = None) -> tuple[Any, Any]:
    """A torch Dataset of (input, label) pairs read into memory once; anything else as it is."""
    if not isinstance(x, Dataset):
        return x, y
    if y is not None:
        raise FarshoreError(
            "a torch Dataset holds its labels itself: call learn(dataset) without y"
        )
    if not hasattr(x, "__len__") or not hasattr(x, "__getitem__"):
        raise FarshoreError(
            "a torch Dataset without a length cannot be learned from: gather its rows into "
            "arrays first"
        )
    items = [x[row] for row in range(len(x))]
    if not items:
        raise FarshoreError("the torch Dataset is empty: it needs at least one row")
    paired = isinstance(items[0], tuple | list) and len(items[0]) == 2
    inputs = [_row(item[0] if paired else item) for item in items]
    shapes = {tuple(each.shape) for each in inputs}
    if len(shapes) > 1:
        raise FarshoreError(
            f"the torch Dataset has rows of different shapes ({sorted(shapes)[:2]}): resize them "
            "to one"
        )
    return torch.stack(inputs), [_plain(item[1]) for item in items] if paired else None


def _row(value: Any) -> Tensor:
    """One input as a tensor; a Pillow image as uint8 [channels, height, width]."""
    if isinstance(value, Tensor):
        return value.detach()
    array = np.array(value)
    if hasattr(value, "getbands"):
        array = array[None] if array.ndim == 2 else array.transpose(2, 0, 1)
    return torch.from_numpy(np.ascontiguousarray(array))


def _plain(label: Any) -> Any:
    return label.item() if isinstance(label, Tensor | np.generic) else label


def as_labels(values: Any, *, where: str = "the labels") -> list[Label]:
    """One plain label a row; missing ones are refused."""
    array = values.detach().cpu().numpy() if isinstance(values, Tensor) else np.asarray(values)
    if array.ndim != 1:
        raise FarshoreError(f"{where} have shape {array.shape}: give one label a row")
    labels: list[Label] = array.tolist()
    missing = [row for row, label in enumerate(labels) if label is None or label != label]
    if missing:
        raise FarshoreError(
            f"{where} are missing in {len(missing)} rows, the first is row {missing[0]}: drop "
            "those rows"
        )
    bad = next((label for label in labels if not isinstance(label, int | float | str | bool)), None)
    if bad is not None:
        raise FarshoreError(f"{where} hold a {type(bad).__name__}: labels are numbers or texts")
    return labels


def find_classes(labels: Sequence[Label]) -> list[Label]:
    """The distinct labels in order."""
    try:
        return sorted(set(labels))
    except TypeError:
        raise FarshoreError("the labels mix numbers and texts: use one kind") from None


def encode_labels(labels: Sequence[Label], classes: Sequence[Label], *, domain: str) -> Tensor:
    """Labels as class numbers. A label outside `classes` is refused, with the way out."""
    number = {label: place for place, label in enumerate(classes)}
    for row, label in enumerate(labels):
        if label not in number:
            error = unknown("label", str(label), [str(known) for known in classes])
            raise FarshoreError(
                f"domain {domain!r}, row {row}: {error}. The first domain fixed the classes; "
                "to allow more, create the learner with classes=[...] naming all of them"
            )
    return torch.tensor([number[label] for label in labels], dtype=torch.long)
