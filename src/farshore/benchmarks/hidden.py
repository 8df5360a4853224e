"""Hidden domains: the rows of all sources as one stream, cut into domains without labels."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ..data.boundaries import By, construct, join_small
from ..data.domain import Domain
from ..data.scenario import Scenario
from ..data.splits import divide_rows
from ..randomness import derive


def hide_domains(scenario: Scenario, by: By, count: int | None = None) -> Scenario:
    """The same rows as one stream, the sources one after another, cut into domains that are found
    without labels.

    Rows keep their side of the split, so that scores with true and with found boundaries differ by
    the boundaries alone.
    """
    held_inputs = [domain.inputs for domain in scenario.sources]
    inputs = torch.cat(
        [
            rows if isinstance(rows, Tensor) else torch.from_numpy(np.array(rows))
            for rows in held_inputs
        ]
    )
    labels = torch.cat([domain.labels for domain in scenario.sources])
    held = torch.cat(
        [
            torch.zeros(len(domain), dtype=torch.bool).index_fill(0, domain.validation, True)
            for domain in scenario.sources
        ]
    )
    found = join_small(construct(inputs, by, count=count, seed=scenario.seed), labels.numpy())
    domains = []
    for number, name in enumerate(found.names):
        rows = torch.from_numpy(np.flatnonzero(found.domain == number))
        split = (~held[rows]).nonzero()[:, 0], held[rows].nonzero()[:, 0]
        if min(map(len, split)) == 0:
            split = divide_rows(
                name, len(rows), seed=derive(scenario.seed, scenario.name, "constructed", number)
            )
        domains.append(Domain(name, inputs[rows], labels[rows], *split))
    return replace(scenario, sources=tuple(domains), notes=(*scenario.notes, found.note))
