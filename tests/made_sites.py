"""Made tables of sites with a known answer: what a model scores at a site that it never saw."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd


@dataclass(frozen=True)
class Made:
    """How sites are made.

    Inputs of a site are normal around a mean of its own, about `shift` away from 0. A row is ill if
    its inputs, weighed by a line that each site tilts by `tilt`, plus noise are above 0. `tail`
    makes the tilts of some sites larger than normal ones would be.
    """

    sites: int = 8
    rows: int = 250
    columns: int = 5
    shift: float = 0.5
    tilt: float = 0.2
    noise: float = 0.7
    tail: bool = False


def make_sites(made: Made, seed: int) -> pd.DataFrame:
    """A table with the columns x0, x1, ..., site and ill.

    The last site is drawn like all others. It is the new one.
    """
    draws = np.random.default_rng([seed, made.sites, made.rows])
    line = draws.normal(size=made.columns)
    line /= np.linalg.norm(line)
    frames = []
    for number in range(made.sites + 1):
        centre = made.shift * draws.normal(size=made.columns)
        size = made.tilt * (draws.standard_t(4) if made.tail else 1.0)
        tilted = line + size * draws.normal(size=made.columns) / np.sqrt(made.columns)
        inputs = centre + draws.normal(size=(made.rows, made.columns))
        ill = inputs @ tilted + made.noise * draws.normal(size=made.rows) > 0
        frame = pd.DataFrame(inputs.round(4), columns=[f"x{k}" for k in range(made.columns)])
        frames.append(frame.assign(site=f"s{number}", ill=np.where(ill, "yes", "no")))
    return pd.concat(frames, ignore_index=True)


def without_new(table: pd.DataFrame) -> pd.DataFrame:
    """The table without its last site."""
    return table[table["site"] != table["site"].iloc[-1]]
