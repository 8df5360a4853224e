"""What a network expects of its images, and where its weights come from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos"]
# ImageNet's channel statistics, with which most published weights were trained.
IMAGENET_MEAN = (0.485, 0.456, 0.406)
IMAGENET_STD = (0.229, 0.224, 0.225)
INTERPOLATIONS: tuple[Interpolation, ...] = ("nearest", "bilinear", "bicubic", "lanczos")


@dataclass(frozen=True)
class InputForm:
    """How images are made for a network: pixels per side, resampling, and channel statistics."""

    size: int = 32
    interpolation: Interpolation = "bilinear"
    mean: tuple[float, ...] = (0.0,)
    std: tuple[float, ...] = (1.0,)


@dataclass(frozen=True)
class Settled:
    """A network's settings with everything that its own configuration decides filled in.

    settings: rebuild the same architecture on a machine that has neither the weights nor the
        network's configuration.
    origin: which weights, in words; empty for a network that starts from random numbers.
    """

    settings: Mapping[str, Any] = field(default_factory=dict)
    form: InputForm = field(default_factory=InputForm)
    origin: str = ""


def interpolation_called(name: Any) -> Interpolation:
    """The resampling of this name, as libraries write it; bilinear if it is another."""
    text = str(name).rpartition(".")[2].lower()
    return text if text in INTERPOLATIONS else "bilinear"
