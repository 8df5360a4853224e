"""Build a network by name for given inputs, with its settings checked."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from ..errors import HoldfastError, unknown
from ..settings import explain
from . import NETWORKS
from .network import Network


def build_network(name: str, shape: tuple[int, ...], classes: int, settings: Mapping[str, Any]) -> Network:
    """The network called `name` for inputs of `shape` (without the batch) and this many classes."""
    builder = NETWORKS.get(name)
    allowed = [p.name for p in inspect.signature(builder).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for key in settings:
        if key not in allowed:
            raise unknown(f"setting of network {name!r}", key, allowed)
    try:
        network = builder(shape, classes, **settings)
    except ValidationError as error:
        raise HoldfastError(f"network {name!r}: {explain(error)}") from None
    assert isinstance(network, Network)
    return network


def make_network(network: str | Network, shape: tuple[int, ...], classes: int, settings: Mapping[str, Any]) -> Network:
    """The network of that name, or the user's own if it has one output a class."""
    if isinstance(network, str):
        return build_network(network, shape, classes, settings)
    if not isinstance(network, Network):
        raise HoldfastError("network must be a name or a holdfast.Network(features, classifier)")
    found = getattr(network.classifier, "out_features", classes)
    if found != classes:
        raise HoldfastError(f"the network's classifier has {found} outputs, but there are {classes} classes")
    return network
