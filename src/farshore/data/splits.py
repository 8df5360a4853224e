"""Training and validation rows that respect time and groups.

Time: the latest rows of a domain are its validation rows, so that no training row is later than a
validation row. Groups (patients, lots): all rows of a group are on the same side of the split in
every domain, so a group that was trained on in an earlier domain is trained on in later ones too.
With both, whole groups are held out for validation, the groups that started latest first.
"""

from collections.abc import MutableMapping

import numpy as np
import torch
from torch import Tensor

from ..base.randomness import derive, generator
from ..errors import FarshoreError

SHARE = 0.2


def split_seed(seed: int, domain: str) -> int:
    """The seed that divides a domain's rows, from its name: the order of domains has no say."""
    return derive(seed, "own data", domain)


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
    """Training and validation row numbers; `sides` records the side of each group, in place."""
    held_out = min(max(1, round(share * rows)), rows - 1)
    if groups is not None:
        mask = _by_group(name, groups, held_out, seed, times, {} if sides is None else sides)
    else:
        if times is not None:
            order = np.argsort(times, kind="stable")[::-1]
        else:
            order = torch.randperm(rows, generator=generator(seed, "split")).numpy()
        mask = np.zeros(rows, dtype=bool)
        mask[order[:held_out]] = True
    return torch.from_numpy(np.flatnonzero(~mask)), torch.from_numpy(np.flatnonzero(mask))


def _by_group(
    name: str,
    groups: np.ndarray,
    held_out: int,
    seed: int,
    times: np.ndarray | None,
    sides: MutableMapping[str, bool],
) -> np.ndarray:
    names, number = np.unique(groups, return_inverse=True)
    sizes = np.bincount(number)
    if times is not None:
        start = np.full(len(names), np.inf)
        np.minimum.at(start, number, times)
        order = np.argsort(-start, kind="stable")
    else:
        order = torch.randperm(len(names), generator=generator(seed, "split")).numpy()
    validation = sum(int(sizes[k]) for k, name in enumerate(names) if sides.get(name, False))
    new_groups = [group for group in order if names[group] not in sides]
    for group in new_groups:
        # The last group goes to the side that brings the count nearer to `held_out`.
        fits = validation + int(sizes[group]) / 2 <= held_out
        if fits or (validation == 0 and group == new_groups[-1] and len(names) > 1):
            sides[names[group]] = True
            validation += int(sizes[group])
        else:
            sides[names[group]] = False
    mask: np.ndarray = np.array([sides[group_name] for group_name in names])[number]
    if mask.all() or not mask.any():
        raise FarshoreError(
            f"domain {name!r} cannot be divided by group: its {len(names)} groups are all on one "
            "side; it needs at least 2 groups that no earlier domain has, or leave out --group"
        )
    return mask
