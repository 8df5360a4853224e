"""A copy of the network from the end of the last domain, for methods that stay close to it."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from torch import Tensor

from ..networks.network import Network


def frozen_copy(network: Network, state: Mapping[str, Tensor] | None = None) -> Network:
    """Copy the network, in evaluation mode and without gradients; `state` replaces its weights."""
    copied = copy.deepcopy(network)
    if state is not None:
        copied.load_state_dict(state)
    copied.zero_grad(set_to_none=True)
    return copied.eval().requires_grad_(False)
