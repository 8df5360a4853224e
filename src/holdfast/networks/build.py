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


def build_network(name: str, shape: tuple[int, ...], classes: int, settings: Mapping[str, Any], *, restored: bool = False) -> Network:
    """The network called `name` for inputs of `shape` (without the batch) and this many classes.

    `restored`: its weights come from a saved state, so the file of pretrained weights it once began with is not needed.
    """
    builder = NETWORKS.get(name)
    allowed = [p.name for p in inspect.signature(builder).parameters.values() if p.kind is p.KEYWORD_ONLY]
    for key in settings:
        if key not in allowed:
            raise unknown(f"setting of network {name!r}", key, allowed)
    if restored and "weights" in allowed:
        settings = {**settings, "weights": "none"}
    try:
        network = builder(shape, classes, **settings)
    except ValidationError as error:
        raise HoldfastError(f"network {name!r}: {explain(error)}") from None
    assert isinstance(network, Network)
    return network
