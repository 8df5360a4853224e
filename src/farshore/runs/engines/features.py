"""Save features of sources and target for figures, from the frozen model, after scoring."""

from collections.abc import Callable
from pathlib import Path

import torch
from safetensors.torch import save
from torch import Tensor

from ...base.files import state_errors, write_atomic
from ...base.randomness import generator
from ...data.domain import Domain, Rows
from ...data.scenario import Scenario
from ...learner.learner import Learner

ROWS_PER_DOMAIN = 500


def feature_saver(path: Path) -> Callable[[Learner, Scenario, Domain], None]:
    """A callback for the protocol that saves features once the target is open.

    It takes at most 500 rows of each source's validation split and of the target.
    """

    def save_features(learner: Learner, scenario: Scenario, target: Domain) -> None:
        tensors: dict[str, Tensor] = {}
        for number, domain in enumerate(scenario.sources, start=1):
            name, rows = f"source {number} {domain.name}", domain.split("validation")
            tensors |= _features(learner, rows, name, scenario.seed)
        tensors |= _features(learner, target.split("all"), f"target {target.name}", scenario.seed)
        with state_errors(f"could not write {path}"):
            write_atomic(path, save(tensors))

    return save_features


def _features(learner: Learner, rows: Rows, name: str, seed: int) -> dict[str, Tensor]:
    """`NAME features` and `NAME labels` of rows that the scenario's seed chooses."""
    order = torch.randperm(len(rows), generator=generator(seed, "shown features", name))
    inputs, labels = rows.take(order[:ROWS_PER_DOMAIN].to(rows.index.device))
    made = {"features": learner.system.features(inputs), "labels": labels}
    return {f"{name} {of}": each.cpu().clone().contiguous() for of, each in made.items()}
