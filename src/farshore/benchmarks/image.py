"""Image benchmarks: prepared domains, and a ResNet18 whose pretrained weights stand in every
result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from ..data.public_files import Bar, fetch
from ..data.scenario import Scenario
from ..data.weights import RESNET18, weights_folder, weights_note
from ..errors import FarshoreError
from .prepared import PreparedBenchmark


class ImageBenchmark(PreparedBenchmark):
    """The paper uses an ImageNet ResNet18 and a memory of 5,000 for all of them."""

    network = "resnet18"
    memory = 5000
    weights: str = "imagenet"

    def scenario(
        self,
        *,
        target: str | None = None,
        order: Sequence[str] | None = None,
        seed: int = 0,
        left_out: Sequence[str] = (),
    ) -> Scenario:
        """As any benchmark's, with the weights that the network starts from; absent ones are
        refused before any work.
        """
        note = weights_note(self.network, self.weights)
        made = super().scenario(target=target, order=order, seed=seed, left_out=left_out)
        return replace(
            made,
            network_settings={**made.network_settings, "weights": self.weights},
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
