"""Memories by name: they keep rows of past domains.

A method requests a memory by name (`Replay(memory="partitions")`). Other packages add theirs under
the entry-point group `farshore.memories`. Importing this package does not load PyTorch.
"""

from typing import TYPE_CHECKING

from ..base.lazy import lazy_exports
from ..base.registry import Registry

if TYPE_CHECKING:
    from ..data.batch import Draw as Draw
    from .class_reservoir import ClassReservoirMemory as ClassReservoirMemory
    from .memory import MIXED as MIXED
    from .memory import Fields as Fields
    from .memory import Memory as Memory
    from .memory import Source as Source
    from .partitions import PartitionedMemory as PartitionedMemory
    from .reservoir import ReservoirMemory as ReservoirMemory

if not TYPE_CHECKING:  # type checkers use the imports above and reject any other name
    __getattr__, __dir__, __all__ = lazy_exports(__name__, "MEMORIES")

MEMORIES: "Registry[type[Memory]]" = Registry(
    "memory",
    "farshore.memories",
    {
        "partitions": ".partitions:PartitionedMemory",
        "reservoir": ".reservoir:ReservoirMemory",
        "class-reservoir": ".class_reservoir:ClassReservoirMemory",
    },
    __name__,
)
