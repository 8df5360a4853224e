"""Build a network by name for given inputs, and check its settings."""

import inspect
import json
import sys
from collections.abc import Callable, Mapping
from contextlib import nullcontext
from copy import deepcopy
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

import torch
from pydantic import TypeAdapter, ValidationError
from torch import Tensor, nn

from ..base.inert import inert
from ..data.downloads.public_files import FileState, file_states
from ..data.downloads.weights import weights_folder, weights_origin
from ..errors import FarshoreError, StateError, unknown
from ..settings import explain
from . import LIBRARIES, NETWORKS
from .form import InputForm, Settled
from .network import Network
from .pretrained import own_module
from .pretrained.own_module import is_own_module

M = TypeVar("M")
# Settings of a library's network that its own files decide. A saved model stores them: without
# them, it could make this machine ask the network for a model.
STORED = ("config", "mean", "std")
# Parts of a network that a stored state may lack, because a method has replaced them.
UNSTORED_BYTES = 64 << 20


def build_network(
    name: str | Network,
    shape: tuple[int, ...],
    classes: int,
    settings: Mapping[str, Any],
    *,
    restored: bool = False,
) -> Network:
    """Build the network `name` for inputs of `shape` (without the batch) and this many classes.

    A network that is given itself is copied, if it has one output per class.

    `restored`: the weights come from a saved state, so the file of pretrained weights that the
    network was initialised with is not needed.
    """
    if isinstance(name, Network):
        outputs = getattr(name.classifier, "out_features", classes)
        if outputs != classes:
            why = f"the network's classifier has {outputs} outputs, but there are {classes} classes"
            raise FarshoreError(why)
        return deepcopy(name)
    builder = builder_of(name)
    allowed = _check_names(name, settings)
    if restored and "weights" in allowed:
        settings = {**settings, "weights": "none"}
    stored = restored and ":" in name and not is_own_module(name)
    absent = [key for key in STORED if stored and key in allowed and settings.get(key) is None]
    if absent:
        raise StateError(f"the {absent[0]} of network {name!r} is not stored")
    try:
        with inert() if stored else nullcontext():
            network = builder(shape, classes, **settings)
    except ValidationError as error:
        raise FarshoreError(f"network {name!r}: {explain(error)}") from None
    assert isinstance(network, Network)
    return network


def builder_of(name: str) -> Callable[..., Network]:
    """The function that builds the network of this name."""
    if is_own_module(name):
        return own_module.builder(name)
    library, colon, model = name.partition(":")
    if colon and library in LIBRARIES:
        return import_module(LIBRARIES[library]).builder(model)
    if name not in NETWORKS:
        known = [*NETWORKS.names(), *(f"{library}:NAME" for library in LIBRARIES)]
        raise unknown("network", name, [*known, "module.py:factory"])
    return NETWORKS.get(name)


def settle_network(name: str, settings: Mapping[str, Any]) -> Settled:
    """Fill in what the network's configuration decides; a user's own backbone is made for it."""
    plain = _typed(name, settings)
    return _settled(name, json.dumps(plain, sort_keys=True), _states(name, plain))


def _states(name: str, settings: Mapping[str, Any]) -> tuple[FileState, ...]:
    """The states of the files that a network is made of, as far as it names them."""
    weights, (library, _, model) = settings.get("weights"), name.partition(":")
    files: list[str | Path] = []
    if weights is not None:
        files += [str(weights), weights_folder() / str(weights)]
    if is_own_module(name):
        files.append(name.rpartition(":")[0])
    elif library == "hf":
        files.append(model)
    return file_states(*files) if files else ()


@lru_cache(maxsize=64)
def _settled(name: str, settings: str, files: tuple[FileState, ...]) -> Settled:
    """Reading a configuration takes a moment, and a plan asks for every run."""
    values = json.loads(settings)
    if is_own_module(name):
        return own_module.settle(name, values)
    library, colon, model = name.partition(":")
    if colon and library in LIBRARIES:
        return import_module(LIBRARIES[library]).settle(model, values)
    module = sys.modules.get(getattr(builder_of(name), "__module__", ""))
    form = getattr(module, "FORM", InputForm())
    weights = values.get("weights", "imagenet")
    pretrained = is_pretrained(name, values) and "weights" in _check_names(name, {})
    return Settled(values, form, weights_origin(weights) if pretrained else "")


