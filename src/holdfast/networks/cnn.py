"""The four-layer CNN of the paper's RotatedMNIST experiments: DomainBed's MNIST network, with a width."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, validate_call
from torch import nn

from ..errors import HoldfastError
from .network import ImageInputs, Network


@validate_call
def cnn(shape: tuple[int, ...], classes: int, *, width: Annotated[int, Field(ge=8, multiple_of=8)] = 64) -> Network:
    """Four 3x3 convolutions, each followed by ReLU and then GroupNorm(8); the second has stride 2; mean over the map.

    Channels: width, then three times 2 x width. At width 64 and one input channel it has 371,850 parameters with ten classes
    (Gulrajani and Lopez-Paz, "In Search of Lost Domain Generalization", ICLR 2021, MNIST_CNN).
    """
    if len(shape) != 3:
        raise HoldfastError(f"network 'cnn' needs images [channels, height, width], but the inputs have shape {list(shape)}: try 'mlp'")
    channels = [shape[0], width, 2 * width, 2 * width, 2 * width]
    layers: list[nn.Module] = []
    for stride, before, after in zip([1, 2, 1, 1], channels, channels[1:], strict=False):
        layers += [nn.Conv2d(before, after, 3, stride=stride, padding=1), nn.ReLU(), nn.GroupNorm(8, after)]
    features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return Network(features, nn.Linear(2 * width, classes), inputs=ImageInputs())
