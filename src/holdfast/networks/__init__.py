"""Networks h = g∘f by name. Other packages add theirs under the entry-point group `holdfast.networks`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..registry import Registry

NETWORKS: Registry[Callable[..., Any]] = Registry(
    "network",
    "holdfast.networks",
    {"cnn": "holdfast.networks.cnn:cnn", "mlp": "holdfast.networks.mlp:mlp", "resnet18": "holdfast.networks.resnet:resnet18"},
)
