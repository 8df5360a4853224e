"""Trees of state: copies, and where two of them differ bit for bit."""

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from ..base.trees import mapped


def differences(first: Any, second: Any, path: str = "") -> list[str]:
    """Where two trees differ; tensors must have the same type, shape and bits."""
    if isinstance(first, Tensor) or isinstance(second, Tensor):
        both = isinstance(first, Tensor) and isinstance(second, Tensor)
        alike = both and first.dtype == second.dtype
        return [] if alike and torch.equal(first.cpu(), second.cpu()) else [path]
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        if list(first) != list(second):
            return [f"{path}: keys {list(first)} and {list(second)}"]
        return [
            each for key in first for each in differences(first[key], second[key], f"{path}/{key}")
        ]
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        if len(first) != len(second):
            return [f"{path}: lengths {len(first)} and {len(second)}"]
        return [
            each
            for number, pair in enumerate(zip(first, second, strict=True))
            for each in differences(*pair, f"{path}/{number}")
        ]
    alike = type(first) is type(second) and (first == second or first != first)
    return [] if alike else [f"{path}: {first!r} and {second!r}"]


def copied(tree: Any) -> Any:
    """The same tree with tensors of its own, which later steps do not write into."""
    return mapped(tree, lambda value: value.detach().clone())
