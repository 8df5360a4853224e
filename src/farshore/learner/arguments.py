"""Checks of a learner's arguments that need neither its network nor any data."""

from collections.abc import Mapping
from typing import Any

from ..data.tables.frames import PREPROCESS
from ..entry import Entry
from ..errors import FarshoreError
from ..networks.build import is_pretrained
from ..networks.freezing import Train
from ..networks.network import Network
from ..settings import RunSettings
from ..tasks.classification import Classification
from ..tasks.regression import Regression

METRICS = (*Classification.metrics, *Regression.metrics)
MOST_ROWS = 10**9


def check_arguments(
    method: type[Entry],
    run: RunSettings,
    metric: str,
    preprocess: str | None,
    memory: int,
    weighted: bool | None,
) -> None:
    """Refuse values that are not allowed, and what the method cannot do."""
    if run.class_weight != "none" and not method.weighs_classes:
        raise FarshoreError(
            f"class_weight = {run.class_weight!r} is not allowed for {method.name!r}: its loss "
            "has no term to weigh"
        )
    if metric not in METRICS:
        why = f"metric = {metric!r} is not allowed: it should be one of {', '.join(METRICS)}"
        raise FarshoreError(why)
    if preprocess not in (None, *PREPROCESS):
        why = f"preprocess = {preprocess!r} is not allowed: it should be 'columns' or 'none'"
        raise FarshoreError(why)
    if not 1 <= int(memory) <= MOST_ROWS:
        raise FarshoreError(
            f"memory = {memory} is not allowed: it must keep at least 1 row, and at most "
            f"{MOST_ROWS:,}"
        )
    if weighted:
        check_weighs_rows(method)


def check_weighs_rows(method: type[Entry]) -> None:
    """Refuse weights of rows if the method's loss has no place for them."""
    if not method.weighs_rows:
        raise FarshoreError(
            f"rows cannot have weights with {method.name!r}, whose loss does not support them: use "
            "another method, for example er, or leave the weights out"
        )


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
        why = f"augment = {run.augment!r} is not allowed for 'mlp': it is for networks of images"
        raise FarshoreError(why)
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
