"""Networks h = g∘f by name, and the base class for writing a new one.

Besides the registered names there are `hf:NAME`, `timm:NAME` and `torchvision:NAME`, models of
these libraries, and `module.py:factory`, a function in a file of the user's own.

Other packages add theirs under the entry-point group `farshore.networks`.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..base.lazy import lazy_exports
from ..base.registry import Registry

if TYPE_CHECKING:
    from .network import HiddenUnits as HiddenUnits
    from .network import ImageInputs as ImageInputs
    from .network import Network as Network

if not TYPE_CHECKING:  # type checkers use the imports above and reject any other name
    __getattr__, __dir__, __all__ = lazy_exports(__name__, "NETWORKS")

NETWORKS: "Registry[Callable[..., Network]]" = Registry(
    "network",
    "farshore.networks",
    {
        "cnn": ".cnn:cnn",
        "head": ".head:head",
        "histogram": ".histogram:histogram",
        "mlp": ".mlp:mlp",
        "resnet18": ".resnet:resnet18",
    },
    __name__,
)
# What the names of other libraries' models begin with, and the modules that build them.
LIBRARIES = {
    "hf": "farshore.networks.pretrained.hf",
    "timm": "farshore.networks.pretrained.timm_models",
    "torchvision": "farshore.networks.pretrained.torchvision_models",
}


def is_large(name: str) -> bool:
    """Whether training this network uses every CPU core: such runs follow one another on a CPU."""
    return name == "resnet18" or ":" in name
