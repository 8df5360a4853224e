"""Hidden domains: all source rows as one stream, divided into domains without labels."""

from dataclasses import replace

import numpy as np
import torch

from ...base.randomness import derive
from ...data.domain import Domain, as_tensor
from ...data.scenario import Scenario
from ...data.splits import divide_rows
from .boundaries import By, construct, join_small


def hide_domains(scenario: Scenario, by: By, count: int | None = None) -> Scenario:
    """Join the sources into one stream and divide it into domains found without labels.

    Rows stay on their side of the split, so that scores with true and constructed boundaries differ
    only because of the boundaries.
    """
    inputs = torch.cat([as_tensor(domain.inputs) for domain in scenario.sources])
    labels = torch.cat([domain.labels for domain in scenario.sources])
    masks = [
        torch.zeros(len(domain), dtype=torch.bool).index_fill(0, domain.validation, True)
        for domain in scenario.sources
    ]
    held_out = torch.cat(masks)
    constructed = join_small(construct(inputs, by, count=count, seed=scenario.seed), labels.numpy())
    domains = []
    for number, name in enumerate(constructed.names):
        rows = torch.from_numpy(np.flatnonzero(constructed.domain == number))
        split = (~held_out[rows]).nonzero()[:, 0], held_out[rows].nonzero()[:, 0]
        if min(map(len, split)) == 0:
            own = derive(scenario.seed, scenario.name, "constructed", number)
            split = divide_rows(name, len(rows), seed=own)
        domains.append(Domain(name, inputs[rows], labels[rows], *split))
    return replace(scenario, sources=tuple(domains), notes=(*scenario.notes, constructed.note))
