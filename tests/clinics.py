"""Made clinics: sites at which a model is nearly always right, and ways in which it fails."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from farshore.deployment.changes import learn
from farshore.deployment.model import Model
from farshore.deployment.new_model import NewModel
from farshore.deployment.site import Columns

INPUTS = ["age", "pressure", "marker", "weight"]
COLUMNS = Columns(label="ill")


def clinic(number: int, rows: int = 150, *, sample: int = 0, drift: float = 0.0) -> pd.DataFrame:
    """Rows of a clinic; another `sample` gives other rows of the same one.

    Each clinic measures a little differently. `drift` moves the two columns that matter.
    """
    offset = np.random.default_rng([number, 1]).normal(0, 0.3, 3)
    draws = np.random.default_rng([number, 2, sample])
    ill = draws.random(rows) < 0.5
    noise = draws.normal(size=(rows, 4))
    return pd.DataFrame(
        {
            "age": (50 + 10 * noise[:, 0] + 3 * offset[0]).round(1),
            "pressure": (120 + 10 * (4 * ill + noise[:, 1] + offset[1] + drift)).round(1),
            "marker": (5 - 3 * ill + noise[:, 2] + offset[2] - drift).round(2),
            "weight": (70 + 12 * noise[:, 3]).round(1),
            "ill": np.where(ill, "yes", "no"),
        }
    )


def failing(number: int) -> dict[str, pd.DataFrame]:
    """The same clinic in ways that a model does not survive."""
    site = clinic(number, sample=1)
    draws = np.random.default_rng(number)
    permuted = site.copy()
    permuted[INPUTS] = site[INPUTS].to_numpy()[:, [2, 0, 3, 1]]
    mixed = site.copy()
    for column in INPUTS:
        mixed[column] = draws.permutation(site[column].to_numpy())
    inwards = site.copy()
    # All rows move to the middle of one group: no value is unusual.
    aside = np.array([0.0, -0.9, 0.9, 0.0]) * site[INPUTS].std()
    middle = site[INPUTS].mean() + aside
    inwards[INPUTS] = middle + 0.15 * (site[INPUTS] - middle) + draws.normal(0, 0.1, (len(site), 4))
    return {
        "drifted": clinic(number, sample=1, drift=3.0),
        "permuted": permuted,
        "each column permuted": mixed,
        "zero": site.assign(**dict.fromkeys(INPUTS, 0.0)),
        "missing": site.assign(**dict.fromkeys(INPUTS, np.nan)),
        "shifted inwards": inwards,
    }


def make_model(
    folder: Path, sites: int, method: str = "er", steps: int = 40, seed: int = 0
) -> Path:
    """A model of the first clinics in `folder`/model."""
    for number in range(sites):
        path = folder / f"clinic{number}.csv"
        clinic(100 * seed + number).to_csv(path, index=False)
        new = NewModel(
            method=method,
            memory=150,
            settings={"learning_rate": 0.01},
            network_settings={"width": 16},
            seed=seed,
        )
        learn(
            folder / "model", path, name=f"clinic {number}", columns=COLUMNS, new=new, steps=steps
        )
    return folder / "model"


def written(folder: Path, frame: pd.DataFrame, name: str = "new.csv") -> Path:
    """Write a table of rows into `folder`."""
    frame.to_csv(folder / name, index=False)
    return folder / name


def contents(model: Path) -> dict[str, bytes]:
    """All files of a saved model by name."""
    return {path.name: path.read_bytes() for path in model.rglob("*") if path.is_file()}


def accuracy(model: Model, data: Path) -> float:
    """How often the model is right about the rows of a file."""
    logits, labels = model.outputs(model.read(data, labelled=True))
    return float((logits.argmax(dim=1) == labels).float().mean())
