"""histogram: fixed features of images that need no weights, the baseline of every backbone.

Colours and edges are counted in cells of the image. Nothing is learned, so they can be computed
anywhere, and a linear classifier on them beats a small network that is trained from scratch on a
few thousand photographs.
"""

import math
from typing import Annotated

import torch
from pydantic import Field, validate_call
from torch import Tensor, nn
from torch.nn.functional import adaptive_avg_pool2d, conv2d

from ..errors import FarshoreError
from .form import InputForm
from .network import ImageInputs, Network

FORM = InputForm(size=64)
COLOUR_BINS = 8
DIRECTIONS = 8
TINY = 1e-6


class HistogramFeatures(nn.Module):
    """Square roots of local histograms of colours and of edge directions.

    Colours: `COLOUR_BINS` soft bins of each channel, in 2 x 2 cells. Edges: `DIRECTIONS` soft bins
    of the gradient's direction modulo 180 degrees, weighted by its length, in `cells` x `cells`
    cells, each cell normalised to length 1 (Dalal and Triggs, "Histograms of Oriented Gradients for
    Human Detection", CVPR 2005, without overlapping blocks).
    """

    differences: Tensor
    centres: Tensor
    angles: Tensor

    def __init__(self, channels: int, cells: int) -> None:
        super().__init__()
        self.cells = cells
        self.size = channels * COLOUR_BINS * 4 + DIRECTIONS * cells**2
        horizontal = torch.tensor([[0.0, 0, 0], [-0.5, 0, 0.5], [0, 0, 0]])
        differences = torch.stack([horizontal, horizontal.T])[:, None]
        centres = (torch.arange(COLOUR_BINS) + 0.5) / COLOUR_BINS
        angles = torch.arange(DIRECTIONS) * math.pi / DIRECTIONS
        self.register_buffer("differences", differences, persistent=False)
        self.register_buffer("centres", centres.view(1, 1, -1, 1, 1), persistent=False)
        self.register_buffer("angles", angles.view(1, -1, 1, 1), persistent=False)

    def forward(self, images: Tensor) -> Tensor:
        """Features [n, size] of images with values from 0 to 1."""
        distance = (images[:, :, None] - self.centres).abs() * COLOUR_BINS
        colours = adaptive_avg_pool2d((1 - distance).clamp(min=0).flatten(1, 2), 2)
        grey = images.mean(dim=1, keepdim=True)
        across, down = conv2d(grey, self.differences, padding=1).unsqueeze(2).unbind(1)
        length = (across**2 + down**2 + TINY**2).sqrt()
        direction = torch.atan2(down, across + TINY)
        turn = (direction - self.angles) * (DIRECTIONS / math.pi)
        # The distance to a bin on a circle of DIRECTIONS bins.
        apart = (turn + DIRECTIONS / 2).remainder(DIRECTIONS) - DIRECTIONS / 2
        edges = adaptive_avg_pool2d((1 - apart.abs()).clamp(min=0) * length, self.cells)
        edges = edges / (edges.norm(dim=1, keepdim=True) + 0.01)
        return torch.cat([colours.flatten(1).clamp(min=0).sqrt(), edges.flatten(1)], dim=1)


@validate_call
def histogram(
    shape: tuple[int, ...], classes: int, *, cells: Annotated[int, Field(ge=1, le=64)] = 8
) -> Network:
    """Histograms of colours and edge directions, then a linear classifier."""
    if len(shape) != 3:
        raise FarshoreError(
            "network 'histogram' needs images [channels, height, width], but the inputs have "
            f"shape {list(shape)}: try 'mlp'"
        )
    features = HistogramFeatures(shape[0], cells)
    return Network(features, nn.Linear(features.size, classes), inputs=ImageInputs())
