"""tanh: a network of two layers with tanh."""

from math import prod
from typing import Annotated

from pydantic import Field, validate_call
from torch import nn

from farshore import Network
from farshore.networks import ImageInputs


@validate_call
def tanh(
    shape: tuple[int, ...], classes: int, *, width: Annotated[int, Field(ge=1)] = 32
) -> Network:
    """Two linear layers of `width` units with tanh after each, then the linear classifier."""
    layers = [nn.Flatten(), nn.Linear(prod(shape), width), nn.Tanh()]
    features = nn.Sequential(*layers, nn.Linear(width, width), nn.Tanh())
    inputs = ImageInputs() if len(shape) == 3 else None
    return Network(features, nn.Linear(width, classes), inputs=inputs)
