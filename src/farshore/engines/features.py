"""Features of sources and target for figures: taken after the scores are measured, from the
frozen model.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor

from ..data.domain import Domain, Rows
from ..data.scenario import Scenario
from ..errors import StateError
from ..learner import Learner
from ..randomness import generator
from ..state import write_atomic

ROWS_A_DOMAIN = 500


def feature_saver(path: Path) -> Callable[[Learner, Scenario, Domain], None]:
    """What the protocol calls when the target is open: at most 500 rows of each source's
    validation split and of the target.
    """

    def keep(learner: Learner, scenario: Scenario, target: Domain) -> None:
        tensors: dict[str, Tensor] = {}
        for place, domain in enumerate(scenario.sources):
            tensors |= _of(
                learner,
                domain.split("validation"),
                f"source {place + 1} {domain.name}",
                scenario.seed,
            )
        tensors |= _of(learner, target.split("all"), f"target {target.name}", scenario.seed)
        try:
            write_atomic(path, save(tensors))
        except OSError as error:
            raise StateError(f"could not write {path}: {error.strerror or error}") from error

    return keep


def _of(learner: Learner, rows: Rows, name: str, seed: int) -> dict[str, Tensor]:
    """`NAME features` and `NAME labels`. Which rows are shown depends on the scenario's seed
    alone, not on the method.
    """
    chosen = torch.randperm(len(rows), generator=generator(seed, "shown features", name))[
        :ROWS_A_DOMAIN
    ]
    inputs, labels = rows.take(chosen.to(rows.index.device))
    features = learner.system.features(inputs)
    return {
        f"{name} features": features.cpu().clone().contiguous(),
        f"{name} labels": labels.cpu().clone().contiguous(),
    }
