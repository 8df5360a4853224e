"""Trees of state: dictionaries and lists that end in tensors and plain values; larger tensors."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
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


def same(first: Any, second: Any) -> bool:
    """Whether two trees are equal, tensors to the last bit."""
    if isinstance(first, Tensor) and isinstance(second, Tensor):
        return first.dtype == second.dtype and torch.equal(first.cpu(), second.cpu())
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(same(first[key], second[key]) for key in first)
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    return type(first) is type(second) and bool(first == second)


def widened(old: Tensor, new: Tensor) -> Tensor:
    """A tensor of the shape of `new` whose first entries along every axis are those of `old`."""
    if old.shape == new.shape:
        return old
    wide = new.detach().clone()
    wide[tuple(slice(length) for length in old.shape)] = old
    return wide
