"""Small tables whose label is a number, for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import farshore
from farshore.runs.result import Result

SITES = ("a", "b", "c", "d")


def table(rows: int = 30, *, noise: bool = False, sites: tuple[str, ...] = SITES) -> pd.DataFrame:
    """y = 20 x - 10 z + a little noise; with `noise`, the last site's rows say nothing."""
    rng, other = np.random.default_rng(0), np.random.default_rng(1)
    parts = []
    for number, site in enumerate(sites):
        x, z, e = rng.normal(0.3 * number, 1, rows), rng.normal(size=rows), rng.normal(size=rows)
        part = pd.DataFrame({"site": site, "x": x, "z": z, "y": 500 + 20 * x - 10 * z + e})
        part["y2"] = 0.01 * x + 0.001 * e
        if noise and number == len(sites) - 1:
            for column in ("x", "z", "y", "y2"):
                part[column] = other.normal(9, 100, rows)
        parts.append(part)
    return pd.concat(parts, ignore_index=True)


def executed(folder: Path, frame: pd.DataFrame, method: str, **further: Any) -> Result:
    """The result of a short run on this table, with site d as the target."""
    folder.mkdir(parents=True, exist_ok=True)
    frame.to_csv(folder / "t.csv", index=False)
    options = {"path": str(folder / "t.csv"), "domain": "site", "label": "y", "drop": "y2"}
    options |= further.pop("options", {})
    kept = {name: further.pop(name) for name in ("resume", "save_model") if name in further}
    usual = {"target": "d", "steps": 20, "memory": 40}
    values = {**usual, **further}
    run = farshore.Run.build(benchmark="table", options=options, method=method, **values)
    return farshore.execute(run, **kept)
