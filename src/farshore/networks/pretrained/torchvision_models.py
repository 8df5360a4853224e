"""torchvision:NAME: the classification models of torchvision."""

from collections.abc import Callable, Mapping
from copy import deepcopy
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ...data.downloads.hf_models import explain_missing, library
from ...errors import FarshoreError, unknown
from ..form import Settled, library_form
from ..freezing import uneven_cut
from ..network import Network
from .pretrained import LibraryFeatures, library_builder, new_form, saved_form

PREFIX = "torchvision:"
# Where torchvision's models have their classifier.
HEADS = ("fc", "classifier", "heads", "head")


class TorchvisionFeatures(LibraryFeatures):
    """A model without its last linear layer."""

    def __init__(self, model: nn.Module, network: str) -> None:
        super().__init__(model)
        remove_classifier(model, network)

    def divided(self) -> tuple[nn.Module, nn.Module] | None:
        """Everything ahead of the last block, and the rest, if the model is a chain of blocks."""
        model: Any = self.model
        if hasattr(model, "layer4") and hasattr(model, "conv1"):
            names = ("conv1", "bn1", "relu", "maxpool", "layer1", "layer2", "layer3")
            before = nn.Sequential(*(getattr(model, name) for name in names))
            return before, nn.Sequential(model.layer4, model.avgpool, nn.Flatten())
        blocks = getattr(model, "features", None)
        if isinstance(blocks, nn.Sequential) and len(blocks) > 1:
            cut = uneven_cut(blocks)
            model.features = nn.Identity()
            rest = deepcopy(self)
            rest.model.features = blocks[cut:]
            model.features = blocks
            return blocks[:cut], rest
        return None


class TorchvisionNetwork(Network):
    """A model of torchvision as a Network."""

    def stages(self) -> tuple[nn.Module, nn.Module] | None:
        """The part ahead of the last block, and the rest."""
        features = self.features
        return features.divided() if isinstance(features, TorchvisionFeatures) else None


def remove_classifier(model: nn.Module, network: str) -> None:
    """Replace the last linear layer by nothing."""
    for attribute in HEADS:
        holder: Any = getattr(model, attribute, None)
        if isinstance(holder, nn.Linear):
            setattr(model, attribute, nn.Identity())
            return
        if isinstance(holder, nn.Sequential) and isinstance(holder[-1], nn.Linear):
            holder[-1] = nn.Identity()
            return
    raise FarshoreError(
        f"network {network!r} has no linear classifier to replace: use another model of torchvision"
    )


def builder(name: str) -> Callable[..., Network]:
    """The function that builds the network `torchvision:NAME`."""
    network = PREFIX + name

    def make_features(size: tuple[int, ...], pretrained: bool) -> TorchvisionFeatures:
        models = _models(name)
        chosen = _usual_weights(models, name) if pretrained else None
        try:
            return TorchvisionFeatures(models.get_model(name, weights=chosen), network)
        except OSError as error:  # no network
            if chosen is None:
                raise
            file = Path(chosen.url).name
            folder = Path(torch.hub.get_dir()) / "checkpoints"
            raise explain_missing(
                network, f"put {file} ({chosen.url}) into {folder}", error
            ) from None

    return library_builder(network, partial(settle, name), make_features, TorchvisionNetwork)


def settle(name: str, settings: Mapping[str, Any]) -> Settled:
    """Read size, resampling, mean and deviation from the transforms of the published weights."""
    if (saved := saved_form(name, settings)) is not None:
        return saved
    chosen = _usual_weights(_models(name), name)
    transforms, keys = chosen.transforms(), ("crop_size", "interpolation", "mean", "std")
    form = library_form(*(getattr(transforms, key, None) for key in keys))
    return new_form(settings, form, f"torchvision {chosen}, file {Path(chosen.url).name}")


def _usual_weights(models: Any, name: str) -> Any:
    """The newest published weights of a model."""
    return models.get_model_weights(name).DEFAULT


def _models(name: str) -> Any:
    """The library's models, if this is one of them."""
    models = library("torchvision.models", "torchvision", PREFIX + name)
    known = models.list_models(module=models)
    if name not in known:
        raise unknown("model of torchvision", name, known)
    return models
