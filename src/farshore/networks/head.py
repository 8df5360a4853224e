"""head: a classifier on features that a frozen backbone has computed."""

from typing import Annotated

from pydantic import Field, validate_call
from torch import nn

from ..errors import FarshoreError
from .network import Network


@validate_call
def head(
    shape: tuple[int, ...], classes: int, *, width: Annotated[int, Field(ge=0, le=65536)] = 0
) -> Network:
    """A linear classifier; with `width`, on that many hidden units with ReLU.

    Methods that align or penalise features need hidden units here: the features of a frozen
    backbone do not change.
    """
    if len(shape) != 1:
        raise FarshoreError(
            f"network 'head' needs features [d], but the inputs have shape {list(shape)}: name a "
            "backbone, for example resnet18"
        )
    (features,) = shape
    if width == 0:
        return Network(nn.Identity(), nn.Linear(features, classes))
    return Network(nn.Sequential(nn.Linear(features, width), nn.ReLU()), nn.Linear(width, classes))
