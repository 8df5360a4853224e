"""timm:NAME: image models of the timm library."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from torch import Tensor, nn

from ...data.downloads.public_files import known_checksum
from ...errors import FarshoreError, unknown
from ..form import IMAGENET_MEAN, IMAGENET_STD, InputForm, Settled, interpolation_called
from ..network import Network
from .pretrained import (
    NONE,
    PRETRAINED,
    explain_missing,
    file_origin,
    hub,
    library,
    load_file,
    make_backbone,
    need_images,
)

PREFIX = "timm:"
SIZE = 224


class TimmFeatures(nn.Module):
    """A model without its classifier, with its own pooling."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, images: Tensor) -> Tensor:
        """Features [n, d]."""
        outputs: Tensor = self.model(images)
        return outputs.flatten(1)


def builder(name: str) -> Callable[..., Network]:
    """The function that builds the network `timm:NAME`."""
    network = PREFIX + name

    def timm(
        shape: tuple[int, ...],
        classes: int,
        *,
        weights: str = PRETRAINED,
        mean: tuple[float, ...] | None = None,
        std: tuple[float, ...] | None = None,
    ) -> Network:
        need_images(network, shape)
        _check_name(name)
        library("timm", "timm", network)
        form = InputForm(mean=mean or IMAGENET_MEAN, std=std or IMAGENET_STD)
        if mean is None or std is None:
            form = settle(name, {}).form
        size = shape[1:]
        try:
            with hub():
                model = _create(name, pretrained=weights == PRETRAINED, size=size)
        except (OSError, RuntimeError, ValueError) as error:
            if weights != PRETRAINED:
                raise
            raise explain_missing(
                network,
                f"fetch them where there is a network, or give the file that timm.create_model("
                f"{name!r}).pretrained_cfg names, with weights=FILE",
                error,
            ) from None
        features = TimmFeatures(model)
        if weights not in (PRETRAINED, NONE):
            load_file(features.model, weights, network)
        return make_backbone(features, shape, classes, form)

    return timm


def _check_name(name: str) -> None:
    """Refuse names that lead timm elsewhere than to its own models."""
    if not re.fullmatch(r"[\w.\-]+", name):
        raise FarshoreError(
            f"network 'timm:{name}' is not allowed: give the name of a model of timm, for example "
            "timm:resnet18; for a model of the hub use hf:NAME"
        )


def _create(name: str, *, pretrained: bool, size: tuple[int, ...]) -> nn.Module:
    """Make the model; those with positions for one size are told the size of the images."""
    timm = library("timm", "timm", PREFIX + name)
    made: nn.Module
    try:
        made = timm.create_model(name, pretrained=pretrained, num_classes=0, img_size=tuple(size))
    except TypeError:  # a convolutional model takes any size
        made = timm.create_model(name, pretrained=pretrained, num_classes=0)
    return made


def settle(name: str, settings: Mapping[str, Any]) -> Settled:
    """Read size, resampling, mean and deviation from the model's own configuration."""
    network = PREFIX + name
    _check_name(name)
    if {"mean", "std"} <= settings.keys():  # those of a saved model
        given = InputForm(SIZE, "bilinear", tuple(settings["mean"]), tuple(settings["std"]))
        return Settled(dict(settings), given, name)
    timm = library("timm", "timm", network)
    published = timm.get_pretrained_cfg(name)
    if published is None:
        known = timm.list_models()
        if name.partition(".")[0] not in known:
            raise unknown("model of timm", name, known)
    facts = published.to_dict() if published is not None else {}
    form = InputForm(
        int((facts.get("input_size") or (3, SIZE, SIZE))[1]),
        interpolation_called(facts.get("interpolation") or "bilinear"),
        tuple(facts.get("mean") or IMAGENET_MEAN),
        tuple(facts.get("std") or IMAGENET_STD),
    )
    settled = {"mean": list(form.mean), "std": list(form.std), **settings}
    weights = settings.get("weights", PRETRAINED)
    if weights == NONE:
        return Settled(settled, form)
    if weights != PRETRAINED:
        return Settled(settled, form, file_origin(Path(weights), known_checksum))
    source = facts.get("hf_hub_id") or facts.get("url") or name
    return Settled(settled, form, f"timm {timm.__version__}, {source}")
