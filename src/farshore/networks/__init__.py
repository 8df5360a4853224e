"""Networks h = g∘f by name. Other packages add theirs under the entry-point group
`farshore.networks`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..registry import Registry

NETWORKS: Registry[Callable[..., Any]] = Registry(
    "network",
    "farshore.networks",
    {
        "cnn": "farshore.networks.cnn:cnn",
        "mlp": "farshore.networks.mlp:mlp",
        "resnet18": "farshore.networks.resnet:resnet18",
    },
)
