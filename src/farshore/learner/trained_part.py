"""Which part of a network is trained, and which settings suit that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..entry import Entry
from ..errors import FarshoreError
from ..networks.build import is_pretrained
from ..networks.freezing import Train
from ..networks.network import Network
from ..settings import RunSettings

# The method for frozen features: on the small sets of images in docs/images.md, no other has a
# higher mean.
ON_FEATURES = "slda"


def resolve_train(run: RunSettings, network: str | Network, settings: Mapping[str, Any]) -> Train:
    """What is trained: what the run sets, or for `auto`, what suits the network."""
    if run.train != "auto":
        return run.train
    return "head" if isinstance(network, str) and is_pretrained(network, settings) else "all"


def train_by_settings(
    settings: Mapping[str, Any], network: str | Network, network_settings: Mapping[str, Any]
) -> Train:
    """What is trained with these settings of a run."""
    run = RunSettings.build({"train": settings.get("train", RunSettings().train)})
    return resolve_train(run, network, network_settings)


def usual_profile(
    shape: tuple[int, ...], train: Train, network: str | Network, settings: Mapping[str, Any]
) -> str:
    """The default settings profile for users' own data."""
    if train == "head":
        return "frozen-features"
    if len(shape) != 3:
        return "default"
    pretrained = not isinstance(network, str) or is_pretrained(network, settings)
    return "large-data" if pretrained else "images-from-scratch"


def check_training(
    run: RunSettings,
    train: Train,
    method: type[Entry],
    network: str | Network,
    settings: Mapping[str, Any],
) -> None:
    """Refuse settings of training that do not go together."""
    if train != "all" and isinstance(network, str) and not is_pretrained(network, settings):
        raise FarshoreError(
            f"train = {train!r} is not allowed for {network!r}, whose features start from random "
            "numbers: use train=all, or pretrained weights"
        )
    if train == "last-block" and method.system in ("closed-form", "trees"):
        raise FarshoreError(
            f"train = 'last-block' is not allowed for {method.name!r}, which trains no block: use "
            "train=head"
        )
    if run.store == "features" and train != "head":
        raise FarshoreError(
            f"store = 'features' is not allowed with train = {train!r}: the memory keeps features "
            "only where the backbone is frozen; use train=head"
        )
    if run.augment != "none" and train == "head" and not run.augment_copies:
        raise FarshoreError(
            f"augment = {run.augment!r} is not allowed with train = 'head', whose features are "
            "computed once: ask for several augmented copies (augment_copies=4), or use "
            "train=last-block or all"
        )
    if run.augment != "none" and isinstance(network, str) and network == "mlp":
        raise FarshoreError(
            f"augment = {run.augment!r} is not allowed for 'mlp': it is for networks of images"
        )
    if run.augment_copies and (train != "head" or run.augment == "none"):
        raise FarshoreError(
            f"augment_copies = {run.augment_copies} is not allowed here: it is for train=head with "
            "augment=standard or strong"
        )
    if run.augment != "none" and train != "head" and method.system != "gradient":
        raise FarshoreError(
            f"augment = {run.augment!r} is not allowed for {method.name!r}, which reads every "
            "image once: use train=head with augment_copies"
        )
    if run.head_width and train != "head":
        raise FarshoreError(
            f"head_width = {run.head_width} is not allowed with train = {train!r}: it is for "
            "train=head"
        )
