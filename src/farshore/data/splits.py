"""Training and validation rows that respect time and groups.

Time: the latest rows of a domain are its validation rows, so that nothing is learned from after
what is validated. Groups (patients, lots): all rows of a group stand on one side, in every domain:
a group that trained in an earlier domain trains in a later one too. With both, whole groups go to
validation, those that began latest first.
"""

from __future__ import annotations

from collections.abc import MutableMapping

import numpy as np
import torch
from torch import Tensor

from ..errors import FarshoreError
from ..randomness import generator

SHARE = 0.2


def divide_rows(
    name: str,
    rows: int,
    *,
    seed: int,
    times: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    sides: MutableMapping[str, bool] | None = None,
    share: float = SHARE,
) -> tuple[Tensor, Tensor]:
    """Training and validation row numbers. `sides` remembers which groups are held out, from
    domain to domain.
    """
    held = min(max(1, round(share * rows)), rows - 1)
    if groups is not None:
        mask = _by_group(name, groups, held, seed, times, {} if sides is None else sides)
    else:
        if times is not None:
            order = np.argsort(times, kind="stable")[::-1]
        else:
            order = torch.randperm(rows, generator=generator(seed, "split")).numpy()
        mask = np.zeros(rows, dtype=bool)
        mask[order[:held]] = True
    return torch.from_numpy(np.flatnonzero(~mask)), torch.from_numpy(np.flatnonzero(mask))


def _by_group(
    name: str,
    groups: np.ndarray,
    held: int,
    seed: int,
    times: np.ndarray | None,
    sides: MutableMapping[str, bool],
) -> np.ndarray:
    names, number = np.unique(groups, return_inverse=True)
    sizes = np.bincount(number)
    if times is not None:
        began = np.full(len(names), np.inf)
        np.minimum.at(began, number, times)
        order = np.argsort(-began, kind="stable")
    else:
        order = torch.randperm(len(names), generator=generator(seed, "split")).numpy()
    validation = sum(
        int(sizes[place]) for place, group in enumerate(names) if sides.get(group, False)
    )
    fresh = [place for place in order if names[place] not in sides]
    for place in fresh:
        hold = validation + int(sizes[place]) / 2 <= held  # the last group goes to the nearer side
        if hold or (validation == 0 and place == fresh[-1] and len(names) > 1):
            sides[names[place]] = True
            validation += int(sizes[place])
        else:
            sides[names[place]] = False
    mask: np.ndarray = np.array([sides[group] for group in names])[number]
    if mask.all() or not mask.any():
        raise FarshoreError(
            f"domain {name!r} cannot be divided by group: its {len(names)} groups all stand on "
            "one side; "
            "it needs at least 2 that no earlier domain has, or leave out --group"
        )
    return mask
