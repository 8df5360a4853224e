"""Trees of state: dictionaries and lists that end in tensors and plain values."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from torch import Tensor


def tensors(tree: Any) -> list[Tensor]:
    """All tensors of a tree."""
    if isinstance(tree, Tensor):
        return [tree]
    if isinstance(tree, Mapping):
        tree = list(tree.values())
    children = tree if isinstance(tree, list | tuple) else ()
    return [each for child in children for each in tensors(child)]


def mapped(tree: Any, change: Callable[[Tensor], Tensor]) -> Any:
    """The same tree with every tensor changed by this function."""
    if isinstance(tree, Tensor):
        return change(tree)
    if isinstance(tree, Mapping):
        return {key: mapped(value, change) for key, value in tree.items()}
    if isinstance(tree, list | tuple):
        return type(tree)(mapped(item, change) for item in tree)
    return tree
