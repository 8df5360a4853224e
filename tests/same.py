"""Compare trees of state bit for bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch


def differences(first: Any, second: Any, path: str = "") -> list[str]:
    """Where two trees differ; tensors must have the same type, shape and bits."""
    if isinstance(first, torch.Tensor) or isinstance(second, torch.Tensor):
        alike = (
            isinstance(first, torch.Tensor)
            and isinstance(second, torch.Tensor)
            and first.dtype == second.dtype
        )
        return [] if alike and torch.equal(first.cpu(), second.cpu()) else [path]
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        if list(first) != list(second):
            return [f"{path}: keys {list(first)} and {list(second)}"]
        return [
            found
            for key in first
            for found in differences(first[key], second[key], f"{path}/{key}")
        ]
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        if len(first) != len(second):
            return [f"{path}: lengths {len(first)} and {len(second)}"]
        return [
            found
            for i, pair in enumerate(zip(first, second, strict=True))
            for found in differences(*pair, f"{path}/{i}")
        ]
    return (
        []
        if type(first) is type(second) and (first == second or first != first)
        else [f"{path}: {first!r} and {second!r}"]
    )
