"""Image benchmarks: prepared domains, and a ResNet18 whose pretrained weights stand in every
result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from ..data.public_files import Bar, fetch
from ..data.scenario import Scenario
from ..data.weights import RESNET18, weights_folder, weights_note
from ..errors import FarshoreError
from .options import BenchmarkOptions
from .prepared import PreparedBenchmark


class ImageOptions(BenchmarkOptions):
    """What the network starts from."""

    weights: str = Field(
        "imagenet", description="what resnet18 starts from: imagenet, a file, or none"
    )


class ImageBenchmark(PreparedBenchmark):
    """The paper uses an ImageNet ResNet18 and a memory of 5,000 for all of them."""

    Options: ClassVar[type[BenchmarkOptions]] = ImageOptions
    options: ImageOptions
    network = "resnet18"
    memory = 5000

    def named_scenario(
        self,
        target: str | None,
        order: Sequence[str] | None,
        seed: int,
        left_out: Sequence[str],
        network: str | None,
    ) -> Scenario:
        """As any benchmark's, with the weights that the network starts from; absent ones are
        refused before any work. Another network has nothing to do with them.
        """
        if network is not None:
            return super().named_scenario(target, order, seed, left_out, network)
        weights = self.options.weights
        note = weights_note(self.network, weights)
        made = super().named_scenario(target, order, seed, left_out, network)
        return replace(
            made,
            network_settings={**made.network_settings, "weights": weights},
            notes=(*made.notes, note),
        )

    def fetch_weights(
        self, root: str | Path | None = None, *, bar: Bar | None = None
    ) -> str | None:
        """Download the ImageNet weights, checked. What hinders it is told, not raised: the
        domains are prepared without them.
        """
        given = f" --root {root}" if root is not None else ""
        try:
            fetch(
                [RESNET18],
                weights_folder(root),
                again=f"farshore prepare {self.name}{given}",
                bar=bar,
            )
        except FarshoreError as error:
            return str(error)
        return None
