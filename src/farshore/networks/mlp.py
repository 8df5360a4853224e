"""The four-layer MLP of the paper's Covertype experiments."""

from typing import Annotated

from pydantic import Field, validate_call
from torch import nn

from .network import ImageInputs, Network


@validate_call
def mlp(
    shape: tuple[int, ...],
    classes: int,
    *,
    width: Annotated[int, Field(ge=1, le=65536)] = 256,
    depth: Annotated[int, Field(ge=2, le=1000)] = 3,
    dropout: Annotated[float, Field(ge=0, lt=1)] = 0.0,
) -> Network:
    """`depth` linear layers of `width` units with ReLU between them, then the linear classifier.

    With depth 3 there are four linear layers (DomainBed's MLP featurizer plus head). There is no
    ReLU after the last feature layer. Images are flattened.
    """
    size = 1
    for length in shape:
        size *= length
    layers: list[nn.Module] = [nn.Flatten()] if len(shape) != 1 else []
    for inputs in [size] + [width] * (depth - 2):
        layers += [nn.Linear(inputs, width), *([nn.Dropout(dropout)] if dropout else []), nn.ReLU()]
    features = nn.Sequential(*layers, nn.Linear(width, width))
    prepared = ImageInputs() if len(shape) == 3 else None
    return Network(features, nn.Linear(width, classes), inputs=prepared)
