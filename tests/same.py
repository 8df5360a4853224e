"""Bitwise comparison of state trees."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch


def differences(first: Any, second: Any, path: str = "") -> list[str]:
    """Paths at which two trees differ; tensors must have the same dtype, shape and bits."""
    if isinstance(first, torch.Tensor) or isinstance(second, torch.Tensor):
        same_type = (
            isinstance(first, torch.Tensor)
            and isinstance(second, torch.Tensor)
            and first.dtype == second.dtype
        )
        return [] if same_type and torch.equal(first.cpu(), second.cpu()) else [path]
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        if list(first) != list(second):
            return [f"{path}: keys {list(first)} and {list(second)}"]
        return [
            difference
            for key in first
            for difference in differences(first[key], second[key], f"{path}/{key}")
        ]
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        if len(first) != len(second):
            return [f"{path}: lengths {len(first)} and {len(second)}"]
        return [
            difference
            for i, pair in enumerate(zip(first, second, strict=True))
            for difference in differences(*pair, f"{path}/{i}")
        ]
    return (
        []
        if type(first) is type(second) and (first == second or first != first)
        else [f"{path}: {first!r} and {second!r}"]
    )
