"""The network as it was when the last domain ended, for methods that stay near it."""

from __future__ import annotations

import copy
from collections.abc import Mapping

from torch import Tensor

from ..networks.network import Network


def frozen_copy(network: Network, state: Mapping[str, Tensor] | None = None) -> Network:
    """A copy in evaluation mode that takes no gradient; with the weights in `state` if they are
    given.
    """
    copied = copy.deepcopy(network)
    if state is not None:
        copied.load_state_dict(state)
    copied.zero_grad(set_to_none=True)
    return copied.eval().requires_grad_(False)
