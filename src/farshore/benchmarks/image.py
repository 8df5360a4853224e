"""Image benchmarks: prepared domains and a pretrained ResNet18; results record its weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from ..data.downloads.public_files import Bar, fetch
from ..data.downloads.weights import RESNET18, weights_folder, weights_note
from ..data.scenario import Scenario
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

    def named_scenario(
        self,
        target: str | None,
        order: Sequence[str] | None,
        seed: int,
        left_out: Sequence[str],
        network: str | None,
    ) -> Scenario:
        """Return the scenario, including the initial weights of the network.

        Missing weights are refused before any work. With another `network`, they are not used.
        """
        if network is not None:
            return super().named_scenario(target, order, seed, left_out, network)
        weights = self.options.weights
        note = weights_note(self.network, weights)
        scenario = super().named_scenario(target, order, seed, left_out, network)
        return replace(
            scenario,
            network_settings={**scenario.network_settings, "weights": weights},
            notes=(*scenario.notes, note),
        )

    def fetch_weights(
        self, root: str | Path | None = None, *, bar: Bar | None = None
    ) -> str | None:
        """Download and check the ImageNet weights; return an error message if that fails.

        The error is not raised, because the domains can be prepared without the weights.
        """
        root_flag = f" --root {root}" if root is not None else ""
        try:
            fetch(
                [RESNET18],
                weights_folder(root),
                again=f"farshore prepare {self.name}{root_flag}",
                bar=bar,
            )
        except FarshoreError as error:
            return str(error)
        return None
