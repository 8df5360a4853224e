"""Networks h = g∘f by name, and the base class for writing a new one.

Other packages add theirs under the entry-point group `farshore.networks`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..lazy import lazy_exports
from ..registry import Registry

if TYPE_CHECKING:
    from .network import HiddenUnits as HiddenUnits
    from .network import ImageInputs as ImageInputs
    from .network import Network as Network

EXPORTS = {"HiddenUnits": "network", "ImageInputs": "network", "Network": "network"}

__all__ = ["NETWORKS", *EXPORTS]

if not TYPE_CHECKING:  # type checkers use the imports above and reject any other name
    __getattr__, __dir__ = lazy_exports(__name__, EXPORTS)

NETWORKS: Registry[Callable[..., Network]] = Registry(
    "network",
    "farshore.networks",
    {
        "cnn": "farshore.networks.cnn:cnn",
        "mlp": "farshore.networks.mlp:mlp",
        "resnet18": "farshore.networks.resnet:resnet18",
    },
)
# Networks large enough that a run uses every CPU core: such runs follow one another on a CPU.
LARGE = frozenset({"resnet18"})
