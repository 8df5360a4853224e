"""Image benchmarks: prepared domains and a pretrained ResNet18; results record its weights."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from ..data.downloads.prepared import Prepared
from ..data.downloads.public_files import Bar, fetch
from ..data.downloads.weights import RESNET18, weights_folder, weights_note
from ..errors import FarshoreError
from .options import BenchmarkOptions
from .prepared import PreparedBenchmark


class ImageOptions(BenchmarkOptions):
    """Options of image benchmarks."""

    weights: str = Field(
        "imagenet", description="what resnet18 starts from: imagenet, a file, or none"
    )
    # Divisors of the corrupted images' numbers, so that each keeps all of its corruptions.
    every: Literal[1, 2, 4, 5, 10] = Field(1, description="use only every n-th row of a domain")


class ImageBenchmark(PreparedBenchmark):
    """Image benchmark with the paper's ImageNet ResNet18 and memory of 5,000 rows."""

    Options: ClassVar[type[BenchmarkOptions]] = ImageOptions
    options: ImageOptions
    network = "resnet18"
    memory = 5000

    def open(self, seed: int) -> Prepared:
        """Return the prepared set, or a part of its rows."""
        return replace(super().open(seed), every=self.options.every)

    def initial_network(self) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        """Return the weights that the network starts from; missing ones are refused at once."""
        weights = self.options.weights
        return {**self.network_settings, "weights": weights}, (weights_note(self.network, weights),)

    def fetch_weights(
        self, root: str | Path | None = None, *, bar: Bar | None = None
    ) -> str | None:
        """Download the ImageNet weights; an error is returned: the domains do not need them."""
        try:
            fetch([RESNET18], weights_folder(root), again=self._again(root), bar=bar)
        except FarshoreError as error:
            return str(error)
        return None
