"""elec2: whether the price of electricity rises, in 41 fortnights in chronological order."""

from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path

import numpy as np
import pandas as pd

from ..data.domain import Domain
from ..data.downloads.public_files import PublicFile
from ..data.splits import divide_rows
from ..data.tables.table import TablePreprocessing
from .benchmark import Made
from .natural import InTime, OneFile, digest

COLUMNS = ("Time", *(f"Feat{number}" for number in range(1, 8)), "Y")
FEATURES = (*("day", "period", "nsw_price", "nsw_demand", "vic_price", "vic_demand", "transfer"),)
# Rows of the 41 chunks in DRAIN's code: fortnights of 48 half hours a day, with three rows missing.
ROWS = (670, 672, 672, 672, 671, *(672,) * 36)
# sha256 of all values, row by row, as little-endian 32-bit whole numbers.
VALUES = "ec2246eac9ba3a836deddec84bb49c5161ebcd6d6fe40030a1045727110c9ab7"


class Elec2(InTime, OneFile):
    """Elec2 as DRAIN divides it: 27,549 half hours from May 1997 to December 1998, 41 fortnights.

    The label says whether the price in New South Wales is above its mean of the last 24 hours.
    Inputs are the day of the week, the half hour, price and demand in New South Wales and in
    Victoria, and the transfer between them. A fortnight is predicted from those before it; the last
    20% of each are its validation rows.

    What the source says, and what differs: Bai, Ling, Zhao, "Temporal Domain Generalization with
    Drift-Aware Dynamic Neural Networks", ICLR 2023 (DRAIN), predict the last chunk after the 40
    before it. Their inputs have no transfer, but the date and the number of the row, and are scaled
    by the means of all rows, the last chunk's included. Here neither is an input, and scales are
    learned on the first fortnight alone.
    """

    name = "elec2"
    summary = "27,549 half hours of an electricity market in 41 fortnights, price up or down"
    reference = (
        "Harries, Splice-2 comparative evaluation: electricity pricing, 1999; divided as in Bai, "
        "Ling, Zhao, ICLR 2023 (DRAIN)"
    )
    licence = "none stated by the source; DRAIN's repository is Apache-2.0"
    domains = tuple(str(number) for number in range(len(ROWS)))
    default_target = "40"
    classes = ("down", "up")
    network = "mlp"
    network_settings = {"width": 64}
    stand_in = "heart-hospitals"
    steps = 100
    memory = 1000
    # One replay batch in total: a step costs the same after forty fortnights as after two.
    settings = {"replay_budget": "total"}
    seed_changes_data = False
    raw = "elec2"
    set_name = "elec2"
    files = (
        PublicFile(
            "elec2_clean.csv",
            (
                "https://raw.githubusercontent.com/BaiTheBest/DRAIN/"
                "116d7950f5f9baff26892e12143c6afc90da864b/classification/data/Elec2/elec2_clean.csv",
            ),
            "d239272d4cc83169053a9d97de951086efa7a18852c81b6f39b0100bbdbb952b",
            1_056_102,
        ),
    )
    forms = ("elec2_clean.csv", "elec2.csv.gz", "elec2.csv")

    def build_domains(self, raw: Path, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """Divide the rows, which are in chronological order."""
        table = self.read_table(raw)
        for name, part in zip(self.domains, np.split(table, np.cumsum(ROWS)[:-1]), strict=True):
            yield name, part[:, 1:-1], part[:, -1].astype(np.uint8)

    def read_table(self, raw: Path) -> np.ndarray:
        """Read all rows: the date, seven inputs and the label, as whole numbers."""
        try:
            frame = pd.read_csv(BytesIO(self.read_text(raw)), skipinitialspace=True)
            table = frame[list(COLUMNS)].to_numpy("<i4")
        except (ValueError, KeyError) as error:
            raise self.refused(raw, str(error)) from None
        if digest(table.tobytes()) != VALUES:
            raise self.refused(
                raw, f"its {len(table):,} rows are not the {sum(ROWS):,} of the source"
            )
        return table

    def make(self, sources: Sequence[str], target: str, seed: int) -> Made:
        """Make the fortnights, scaled by the training rows of the first one that is learned."""
        prepared = self.open(seed)
        preprocessing = self.preprocessing = TablePreprocessing(FEATURES, indicators=False)

        def make_domain(name: str) -> Domain:
            inputs, labels = prepared.read(name)
            frame = pd.DataFrame(np.asarray(inputs), columns=FEATURES)
            train, held = divide_rows(name, len(frame), seed=0, times=np.arange(len(frame)))
            if name == sources[0]:
                preprocessing.learn(frame.iloc[train.numpy()])
            return Domain(name, preprocessing.transform(frame), labels, train, held)

        return [make_domain(name) for name in sources], lambda: make_domain(target), ()
