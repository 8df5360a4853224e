"""Network: h = g∘f with `.features`, `.classifier` and `.feature_dim`."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from ..errors import FarshoreError

# Rows that pass through a network at once where nothing is trained: scores, priors, stored logits.
EVALUATION_ROWS = 4096
BatchNormMode = Literal["train", "frozen", "no_update"]


class ImageInputs(nn.Module):
    """uint8 images to floats in [0, 1], then (x - mean) / std per channel. It is part of the
    model, so it is exported with it.
    """

    mean: Tensor
    std: Tensor

    def __init__(self, mean: tuple[float, ...] = (0.0,), std: tuple[float, ...] = (1.0,)) -> None:
        super().__init__()
        self.register_buffer("mean", torch.tensor(mean).view(1, -1, 1, 1), persistent=False)
        self.register_buffer("std", torch.tensor(std).view(1, -1, 1, 1), persistent=False)
        self.plain = all(value == 0 for value in mean) and all(value == 1 for value in std)

    def forward(self, inputs: Tensor) -> Tensor:
        """Images ready for the feature extractor."""
        images = inputs.to(self.mean.dtype) / 255 if inputs.dtype == torch.uint8 else inputs
        return images if self.plain else (images - self.mean) / self.std


@dataclass(frozen=True)
class HiddenUnits:
    """A layer of hidden units: the module that writes them, the normalisation after it, and the
    modules that read them.

    `normalised_first`: the normalisation stands before the ReLU (convolution, norm, ReLU), not
    behind it.
    """

    name: str
    writer: nn.Linear | nn.Conv2d
    normalisation: nn.Module | None
    readers: tuple[nn.Linear | nn.Conv2d, ...]
    normalised_first: bool = True

    @property
    def preactivation(self) -> nn.Module:
        """The module whose output enters the ReLU."""
        return (
            self.normalisation
            if self.normalisation is not None and self.normalised_first
            else self.writer
        )


class Network(nn.Module):
    """h = g∘f: a feature extractor and a linear classifier, both the user's own modules if he
    likes.

    `features` maps a batch of inputs to [n, feature_dim], `classifier` maps that to one logit a
    class. `inputs`, if given, prepares raw inputs (uint8 images) and stays inside the model.
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
        found = getattr(classifier, "in_features", feature_dim)
        if found is None:
            raise FarshoreError(
                "feature_dim is unknown: hand a linear classifier to Network, or say "
                "feature_dim=..."
            )
        self.feature_dim = int(found)
        # How training runs the feature extractor, if not plainly: compiled, or in half precision.
        # Set while it trains only.
        self.extractor: Callable[[Tensor], Tensor] | None = None
        self.channels_last = False

    def extract(self, inputs: Tensor) -> Tensor:
        """f(x): the features [n, feature_dim]."""
        return self.plain_features(inputs) if self.extractor is None else self.extractor(inputs)

    def plain_features(self, inputs: Tensor) -> Tensor:
        """The features, as the modules stand."""
        ready = self.inputs(inputs)
        if self.channels_last and ready.ndim == 4:
            ready = ready.contiguous(memory_format=torch.channels_last)
        features: Tensor = self.features(ready)
        return features

    def forward(self, inputs: Tensor) -> Tensor:
        """h(x): the logits [n, classes]."""
        logits: Tensor = self.classifier(self.extract(inputs))
        return logits

    @property
    def classes(self) -> int:
        """How many logits the classifier gives."""
        found = getattr(self.classifier, "out_features", None)
        if found is None:
            raise FarshoreError(
                "the number of classes is unknown: this method needs a classifier with "
                "`out_features`, such as nn.Linear"
            )
        return int(found)

    def batchnorms(self) -> list[nn.modules.batchnorm._BatchNorm]:
        """All BatchNorm layers."""
        return [
            module
            for module in self.modules()
            if isinstance(module, nn.modules.batchnorm._BatchNorm)
        ]

    @contextmanager
    def batchnorm(self, mode: BatchNormMode) -> Iterator[None]:
        """How BatchNorm behaves inside: `train` (batch statistics, running ones updated), `frozen`
        (running statistics), `no_update` (batch statistics, running ones left alone). Other layers
        keep their mode."""
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

        Found by walking `features` (a chain of modules) and the classifier. Networks with branches
        override this.
        """
        chain = [
            module for module in _leaves(self.features) if not isinstance(module, nn.Identity)
        ] + [self.classifier]
        found: list[HiddenUnits] = []
        for place, writer in enumerate(chain[:-1]):
            if not isinstance(writer, nn.Linear | nn.Conv2d):
                continue
            reader_at = next(
                (
                    i
                    for i in range(place + 1, len(chain))
                    if isinstance(chain[i], nn.Linear | nn.Conv2d)
                ),
                None,
            )
            between = chain[place + 1 : reader_at]
            if reader_at is None or not any(isinstance(module, nn.ReLU) for module in between):
                continue
            norm = next(
                (
                    m
                    for m in between
                    if isinstance(m, nn.GroupNorm | nn.modules.batchnorm._BatchNorm)
                ),
                None,
            )
            relu = next(m for m in between if isinstance(m, nn.ReLU))
            normalised_first = norm is not None and between.index(norm) < between.index(relu)
            reader = chain[reader_at]
            assert isinstance(reader, nn.Linear | nn.Conv2d)
            found.append(HiddenUnits(f"{len(found)}", writer, norm, (reader,), normalised_first))
        return found


def _leaves(module: nn.Module) -> Iterator[nn.Module]:
    children = list(module.children())
    if not children:
        yield module
    for child in children:
        yield from _leaves(child)
