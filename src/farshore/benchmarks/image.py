"""Image benchmarks: prepared domains and a pretrained ResNet18; results record its weights."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import Field

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


class ImageBenchmark(PreparedBenchmark):
    """Image benchmark with the paper's ImageNet ResNet18 and memory of 5,000 rows."""

    Options: ClassVar[type[BenchmarkOptions]] = ImageOptions
    options: ImageOptions
    network = "resnet18"
    memory = 5000

    def initial_network(self) -> tuple[Mapping[str, Any], tuple[str, ...]]:
        """Return the weights that the network starts from; missing ones are refused at once."""
        weights = self.options.weights
        return {**self.network_settings, "weights": weights}, (weights_note(self.network, weights),)

    def fetch_weights(
        self, root: str | Path | None = None, *, bar: Bar | None = None
    ) -> str | None:
        """Download the ImageNet weights; an error is returned: the domains do not need them."""
        root_flag = f" --root {root}" if root is not None else ""
        try:
            again = f"farshore prepare {self.name}{root_flag}"
            fetch([RESNET18], weights_folder(root), again=again, bar=bar)
        except FarshoreError as error:
            return str(error)
        return None
