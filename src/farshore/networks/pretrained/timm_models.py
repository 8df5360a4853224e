"""timm:NAME: image models of the timm library."""

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from torch import nn

from ...data.downloads.hf_models import explain_missing, library
from ...data.downloads.hub import hub
from ...errors import FarshoreError, unknown
from ..form import Settled, library_form
from ..network import Network
from .pretrained import LibraryFeatures, library_builder, new_form, saved_form

PREFIX = "timm:"


def builder(name: str) -> Callable[..., Network]:
    """The function that builds the network `timm:NAME`."""

    def make_features(size: tuple[int, ...], pretrained: bool) -> LibraryFeatures:
        try:
            with hub():
                return LibraryFeatures(_create(name, pretrained=pretrained, size=size))
        except (OSError, RuntimeError, ValueError) as error:
            if not pretrained:
                raise
            raise explain_missing(
                PREFIX + name,
                f"fetch them where there is a network, or give the file that timm.create_model("
                f"{name!r}).pretrained_cfg names, with weights=FILE",
                error,
            ) from None

    return library_builder(PREFIX + name, partial(settle, name), make_features)


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
    _check_name(name)
    if (saved := saved_form(name, settings)) is not None:
        return saved
    timm = library("timm", "timm", PREFIX + name)
    published = timm.get_pretrained_cfg(name)
    if published is None:
        known = timm.list_models()
        if name.partition(".")[0] not in known:
            raise unknown("model of timm", name, known)
    facts = published.to_dict() if published is not None else {}
    size = (facts.get("input_size") or (3, 0))[1]
    form = library_form(size, *(facts.get(key) for key in ("interpolation", "mean", "std")))
    source = facts.get("hf_hub_id") or facts.get("url") or name
    return new_form(settings, form, f"timm {timm.__version__}, {source}")
