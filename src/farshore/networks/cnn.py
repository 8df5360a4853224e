"""The four-layer CNN of the paper's RotatedMNIST experiments: DomainBed's MNIST network, with a
width.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

import torch
from pydantic import Field, validate_call
from torch import Tensor, nn
from torch.nn.functional import conv2d

from ..errors import FarshoreError
from .first_layer import first_layer
from .network import ImageInputs, Network
from .relu_group_norm import HAS_KERNELS, is_whole, relu_group_norm


class CNNFeatures(nn.Sequential):
    """Convolution, ReLU, GroupNorm, four times; the mean over the map. The same layers as fewer
    kernels where they can be.
    """

    @property
    def by_channels(self) -> bool:
        """Whether there are kernels for these layers that want images with the channels last."""
        blocks = list(self._blocks())
        plain = all(
            isinstance(activation, nn.ReLU) for _, activation, _ in blocks
        )  # a method may have put another one there
        return (
            plain
            and HAS_KERNELS
            and all(is_whole(norm.num_channels, norm.num_groups) for _, _, norm in blocks)
        )

    def forward(self, inputs: Tensor) -> Tensor:
        """Features [n, 2 x width]."""
        if not self._quick(inputs):
            plain: Tensor = super().forward(inputs)
            return plain
        blocks, out = list(self._blocks()), _in_steps_precision(inputs)
        for convolution, _, norm in blocks:
            last = convolution is blocks[-1][0]
            given = convolution.bias, norm.weight, norm.bias, norm.num_groups, norm.eps
            if convolution.in_channels == 1 and not inputs.requires_grad:
                out, _ = first_layer(out, convolution.weight, *given)
            else:
                out = conv2d(out, convolution.weight, None, convolution.stride, convolution.padding)
                out, _ = relu_group_norm(out, *given, last)
        return out

    def _quick(self, inputs: Tensor) -> bool:
        second = self[3].weight  # the first has no format of its own if the images have one channel
        assert isinstance(second, Tensor)
        laid_out = (
            second.is_contiguous(memory_format=torch.channels_last) and not second.is_contiguous()
        )
        return (
            laid_out
            and self.on_gpu(inputs)
            and self.by_channels
            and not any(layer._forward_hooks for layer in self)
        )

    @staticmethod
    def on_gpu(inputs: Tensor) -> bool:
        """Whether kernels for a GPU can take these inputs."""
        return inputs.is_cuda

    def _blocks(self) -> Iterator[tuple[nn.Conv2d, nn.Module, nn.GroupNorm]]:
        for place in range(0, len(self) - 2, 3):
            convolution, activation, norm = self[place], self[place + 1], self[place + 2]
            assert isinstance(convolution, nn.Conv2d)
            assert isinstance(norm, nn.GroupNorm)
            yield convolution, activation, norm


def _in_steps_precision(images: Tensor) -> Tensor:
    """What autocast would make of them for a layer of its own."""
    kind = images.device.type
    return images.to(torch.get_autocast_dtype(kind)) if torch.is_autocast_enabled(kind) else images


@validate_call
def cnn(
    shape: tuple[int, ...], classes: int, *, width: Annotated[int, Field(ge=8, multiple_of=8)] = 64
) -> Network:
    """Four 3x3 convolutions, each followed by ReLU and then GroupNorm(8); the second has stride 2;
    mean over the map.

    Channels: width, then three times 2 x width. At width 64 and one input channel it has 371,850
    parameters with ten classes (Gulrajani and Lopez-Paz, "In Search of Lost Domain Generalization",
    ICLR 2021, MNIST_CNN).
    """
    if len(shape) != 3:
        raise FarshoreError(
            "network 'cnn' needs images [channels, height, width], but the inputs have shape "
            f"{list(shape)}: try 'mlp'"
        )
    channels = [shape[0], width, 2 * width, 2 * width, 2 * width]
    layers: list[nn.Module] = []
    for stride, before, after in zip([1, 2, 1, 1], channels, channels[1:], strict=False):
        layers += [
            nn.Conv2d(before, after, 3, stride=stride, padding=1),
            nn.ReLU(),
            nn.GroupNorm(8, after),
        ]
    features = CNNFeatures(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return Network(features, nn.Linear(2 * width, classes), inputs=ImageInputs())
