"""Loading: a learner from a saved folder or state, without running any code that it names."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypedDict, Unpack

from ..base.forms import check_form
from ..base.state import load_state
from ..errors import FarshoreError, StateError
from ..networks.network import Network
from ..networks.pretrained.own_module import is_own_module
from ..observer import Observer
from .learner import Learner
from .learner_state import CONFIG, full_config

# What a state leads to that is no complete learner.
DAMAGE = (LookupError, TypeError, ValueError, RuntimeError, AttributeError, OverflowError)


def load(
    folder: str | Path,
    *,
    network: str | Network | None = None,
    device: str = "cpu",
    observer: Observer | None = None,
) -> Learner:
    """Load a learner from a folder written by `save`. Pass `network` again if it was your own."""
    state = load_state(folder, kind="learner")
    return from_state_dict(state, folder, network=network, device=device, observer=observer)


class Opening(TypedDict, total=False):
    """The options of `load`."""

    network: str | Network | None
    device: str
    observer: Observer | None


def from_state_dict(
    state: Mapping[str, Any], folder: str | Path, **opening: Unpack[Opening]
) -> Learner:
    """A learner from its `state_dict`; messages name `folder` as its origin."""
    network, device = opening.get("network"), opening.get("device", "cpu")
    try:
        config = full_config(state)
        check_form(config, CONFIG, "config")
        if config["network"] is None:
            if network is None:
                raise FarshoreError(
                    f"{folder} was saved with your own network: call load(folder, network=...) "
                    "with the same modules"
                )
            config["network"] = network
        elif is_own_module(config["network"]):
            config["network"] = _own_module_again(config["network"], network, folder)
        learner = Learner(**config, device=device, observer=opening.get("observer"))
        learner.load_state_dict(state)
    except DAMAGE as error:
        reason = " ".join(str(error).split())[:500]
        raise StateError(f"{folder} does not contain a complete learner: {reason}") from error
    return learner


def _own_module_again(saved: str, network: str | Network | None, folder: str | Path) -> str:
    """The file and function that the caller names; the saved name is never imported."""
    if not isinstance(network, str) or not is_own_module(network):
        raise FarshoreError(
            f"{folder} was saved with the backbone {saved!r}, and loading a model runs no code: "
            f"name it again, network={saved!r} (--network {saved})"
        )
    return network
