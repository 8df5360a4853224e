"""Waiting: sees on a CPU what would make the host wait for a GPU."""

from collections.abc import Callable
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# Reading a value, or a result whose size depends on values.
OPERATIONS = (
    *("_local_scalar_dense", "is_nonzero", "nonzero", "masked_select", "_unique", "unique"),
    "equal",
)


class Waiting(TorchDispatchMode):
    """Inside, `operations` collects the names of the operations that wait for the device.

    Whatever is done inside a step must leave it empty: `.item()`, `float(tensor)`, `if tensor:`,
    `nonzero` and indexing by a mask all wait.
    """

    def __init__(self) -> None:
        super().__init__()
        self.operations: list[str] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        indices = args[1] if len(args) > 1 and isinstance(args[1], list | tuple) else ()
        by_mask = name.startswith("index") and any(
            part is not None and part.dtype == torch.bool for part in indices
        )
        if name.startswith(OPERATIONS) or by_mask:
            self.operations.append(name)
        return func(*args, **(kwargs or {}))

    def watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, under watch."""

        def call(*args: Any, **kwargs: Any) -> Any:
            with self:
                return function(*args, **kwargs)

        return call
