"""ResNet18 with torchvision's parameter names, so that its weight files can be loaded."""

from typing import Annotated

from pydantic import Field, validate_call
from torch import Tensor, nn

from ..data.downloads.weights import find_weights, read_weights
from ..errors import FarshoreError
from .form import IMAGENET_MEAN, IMAGENET_STD, InputForm
from .network import HiddenUnits, ImageInputs, Network

# The published weights were trained with images of this size.
FORM = InputForm(224, "bilinear", IMAGENET_MEAN, IMAGENET_STD)
WIDTH = 64


class BasicBlock(nn.Module):
    """relu(x + norm(conv(relu(norm(conv(x)))))); a 1x1 convolution where the size changes."""

    def __init__(self, before: int, after: int, stride: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(before, after, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(after)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(after, after, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(after)
        self.downsample: nn.Module | None = None
        if stride != 1 or before != after:
            smaller = nn.Conv2d(before, after, 1, stride=stride, bias=False)
            self.downsample = nn.Sequential(smaller, nn.BatchNorm2d(after))

    def forward(self, inputs: Tensor) -> Tensor:
        """The block's output."""
        inner = self.bn2(self.conv2(self.relu(self.bn1(self.conv1(inputs)))))
        shortcut = inputs if self.downsample is None else self.downsample(inputs)
        return self.relu(inner + shortcut)


class ResNet18Features(nn.Module):
    """A stem (7x7 convolution, pooling), four stages of two blocks, and the mean over the map."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, stride=2, padding=1)

        def stage(before: int, after: int, stride: int) -> nn.Sequential:
            return nn.Sequential(BasicBlock(before, after, stride), BasicBlock(after, after, 1))

        self.layer1 = stage(width, width, 1)
        self.layer2 = stage(width, 2 * width, 2)
        self.layer3 = stage(2 * width, 4 * width, 2)
        self.layer4 = stage(4 * width, 8 * width, 2)
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        for module in self.modules():  # torchvision's initialisation
            if isinstance(module, nn.Conv2d):
                nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, inputs: Tensor) -> Tensor:
        """Features [n, 8 x width]."""
        out: Tensor = self.maxpool(self.relu(self.bn1(self.conv1(inputs))))
        for layer in (self.layer1, self.layer2, self.layer3, self.layer4, self.avgpool):
            out = layer(out)
        return out.flatten(1)


class ResNet18(Network):
    """ResNet18 as a Network."""

    def stages(self) -> tuple[nn.Module, nn.Module] | None:
        """The stem and three stages, and the last stage."""
        features = self.features
        if not isinstance(features, ResNet18Features):
            return None
        names = ("conv1", "bn1", "relu", "maxpool", "layer1", "layer2", "layer3")
        before = nn.Sequential(*(getattr(features, name) for name in names))
        return before, nn.Sequential(features.layer4, features.avgpool, nn.Flatten())

    def hidden_units(self) -> list[HiddenUnits]:
        """The inner convolution of each block: units on the shortcut cannot be reset alone."""
        return [
            HiddenUnits(name, block.conv1, block.bn1, (block.conv2,))
            for name, block in self.features.named_modules()
            if isinstance(block, BasicBlock)
        ]


@validate_call
def resnet18(
    shape: tuple[int, ...],
    classes: int,
    *,
    weights: str = "imagenet",
    width: Annotated[int, Field(ge=1, le=4096)] = WIDTH,
) -> Network:
    """ResNet18 (He et al., CVPR 2016) at the images' own resolution; 512 features at width 64.

    weights: `imagenet` (torchvision's IMAGENET1K_V1 file in ROOT/weights), a file (.pth or
    .safetensors with torchvision's names; its head is ignored), or `none` to train from scratch.
    One-channel images are repeated to three channels. The paper uses ImageNet weights and does not
    mention resizing or a different stem, so images keep their size and the stem is torchvision's.
    """
    if len(shape) != 3 or shape[0] not in (1, 3):
        raise FarshoreError(
            "network 'resnet18' needs images [1 or 3, height, width], but the inputs have shape "
            f"{list(shape)}"
        )
    features = ResNet18Features(width)
    file = find_weights(weights)
    if file is not None:
        if width != WIDTH:
            why = f"width = {width} has no pretrained weights: use width {WIDTH} or weights none"
            raise FarshoreError(why)
        _load(features, read_weights(file), str(file))
    # Subtracting three channel means broadcasts one channel to three.
    inputs = ImageInputs(FORM.mean, FORM.std)
    return ResNet18(features, nn.Linear(8 * width, classes), inputs=inputs)


def _load(features: ResNet18Features, weights: dict[str, Tensor], file: str) -> None:
    own = features.state_dict()
    needed = [name for name in own if not name.endswith("num_batches_tracked")]
    missing = [name for name in needed if name not in weights]
    wrong = [name for name in own if name in weights and weights[name].shape != own[name].shape]
    if missing or wrong:
        raise FarshoreError(
            f"{file} does not fit resnet18: {(missing or wrong)[0]!r} "
            f"{'is missing' if missing else 'has a different shape'}"
        )
    features.load_state_dict({name: weights.get(name, own[name]) for name in own})
