"""The four-layer CNN of the paper's RotatedMNIST experiments: DomainBed's MNIST network, with a width."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field, validate_call
from torch import Tensor, nn

from ..errors import HoldfastError
from .network import ImageInputs, Network


class GroupNorm(nn.GroupNorm):
    """GroupNorm whose formula the compiler sees in the order in which channels-last images lie in memory.

    PyTorch's own is taken apart into a view with channels first, so that every convolution beside it copies its images twice. Where
    nothing is compiled, PyTorch's kernel runs.
    """

    def forward(self, inputs: Tensor) -> Tensor:
        """(x - mean) / std over each group's channels and places, then scaled and shifted by channel."""
        if not torch.compiler.is_compiling():
            return super().forward(inputs)
        rows, channels, height, width = inputs.shape
        grouped = inputs.float().permute(0, 2, 3, 1).reshape(rows, height * width, self.num_groups, channels // self.num_groups)
        variance, mean = torch.var_mean(grouped, dim=(1, 3), keepdim=True, correction=0)
        normal = ((grouped - mean) * (variance + self.eps).rsqrt()).reshape(rows, height, width, channels)
        return (normal * self.weight + self.bias).permute(0, 3, 1, 2)


class FirstConv2d(nn.Conv2d):
    """The 3x3 convolution of the images themselves, for the compiler as one matrix product over the nine neighbours of every place.

    Images of one channel have no memory format, so that cuDNN takes this layer with channels first and copies its large output
    forth and back. Where nothing is compiled, or the images have many channels, PyTorch's kernel runs.
    """

    def forward(self, inputs: Tensor) -> Tensor:
        """The convolution, with stride 1 and padding 1."""
        rows, channels, height, width = inputs.shape
        size = 9 * channels
        if not torch.compiler.is_compiling() or size > 32:
            return super().forward(inputs)
        padded = nn.functional.pad(inputs, (1, 1, 1, 1))
        near = [padded[:, :, dy : dy + height, dx : dx + width] for dy in range(3) for dx in range(3)]
        columns = torch.stack(near, dim=-1).permute(0, 2, 3, 1, 4).reshape(rows * height * width, size)
        fill = (0, -size % 16)  # matrix units want whole blocks of 16
        product = nn.functional.linear(nn.functional.pad(columns, fill), nn.functional.pad(self.weight.flatten(1), fill), self.bias)
        return product.reshape(rows, height, width, -1).permute(0, 3, 1, 2)


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
    kinds = [FirstConv2d, nn.Conv2d, nn.Conv2d, nn.Conv2d]
    for kind, stride, before, after in zip(kinds, [1, 2, 1, 1], channels, channels[1:], strict=False):
        layers += [kind(before, after, 3, stride=stride, padding=1), nn.ReLU(), GroupNorm(8, after)]
    features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return Network(features, nn.Linear(2 * width, classes), inputs=ImageInputs())
