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


def copied(tree: Any) -> Any:
    """The same tree with tensors of its own, which later steps do not write into."""
    return mapped(tree, lambda value: value.detach().clone())


def same(first: Any, second: Any) -> bool:
    """Whether two trees are equal, tensors to the last bit."""
    return not differences(first, second)


def differences(first: Any, second: Any, path: str = "") -> list[str]:
    """Where two trees differ; tensors must have the same type, shape and bits."""
    if isinstance(first, Tensor) or isinstance(second, Tensor):
        both = isinstance(first, Tensor) and isinstance(second, Tensor)
        alike = both and first.dtype == second.dtype
        return [] if alike and torch.equal(first.cpu(), second.cpu()) else [path]
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        if first.keys() != second.keys():
            return [f"{path}: keys {list(first)} and {list(second)}"]
        pairs = [(first[key], second[key], f"{path}/{key}") for key in first]
        return [each for pair in pairs for each in differences(*pair)]
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        if len(first) != len(second):
            return [f"{path}: lengths {len(first)} and {len(second)}"]
        items = enumerate(zip(first, second, strict=True))
        return [each for n, pair in items for each in differences(*pair, f"{path}/{n}")]
    alike = type(first) is type(second) and (first == second or first != first)
    return [] if alike else [f"{path}: {first!r} and {second!r}"]


def widened(old: Tensor, new: Tensor) -> Tensor:
    """A tensor of the shape of `new` whose first entries along every axis are those of `old`."""
    if old.shape == new.shape:
        return old
    wide = new.detach().clone()
    wide[tuple(slice(length) for length in old.shape)] = old
    return wide
