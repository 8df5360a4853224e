"""The four-layer CNN of the paper's RotatedMNIST experiments: DomainBed's MNIST network, with a width."""

from __future__ import annotations

from typing import Annotated

import torch
from pydantic import Field, validate_call
from torch import Tensor, nn
from torch.nn.functional import conv2d, linear, pad

from ..errors import HoldfastError
from .network import ImageInputs, Network
from .relu_group_norm import ReLUGroupNorm

LARGEST_PRODUCT = 32


class CNNFeatures(nn.Sequential):
    """Convolution, ReLU, GroupNorm, four times; the mean over the map. The same layers in another form where they are compiled."""

    def forward(self, inputs: Tensor) -> Tensor:
        """Features [n, 2 x width]."""
        if not torch.compiler.is_compiling():
            plain: Tensor = super().forward(inputs)
            return plain
        layers, out = list(self), inputs
        for place in range(0, len(layers) - 2, 3):
            convolution, activation, norm = layers[place : place + 3]
            assert isinstance(convolution, nn.Conv2d)
            assert isinstance(norm, nn.GroupNorm)
            if not isinstance(activation, nn.ReLU):  # a method may have put another one there
                out = norm(activation(convolution(out)))
                continue
            if place == 0 and 9 * convolution.in_channels <= LARGEST_PRODUCT:
                out = first_convolution(out, convolution.weight)
            else:
                out = conv2d(out, convolution.weight, None, convolution.stride, convolution.padding)
            out = ReLUGroupNorm.apply(out, convolution.bias, norm.weight, norm.bias, norm.num_groups, norm.eps)
        features: Tensor = out.mean(dim=(2, 3))
        return features


def first_convolution(images: Tensor, weight: Tensor) -> Tensor:
    """A 3x3 convolution with stride 1 and padding 1 as one matrix product over the nine neighbours of every place.

    Images of one channel have no memory format, so that cuDNN takes this layer with channels first and copies its large output
    forth and back.
    """
    rows, channels, height, width = images.shape
    padded = pad(images, (1, 1, 1, 1))
    near = [padded[:, :, dy : dy + height, dx : dx + width] for dy in range(3) for dx in range(3)]
    columns = torch.stack(near, dim=-1).permute(0, 2, 3, 1, 4).reshape(rows * height * width, 9 * channels)
    fill = (0, -9 * channels % 16)  # matrix units want whole blocks of 16
    product = linear(pad(columns, fill), pad(weight.flatten(1), fill))
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
    for stride, before, after in zip([1, 2, 1, 1], channels, channels[1:], strict=False):
        layers += [nn.Conv2d(before, after, 3, stride=stride, padding=1), nn.ReLU(), nn.GroupNorm(8, after)]
    features = CNNFeatures(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return Network(features, nn.Linear(2 * width, classes), inputs=ImageInputs())
