"""heart-hospitals: heart disease at four hospitals, 920 patients. Shipped with the package."""

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from importlib.resources import files

import numpy as np
import pandas as pd
import torch

from ..base.randomness import derive
from ..data.domain import Domain
from ..data.tables.table import TablePreprocessing
from .benchmark import Benchmark, Made

NUMBERS = ("age", "sex", "trestbps", "chol", "fbs", "thalach", "exang", "oldpeak", "ca")
# Codes from the data set's description: all categories are known, even if the first hospital does
# not record a column.
CATEGORIES = {"cp": "1234", "restecg": "012", "slope": "123", "thal": "367"}


class HeartHospitals(Benchmark):
    """UCI Heart Disease: 13 measurements of 920 patients; a narrowed vessel (num > 0) or not.

    Hospitals differ in their patients (36% to 93% diseased) and in what they measure: `ca` is
    missing for 99% of the patients outside Cleveland, and Switzerland recorded cholesterol as 0. A
    zero in `chol` or `trestbps` is read as missing.
    """

    name = "heart-hospitals"
    summary = (
        "920 patients of four hospitals, 13 measurements with missing values, heart disease or not"
    )
    reference = (
        "Janosi, Steinbrunn, Pfisterer, Detrano, Heart Disease, UCI 1989, doi:10.24432/C52P4X"
    )
    licence = "CC BY 4.0"
    domains = ("cleveland", "hungarian", "switzerland", "va")
    default_target = "va"
    classes = ("healthy", "diseased")
    network = "mlp"
    stand_in = "heart-hospitals"
    network_settings = {"width": 64}
    steps = 100
    memory = 100
    settings = {"batch_size": 32}

    def make(self, sources: Sequence[str], target: str, seed: int) -> Made:
        """Make the hospitals; each column is fitted to the first source that records it."""
        frame = _read_once()
        preprocessing = self.preprocessing = TablePreprocessing(
            NUMBERS, {column: list(codes) for column, codes in CATEGORIES.items()}
        )

        def make_domain(name: str, learn: bool) -> Domain:
            rows = frame[frame["hospital"] == name].reset_index(drop=True)
            labels = torch.from_numpy((rows["num"] > 0).to_numpy(dtype=np.int64))
            own = derive(seed, self.name, self.domains.index(name))
            blank = Domain.divided(name, torch.zeros(len(rows), 1), labels, seed=own)
            if learn:
                preprocessing.learn(rows.iloc[blank.train.numpy()])
            return replace(blank, inputs=preprocessing.transform(rows))

        return [make_domain(name, True) for name in sources], lambda: make_domain(target, False), ()


def patients() -> pd.DataFrame:
    """The embedded table as somebody might have it: texts as they are, and the classes yes and no.

    Missing values are written as `?`.
    """
    with (files("farshore.benchmarks") / "files" / "heart.csv").open("rb") as file:
        frame = pd.read_csv(file)
    frame["disease"] = (frame.pop("num") > 0).map({True: "yes", False: "no"})
    return frame


def read_heart() -> pd.DataFrame:
    """Read the embedded table, with category codes as strings and impossible zeros as missing."""
    with (files("farshore.benchmarks") / "files" / "heart.csv").open("rb") as file:
        frame = pd.read_csv(file, na_values="?")
    for column in ("chol", "trestbps"):
        frame[column] = frame[column].where(frame[column] != 0)
    for column in CATEGORIES:
        frame[column] = frame[column].map(lambda code: None if pd.isna(code) else str(int(code)))
    return frame


# Runs share the table, and do not change it.
_read_once = cache(read_heart)
