"""The four-layer CNN of the paper's RotatedMNIST experiments: DomainBed's, with variable width."""

from collections.abc import Iterator
from typing import Annotated

import torch
from pydantic import Field, validate_call
from torch import Tensor, nn
from torch.nn.functional import conv2d

from ..errors import FarshoreError
from .kernels.first_layer import first_layer
from .kernels.relu_group_norm import HAS_KERNELS, is_whole, relu_group_norm
from .network import ImageInputs, Network


class CNNFeatures(nn.Sequential):
    """Four blocks of convolution, ReLU and GroupNorm, then the mean; fused if possible."""

    @property
    def by_channels(self) -> bool:
        """Whether these layers have kernels, which need images with the channels last."""
        blocks = list(self._blocks())
        # A method may have replaced the activations.
        only_relu = all(isinstance(activation, nn.ReLU) for _, activation, _ in blocks)
        whole = all(is_whole(norm.num_channels, norm.num_groups) for _, _, norm in blocks)
        return only_relu and HAS_KERNELS and whole

    def forward(self, inputs: Tensor) -> Tensor:
        """Features [n, 2 x width]."""
        if not self._uses_kernels(inputs):
            return super().forward(inputs)
        blocks, out, device_type = list(self._blocks()), inputs, inputs.device.type
        if torch.is_autocast_enabled(device_type):  # as autocast does for a built-in layer
            out = inputs.to(torch.get_autocast_dtype(device_type))
        for convolution, _, norm in blocks:
            last = convolution is blocks[-1][0]
            parameters = convolution.bias, norm.weight, norm.bias, norm.num_groups, norm.eps
            if convolution.in_channels == 1 and not inputs.requires_grad:
                out, _ = first_layer(out, convolution.weight, *parameters)
            else:
                out = conv2d(out, convolution.weight, None, convolution.stride, convolution.padding)
                out, _ = relu_group_norm(out, *parameters, last)
        return out

    def _uses_kernels(self, inputs: Tensor) -> bool:
        # The second convolution: with one input channel, the first has no distinct memory format.
        weight = self[3].weight
        assert isinstance(weight, Tensor)
        last = weight.is_contiguous(memory_format=torch.channels_last)
        usable = last and not weight.is_contiguous() and self.on_gpu(inputs) and self.by_channels
        return usable and not any(layer._forward_hooks for layer in self)

    @staticmethod
    def on_gpu(inputs: Tensor) -> bool:
        """Whether GPU kernels can process these inputs."""
        return inputs.is_cuda

    def _blocks(self) -> Iterator[tuple[nn.Conv2d, nn.Module, nn.GroupNorm]]:
        for start in range(0, len(self) - 2, 3):
            convolution, activation, norm = self[start], self[start + 1], self[start + 2]
            assert isinstance(convolution, nn.Conv2d)
            assert isinstance(norm, nn.GroupNorm)
            yield convolution, activation, norm


@validate_call
def cnn(
    shape: tuple[int, ...],
    classes: int,
    *,
    width: Annotated[int, Field(ge=8, le=8192, multiple_of=8)] = 64,
) -> Network:
    """Four 3x3 convolutions, each followed by ReLU and GroupNorm(8); then the mean over the map.

    The second convolution has stride 2. Channels: width, then three times 2 x width. At width 64
    and one input channel it has 371,850
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
        convolution = nn.Conv2d(before, after, 3, stride=stride, padding=1)
        layers += [convolution, nn.ReLU(), nn.GroupNorm(8, after)]
    features = CNNFeatures(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
    return Network(features, nn.Linear(2 * width, classes), inputs=ImageInputs())
