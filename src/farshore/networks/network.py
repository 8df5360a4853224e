"""Network: h = g∘f with `.features`, `.classifier` and `.feature_dim`."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, Self

import torch
from torch import Tensor, nn

from ..errors import FarshoreError

# Rows per forward pass outside training: for scores, priors and stored logits.
EVALUATION_ROWS = 4096
BatchNormMode = Literal["train", "frozen", "no_update"]


class ImageInputs(nn.Module):
    """uint8 images as floats in [0, 1], then (x - mean) / std; exported with the model."""

    mean: Tensor
    std: Tensor

    def __init__(self, mean: tuple[float, ...] = (0.0,), std: tuple[float, ...] = (1.0,)) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(1, -1, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std).view(1, -1, 1, 1), persistent=False)
        self.plain = all(value == 0 for value in mean) and all(value == 1 for value in std)

    def forward(self, inputs: Tensor) -> Tensor:
        """Prepare images for the feature extractor."""
        images = inputs.to(self.mean.dtype) / 255 if inputs.dtype == torch.uint8 else inputs
        return images if self.plain else (images - self.mean) / self.std


@dataclass(frozen=True)
class HiddenUnits:
    """A layer of hidden units: the module that writes them, its normalisation, and the readers.

    `normalised_first`: the normalisation is before the ReLU (convolution, norm, ReLU), not after
    it.
    """

    name: str
    writer: nn.Linear | nn.Conv2d
    normalisation: nn.Module | None
    readers: tuple[nn.Linear | nn.Conv2d, ...]
    normalised_first: bool = True

    @property
    def preactivation(self) -> nn.Module:
        """The module whose output is the input of the ReLU."""
        first = self.normalisation if self.normalised_first else None
        return first if first is not None else self.writer


class Network(nn.Module):
    """h = g∘f: a feature extractor and a linear classifier.

    `features` maps a batch of inputs to [n, feature_dim], `classifier` maps that to one logit per
    class; both can be any module. `inputs`, if given, prepares raw inputs (uint8 images) and is
    part of the model.
    """

    def __init__(
        self,
        features: nn.Module,
        classifier: nn.Module,
        *,
        feature_dim: int | None = None,
        inputs: nn.Module | None = None,
    ):
        super().__init__()
        self.inputs = inputs if inputs is not None else nn.Identity()
        self.features = features
        self.classifier = classifier
        dimension = getattr(classifier, "in_features", feature_dim)
        if dimension is None:
            raise FarshoreError(
                "feature_dim is unknown: pass a linear classifier to Network, or set "
                "feature_dim=..."
            )
        self.feature_dim = int(dimension)
        # The feature extractor as it runs in training, if it is compiled or in half precision.
        # Set only during training.
        self.extractor: Callable[[Tensor], Tensor] | None = None
        self.channels_last = False

    def train(self, mode: bool = True) -> Self:
        """Set the mode of every layer; frozen ones stay in evaluation mode."""
        super().train(mode)
        for module in self.modules():
            if getattr(module, "frozen", False):
                module.training = False
        return self

    def extract(self, inputs: Tensor) -> Tensor:
        """f(x): the features [n, feature_dim]."""
        return self.plain_features(inputs) if self.extractor is None else self.extractor(inputs)

    def stages(self) -> tuple[nn.Module, nn.Module] | None:
        """The features as all blocks but the last, and the last; None if they cannot be divided."""
        return None

    def plain_features(self, inputs: Tensor) -> Tensor:
        """The features, computed by the modules directly."""
        prepared = self.inputs(inputs)
        if self.channels_last and prepared.ndim == 4:
            prepared = prepared.contiguous(memory_format=torch.channels_last)
        return self.features(prepared)

    def forward(self, inputs: Tensor) -> Tensor:
        """h(x): the logits [n, classes]."""
        return self.classifier(self.extract(inputs))

    @property
    def classes(self) -> int:
        """The number of logits of the classifier."""
        outputs = getattr(self.classifier, "out_features", None)
        if outputs is None:
            raise FarshoreError(
                "the number of classes is unknown: this method needs a classifier with "
                "`out_features`, such as nn.Linear"
            )
        return int(outputs)

    def batchnorms(self) -> list[nn.modules.batchnorm._BatchNorm]:
        """All BatchNorm layers that are not frozen."""
        kind = nn.modules.batchnorm._BatchNorm
        layers = [module for module in self.modules() if isinstance(module, kind)]
        return [layer for layer in layers if not getattr(layer, "frozen", False)]

    @contextmanager
    def batchnorm(self, mode: BatchNormMode) -> Iterator[None]:
        """Set the mode of BatchNorm inside the context; other layers keep theirs.

        `train`: batch statistics, running ones updated. `frozen`: running statistics. `no_update`:
        batch statistics, running ones unchanged.
        """
        layers = self.batchnorms()
        before = [(layer.training, layer.track_running_stats) for layer in layers]
        for layer in layers:
            layer.training = mode != "frozen"
            layer.track_running_stats = layer.track_running_stats and mode != "no_update"
        try:
            yield
        finally:
            for layer, (trained, tracked) in zip(layers, before, strict=True):
                layer.training, layer.track_running_stats = trained, tracked

    def hidden_units(self) -> list[HiddenUnits]:
        """The layers whose units pass a ReLU, with their readers, for methods that reset units.

        They are determined by walking `features`, as a chain of modules, and the classifier.
        Networks with branches override this.
        """
        leaves = [each for each in _leaves(self.features) if not isinstance(each, nn.Identity)]
        chain, weighted = [*leaves, self.classifier], (nn.Linear, nn.Conv2d)
        places = [index for index, module in enumerate(chain) if isinstance(module, weighted)]
        layers: list[HiddenUnits] = []
        for writes, reads in pairwise(places):
            writer, reader, between = chain[writes], chain[reads], chain[writes + 1 : reads]
            relu = next((module for module in between if isinstance(module, nn.ReLU)), None)
            if relu is None:
                continue
            kinds = (nn.GroupNorm, nn.modules.batchnorm._BatchNorm)
            norm = next((module for module in between if isinstance(module, kinds)), None)
            normalised_first = norm is not None and between.index(norm) < between.index(relu)
            assert isinstance(writer, weighted)
            assert isinstance(reader, weighted)
            layers.append(HiddenUnits(f"{len(layers)}", writer, norm, (reader,), normalised_first))
        return layers


def _leaves(module: nn.Module) -> Iterator[nn.Module]:
    children = list(module.children())
    if not children:
        yield module
    for child in children:
        yield from _leaves(child)
