"""torchvision:NAME: the classification models of torchvision."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from copy import deepcopy
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from ...data.downloads.public_files import known_checksum
from ...errors import FarshoreError, unknown
from ..form import IMAGENET_MEAN, IMAGENET_STD, InputForm, Settled, interpolation_called
from ..freezing import uneven_cut
from ..network import Network
from .pretrained import (
    NONE,
    PRETRAINED,
    explain_missing,
    file_origin,
    library,
    load_file,
    make_backbone,
    need_images,
)

PREFIX = "torchvision:"
SIZE = 224
# Where torchvision's models have their classifier.
HEADS = ("fc", "classifier", "heads", "head")


class TorchvisionFeatures(nn.Module):
    """A model without its last linear layer."""

    def __init__(self, model: nn.Module, network: str) -> None:
        super().__init__()
        self.model = model
        remove_classifier(model, network)

    def forward(self, images: Tensor) -> Tensor:
        """Features [n, d]."""
        outputs: Tensor = self.model(images)
        return outputs.flatten(1)

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

    def torchvision(
        shape: tuple[int, ...],
        classes: int,
        *,
        weights: str = PRETRAINED,
        mean: tuple[float, ...] | None = None,
        std: tuple[float, ...] | None = None,
    ) -> Network:
        need_images(network, shape)
        models = library("torchvision.models", "torchvision", network)
        _check_name(models, name)
        form = InputForm(mean=mean or IMAGENET_MEAN, std=std or IMAGENET_STD)
        if mean is None or std is None:
            form = settle(name, {}).form
        if weights == PRETRAINED:
            chosen = _usual_weights(models, name)
            try:
                model = models.get_model(name, weights=chosen)
            except OSError as error:  # no network
                file = Path(chosen.url).name
                folder = Path(torch.hub.get_dir()) / "checkpoints"
                raise explain_missing(
                    network, f"put {file} ({chosen.url}) into {folder}", error
                ) from None
        else:
            model = models.get_model(name, weights=None)
        features = TorchvisionFeatures(model, network)
        if weights not in (PRETRAINED, NONE):
            load_file(features.model, weights, network)
        made = make_backbone(features, shape, classes, form)
        return TorchvisionNetwork(made.features, made.classifier, inputs=made.inputs)

    return torchvision


def settle(name: str, settings: Mapping[str, Any]) -> Settled:
    """Read size, resampling, mean and deviation from the transforms of the published weights."""
    network = PREFIX + name
    if {"mean", "std"} <= settings.keys():  # those of a saved model
        given = InputForm(SIZE, "bilinear", tuple(settings["mean"]), tuple(settings["std"]))
        return Settled(dict(settings), given, name)
    models = library("torchvision.models", "torchvision", network)
    _check_name(models, name)
    weights = settings.get("weights", PRETRAINED)
    chosen = _usual_weights(models, name)
    transforms = chosen.transforms() if chosen is not None else None
    size = getattr(transforms, "crop_size", [SIZE])
    form = InputForm(
        int(size[0] if isinstance(size, list | tuple) else size),
        interpolation_called(getattr(transforms, "interpolation", "bilinear")),
        tuple(getattr(transforms, "mean", IMAGENET_MEAN)),
        tuple(getattr(transforms, "std", IMAGENET_STD)),
    )
    settled = {"mean": list(form.mean), "std": list(form.std), **settings}
    if weights == NONE:
        return Settled(settled, form)
    if weights != PRETRAINED:
        return Settled(settled, form, file_origin(Path(weights), known_checksum))
    return Settled(settled, form, f"torchvision {chosen}, file {Path(chosen.url).name}")


def _usual_weights(models: Any, name: str) -> Any:
    """The newest published weights of a model."""
    return models.get_model_weights(name).DEFAULT


def _check_name(models: Any, name: str) -> None:
    known = models.list_models(module=models)
    if name not in known:
        raise unknown("model of torchvision", name, known)
