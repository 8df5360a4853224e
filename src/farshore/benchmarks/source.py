"""Where a scenario comes from: a benchmark by name or the user's own data, with its domains
named or hidden.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor

from ..data.boundaries import By, construct, join_small
from ..data.corruptions.corrupt import check_severity
from ..data.domain import Domain
from ..data.own import OwnData, Preprocess
from ..data.scenario import Scenario
from ..data.splits import divide_rows
from ..errors import FarshoreError
from ..randomness import derive
from . import BENCHMARKS
from .benchmark import Benchmark
from .corrupted import CorruptedImages
from .image import ImageBenchmark
from .own import own_scenario


def make_scenario(
    benchmark: str,
    *,
    data: OwnData | None = None,
    target: str | None = None,
    order: Sequence[str] | None = None,
    left_out: Sequence[str] = (),
    seed: int = 0,
    preprocess: Preprocess | None = None,
    domain_by: By | None = None,
    domains: int | None = None,
    severity: int | None = None,
    weights: str | None = None,
) -> Scenario:
    """The scenario that these settings describe. `domain_by` hides the domain labels and constructs
    others.

    Domains that are `left_out` are never made: not even scales are learned from them.
    """
    if domains is not None and domain_by is None:
        raise FarshoreError("--domains says how many to construct: it needs --domain auto")
    if data is not None:
        if severity is not None or weights is not None:
            raise FarshoreError(
                "--severity and --weights are for the image benchmarks, not for your own data"
            )
        if left_out:
            raise FarshoreError(
                "left_out is for benchmarks: leave the domain out of your own data before the run"
            )
        return own_scenario(
            data,
            target=target,
            order=order,
            seed=seed,
            preprocess=preprocess,
            domain_by=domain_by,
            count=domains,
        )
    made = BENCHMARKS.get(benchmark)()
    if preprocess is not None:
        if not hasattr(made, "preprocess"):
            raise FarshoreError(
                f"--preprocess is for covertype and for your own tables: {benchmark} has its own "
                "preprocessing"
            )
        made.preprocess = preprocess
    if severity is not None:
        with_severity(made, severity)
    if weights is not None:
        if not isinstance(made, ImageBenchmark):
            raise FarshoreError(f"--weights is for resnet18: {benchmark} uses {made.network}")
        made.weights = weights
    if domain_by == "time":
        raise FarshoreError(
            f"--domain-by time needs a column of time, which {benchmark} has not: use drift, "
            "blocks or cluster"
        )
    scenario = made.scenario(target=target, order=order, seed=seed, left_out=left_out)
    return hide_domains(scenario, domain_by, domains) if domain_by is not None else scenario


def with_severity(made: Benchmark, severity: int) -> None:
    """Let a benchmark of corruptions use this severity; others are refused."""
    if not isinstance(made, CorruptedImages):
        raise FarshoreError(
            "--severity is for benchmarks of corruptions (cifar10-c, tinyimagenet-c): "
            f"{made.name} has none"
        )
    made.severity = check_severity(severity)


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
