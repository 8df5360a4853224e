"""Memories by name: what is kept of past domains. Entry-point group `farshore.memories`.

A method asks for a memory by name (`Replay(memory="partitions")`); importing this package does not
load PyTorch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..lazy import lazy_exports
from ..registry import Registry

if TYPE_CHECKING:
    from ..batch import Draw as Draw
    from .class_reservoir import ClassReservoirMemory as ClassReservoirMemory
    from .memory import MIXED as MIXED
    from .memory import Fields as Fields
    from .memory import Memory as Memory
    from .memory import Source as Source
    from .partitions import PartitionedMemory as PartitionedMemory
    from .reservoir import ReservoirMemory as ReservoirMemory

EXPORTS = {
    "MIXED": "memory",
    "ClassReservoirMemory": "class_reservoir",
    "Draw": ".batch",
    "Fields": "memory",
    "Memory": "memory",
    "PartitionedMemory": "partitions",
    "ReservoirMemory": "reservoir",
    "Source": "memory",
}

__all__ = ["MEMORIES", *EXPORTS]

if not TYPE_CHECKING:  # a type checker sees the imports above, and refuses any other name
    __getattr__, __dir__ = lazy_exports(__name__, EXPORTS)

MEMORIES: Registry[type[Memory]] = Registry(
    "memory",
    "farshore.memories",
    {
        "partitions": "farshore.memory.partitions:PartitionedMemory",
        "reservoir": "farshore.memory.reservoir:ReservoirMemory",
        "class-reservoir": "farshore.memory.class_reservoir:ClassReservoirMemory",
    },
)