def as_network(network: object) -> str | Network:
    """A known name or a Network; a Sequential that ends in a linear layer is split before it.

    None is an mlp.
    """
    if network is None:
        return "mlp"
    if isinstance(network, str):
        builder_of(network)
        return network
    if isinstance(network, Network):
        return network
    if isinstance(network, nn.Sequential) and len(network) > 1:
        *first, last = network
        if isinstance(last, nn.Sequential):
            inner = as_network(last)
            assert isinstance(inner, Network)
            first, last = [*first, inner.features], inner.classifier
        if isinstance(last, nn.Linear):
            return Network(nn.Sequential(*first), last)
    raise FarshoreError(
        f"network is a {type(network).__name__}: give a name, farshore.Network(features, "
        "classifier) with your module in two parts, or a Sequential whose last layer is linear"
    )


def is_pretrained(name: str, settings: Mapping[str, Any]) -> bool:
    """Whether the features of the network `name` are of use as they are, without training.

    They come from weights that were trained on other data, from a file of the user's own, or from
    fixed formulas.
    """
    if name == "histogram" or is_own_module(name):
        return True
    parameter = inspect.signature(builder_of(name)).parameters.get("weights")
    return parameter is not None and settings.get("weights", parameter.default) != "none"


def plain_network_settings(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Normalise a network's settings, so that 32 and the text "32" are the same.

    An unknown network, an unknown setting or an invalid value raises a FarshoreError. Settings of a
    user's own backbone are checked when it is built: reading a run must not import its file.
    """
    return dict(settings) if is_own_module(name) else _typed(name, settings)


def network_origin(name: str, settings: Mapping[str, Any]) -> str | None:
    """Which weights a network starts from; None where name and settings say it."""
    if is_own_module(name):
        return own_module.file_digest(name)
    if ":" in name or settings.get("weights") not in (None, "none", "imagenet"):
        return settle_network(name, settings).origin
    return None


def _typed(name: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """The settings with the types of the builder's arguments."""
    _check_names(name, settings)
    try:
        hints = get_type_hints(builder_of(name), include_extras=True)
    except (NameError, TypeError):  # annotations of another package that cannot be resolved
        hints = {}
    plain: dict[str, Any] = {}
    for key, value in settings.items():
        if key not in hints:
            plain[key] = value
            continue
        adapter: TypeAdapter[Any] = TypeAdapter(hints[key])
        try:
            plain[key] = adapter.dump_python(adapter.validate_python(value), mode="json")
        except ValidationError as error:
            allowed = explain(error).partition("it should be ")[2]
            why = f"network {name!r}: {key} = {value!r} is not allowed: it should be {allowed}"
            raise FarshoreError(why) from None
    return plain


def _check_names(name: str, settings: Mapping[str, Any]) -> list[str]:
    """Return the names of the network's settings; raise an error if any other is given."""
    parameters = inspect.signature(builder_of(name)).parameters.values()
    allowed = [each.name for each in parameters if each.kind is each.KEYWORD_ONLY]
    for key in settings:
        if key not in allowed:
            raise unknown(f"setting of network {name!r}", key, allowed)
    return allowed


def on_meta(make: Callable[[], M]) -> M:
    """A module without allocated weights, unless it computes with them while it is made."""
    try:
        with torch.device("meta"):
            return make()
    except NotImplementedError:  # a meta tensor has no values to read
        return make()


def check_unstored(made: nn.Module, stored: Mapping[str, Tensor]) -> None:
    """Raise an error if a module, made without values, is much larger than what is stored of it.

    A method may replace parts of the network, but not by much larger or smaller ones.
    """
    parts = [*made.parameters(), *made.buffers()]  # some buffers are never stored
    size = sum(part.nbytes for part in parts)
    if size > 2 * sum(part.nbytes for part in stored.values()) + UNSTORED_BYTES:
        why = f"the network's settings describe {size:,} bytes of weights, far more than are stored"
        raise StateError(why)


def check_sizes(
    network: str,
    shape: tuple[int, ...],
    classes: int,
    settings: Mapping[str, Any],
    stored: Mapping[str, Tensor],
) -> None:
    """Raise an error if stored weights do not fit the network, before allocating the network."""
    made = on_meta(lambda: build_network(network, shape, classes, settings, restored=True))
    check_unstored(made, stored)
    for name, value in made.state_dict().items():
        if name in stored and stored[name].shape != value.shape:
            raise StateError(
                f"the stored weights {name!r} have shape {list(stored[name].shape)}, but the "
                f"network expects {list(value.shape)}"
            )
