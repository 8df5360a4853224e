"""What a network expects of its images, and where its weights come from."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Interpolation = Literal["nearest", "bilinear", "bicubic", "lanczos"]
# The side of images if a network says nothing about it.
SIZE = 224
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


def library_form(size: Any, interpolation: Any, mean: Any, std: Any) -> InputForm:
    """What a library says of its images; bilinear and ImageNet's statistics where it says nothing.

    size: pixels per side, or a list that begins with them.
    """
    side = size[0] if isinstance(size, list | tuple) else size
    name = str(interpolation).rpartition(".")[2].lower()
    resampling: Interpolation = name if name in INTERPOLATIONS else "bilinear"
    pairs = ((mean, IMAGENET_MEAN), (std, IMAGENET_STD))
    statistics = (tuple(usual if given is None else given) for given, usual in pairs)
    return InputForm(int(side or SIZE), resampling, *statistics)
