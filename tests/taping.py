"""A CUDA graph emulated on the CPU.

A step is recorded operation by operation, and a replay repeats the same operations on the same
memory. As on a GPU, a replay runs none of the step's Python code: a value that the code read on the
host, or a tensor that it replaced by another, stays as it was when the step was recorded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_flatten

from farshore.training.execution.cuda_graphs import CapturedSteps


def tensors(tree: Any) -> list[Tensor]:
    return [leaf for leaf in tree_flatten(tree)[0] if isinstance(leaf, Tensor)]


class Tape(TorchDispatchMode):
    def __init__(self) -> None:
        super().__init__()
        self.operations: list[tuple[Any, Any, Any, Any]] = []
        self.fresh = True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        self.operations.append((func, args, kwargs or {}, result))
        return result

    def replay(self) -> None:
        """Repeat the operations. Unlike on a GPU, recording already computed the first replay."""
        if self.fresh:
            self.fresh = False
            return
        with torch.no_grad():
            for func, args, kwargs, result in self.operations:
                owned = {tensor.untyped_storage().data_ptr() for tensor in tensors((args, kwargs))}
                for old, new in zip(tensors(result), tensors(func(*args, **kwargs)), strict=True):
                    # Skip views and tensors that were written in place.
                    if old.untyped_storage().data_ptr() not in owned:
                        old.copy_(new)


class TapedSteps(CapturedSteps):
    def _record(self) -> Any:
        tape = Tape()
        with tape:
            self.terms = self.step()
        return tape


recorded: list[TapedSteps] = []


@contextmanager
def taped(
    way: Any, device: Any, step: Any, phase: Any, generators: Any, note: Any
) -> Iterator[Callable[[], Any]]:
    """A replacement for `farshore.training.execution.cuda_graphs.steps_of`."""
    recorded.append(TapedSteps(step, phase, generators, note))
    yield recorded[-1]
