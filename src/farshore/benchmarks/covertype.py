"""covertype: forest cover in four wilderness areas of Colorado, 65,386 balanced rows."""

import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import replace
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import numpy as np
import pandas as pd
import torch
from pydantic import Field

from ..base.randomness import derive, generator
from ..data.domain import Domain
from ..data.downloads.archives import read_gzip, unpack
from ..data.downloads.public_files import Bar, PublicFile, check
from ..data.tables.table import TablePreprocessing
from ..errors import FarshoreError
from .benchmark import Made
from .options import BenchmarkOptions, FittedTo
from .prepared import PreparedBenchmark

AREAS = ("rawah", "neota", "comanche", "cache-la-poudre")
# Published number of rows per class: checks that the file was read correctly, in any format.
PUBLISHED = (211_840, 283_301, 35_754, 2_747, 9_493, 17_367, 20_510)
MEASURED = (
    *("elevation", "aspect", "slope", "water_horizontal", "water_vertical", "roads", "shade_9am"),
    *("shade_noon", "shade_3pm", "fire_points"),
)
FEATURES = (*MEASURED, *(f"soil_{number}" for number in range(1, 41)))
LARGEST = 200_000_000
# By cover type 1..7: the number of the class; type 4 (cottonwood and willow) is dropped.
CLASS_NUMBERS = np.array([-1, 0, 1, 2, -1, 3, 4, 5])


class CovertypeOptions(BenchmarkOptions):
    """By default scales stem from the first source: no later domain influences an earlier one."""

    preprocess: FittedTo = Field(
        "first", description="learn scales on the first source, or on all-sources (not continual)"
    )


class Covertype(PreparedBenchmark):
    """UCI Covertype by wilderness area: 50 features, 6 classes, each area balanced.

    Each area is reduced to the size of its rarest class; the scenario seed selects the rows. Class
    4 and the four wilderness columns are dropped. Areas share few classes (Neota and Cache la
    Poudre have three), which makes this a hard shift. 80% of the rows are training rows; rounding
    errors carry over from area to area in the listed order, which gives the paper's 45,046 training
    rows in its three sources.
    """

    name = "covertype"
    summary = "65,386 forest patches in four wilderness areas, 50 features, 6 cover types"
    reference = (
        "Blackard and Dean, Computers and Electronics in Agriculture 24, 1999, doi:10.24432/C50K5N"
    )
    licence = "CC BY 4.0"
    Options: ClassVar[type[BenchmarkOptions]] = CovertypeOptions
    options: CovertypeOptions
    features: ClassVar[tuple[str, ...]] = FEATURES
    domains: ClassVar[tuple[str, ...]] = AREAS
    default_target = "cache-la-poudre"
    classes = (
        *("spruce-fir", "lodgepole-pine", "ponderosa-pine", "aspen", "douglas-fir", "krummholz"),
    )
    network = "mlp"
    stand_in = "heart-hospitals"
    steps = 500
    memory = 1000
    raw = "covertype"
    set_name = "covertype"
    files = (
        PublicFile(
            "covtype.data.gz",
            (
                "https://archive.ics.uci.edu/ml/machine-learning-databases/covtype/covtype.data.gz",
                "https://ndownloader.figshare.com/files/5976039",
            ),
            "614360d0257557dd1792834a85a1cdebfadc3c4f30b011d56afee7ffb5b15771",
            11_240_707,
        ),
    )

    def has_files(self, raw: Path) -> bool:
        """Whether the official file, UCI's archive of it, or its rows as covtype.npz exist."""
        others = (raw / name for name in ("covertype.zip", "covtype.npz"))
        return super().has_files(raw) or any(map(Path.is_file, others))

    def _fetch(self, raw: Path, root: str | Path | None, bar: Bar | None) -> None:
        if not self.has_files(raw):
            super()._fetch(raw, root, bar)

    def build_domains(self, raw: Path, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """Draw the rows of each area; they stay in the order of the official file."""
        table, cover = read_covertype(raw)
        features = np.concatenate([table[:, :10], table[:, 14:]], axis=1)
        number = CLASS_NUMBERS[cover]
        for index, area in enumerate(AREAS):
            rows = np.flatnonzero((table[:, 10 + index] == 1) & (number >= 0))
            draw = generator(seed, self.set_name, "balance", index)
            drawn = rows[self.draw_rows(number[rows], draw)]
            yield area, features[drawn], number[drawn].astype(np.uint8)

    def draw_rows(self, labels: np.ndarray, draw: torch.Generator) -> np.ndarray:
        """Return sorted row numbers of an area that make up its domain."""
        return balance(labels, draw)

    def make(self, sources: Sequence[str], target: str, seed: int) -> Made:
        """Make the domains, scaled by the training rows of the first source or of all sources."""
        prepared = self.open(seed)
        validation = validation_rows(prepared.domains)
        preprocessing = self.preprocessing = TablePreprocessing(self.features, indicators=False)

        def read(name: str) -> tuple[pd.DataFrame, Domain]:
            inputs, labels = prepared.read(name)
            blank = Domain.divided(
                name,
                torch.empty(len(labels), 0),
                labels,
                validation=validation[name],
                seed=derive(seed, self.set_name, self.domains.index(name)),
            )
            return pd.DataFrame(np.asarray(inputs), columns=self.features), blank

        def make_domain(name: str) -> Domain:
            frame, blank = read(name)
            return replace(blank, inputs=preprocessing.transform(frame))

        together = self.options.preprocess == "all-sources"
        learn_from = sources if together else sources[:1]
        parts = [frame.iloc[blank.train.numpy()] for frame, blank in map(read, learn_from)]
        preprocessing.learn(pd.concat(parts))
        note = "preprocessing was learned on all sources at once: not continual"
        notes = (note,) if together else ()
        return [make_domain(name) for name in sources], lambda: make_domain(target), notes


class CovertypeNatural(Covertype):
    """UCI Covertype by wilderness area, natural class frequencies: 50 features, 6 classes.

    Each area has as many rows as in covertype, drawn from all of its rows by the scenario seed, so
    that its classes are about as frequent as in the area: 97% of the rows of Rawah belong to two
    classes. Cover type 4 is dropped here, too. The paper says that it balances the classes; some
    of its scores fit these frequencies better, others worse.
    """

    name = "covertype-natural"
    summary = "65,386 forest patches in four wilderness areas, class frequencies as in the areas"
    set_name = "covertype-natural"

    def draw_rows(self, labels: np.ndarray, draw: torch.Generator) -> np.ndarray:
        """Return sorted row numbers, drawn from all rows, as many as in the balanced area."""
        counts = np.unique(labels, return_counts=True)[1]
        order = torch.randperm(len(labels), generator=draw).numpy()
        return np.sort(order[: len(counts) * int(counts.min())])


def balance(labels: np.ndarray, draw: torch.Generator) -> np.ndarray:
    """Return sorted row numbers with as many rows of each class as the rarest class has."""
    return draw_at_most(labels, int(np.unique(labels, return_counts=True)[1].min()), draw)


def draw_at_most(labels: np.ndarray, most: int, draw: torch.Generator) -> np.ndarray:
    """Return sorted row numbers with at most this many rows of each class."""
    chosen = []
    for label in np.unique(labels):
        rows = np.flatnonzero(labels == label)
        chosen.append(rows[torch.randperm(len(rows), generator=draw)[:most].numpy()])
    return np.sort(np.concatenate(chosen))


def validation_rows(rows: dict[str, int]) -> dict[str, int]:
    """Return the number of validation rows per domain.

    The training rows of the first k domains add up to round(0.8 x their rows), for every k.
    """
    validation, trained = {}, 0
    for name, end in zip(rows, np.cumsum(list(rows.values())), strict=True):
        train = round(0.8 * int(end)) - trained
        validation[name], trained = rows[name] - train, trained + train
    return validation


def read_covertype(raw: Path) -> tuple[np.ndarray, np.ndarray]:
    """Read all rows: 54 columns as int16 in UCI's order, and the cover type 1..7."""
    if (raw / "covtype.data.gz").is_file():
        table = _read_official(check(Covertype.files[0], raw))
    elif (raw / "covertype.zip").is_file():
        table = _read_zip(raw / "covertype.zip")
    else:
        try:
            with np.load(raw / "covtype.npz", allow_pickle=False) as loaded:
                table = np.column_stack([loaded["X"], loaded["y"].astype(np.int16)])
        except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
            why = f"{raw / 'covtype.npz'} cannot be read ({error}): delete it and prepare again"
            raise FarshoreError(why) from None
    whole = table.shape[1] == 55
    counts = tuple(np.bincount(table[:, -1], minlength=8)[1:].tolist()) if whole else ()
    if counts != PUBLISHED:
        raise FarshoreError(
            f"the Covertype file in {raw} has {table.shape} values, not the published 581,012 "
            "rows of 55: delete it and prepare again"
        )
    return table[:, :54], table[:, 54]


def _read_official(path: Path) -> np.ndarray:
    text = read_gzip(path, limit=LARGEST)
    return pd.read_csv(BytesIO(text), header=None, dtype=np.int16).to_numpy()


def _read_zip(path: Path) -> np.ndarray:
    """Read covtype.data.gz from UCI's covertype.zip."""
    with TemporaryDirectory(prefix="farshore-", ignore_cleanup_errors=True) as folder:
        written = unpack(path, Path(folder), limit=LARGEST)
        inner = next((file for file in written if file.name == "covtype.data.gz"), None)
        if inner is None:
            why = f"{path} does not contain covtype.data.gz: delete it and prepare again"
            raise FarshoreError(why)
        return _read_official(check(Covertype.files[0], inner.parent))


# The US Forest Service's ecological land type of each of the 40 soil types, as the data set's
# description (covtype.info) lists them. The first digit is the climatic zone.
LAND_TYPES = (
    *(2702, 2703, 2704, 2705, 2706, 2717, 3501, 3502, 4201, 4703),
    *(4704, 4744, 4758, 5101, 5151, 6101, 6102, 6731, 7101, 7102),
    *(7103, 7201, 7202, 7700, 7701, 7702, 7709, 7710, 7745, 7746),
    *(7755, 7756, 7757, 7790, 8703, 8707, 8708, 8771, 8772, 8776),
)
ZONES = {
    **{2: "lower-montane", 3: "montane-dry", 4: "montane", 5: "montane-dry-and-montane"},
    **{6: "montane-and-subalpine", 7: "subalpine", 8: "alpine"},
}
MOST_ROWS = 1000


class CovertypeZones(Covertype):
    """UCI Covertype by climatic zone: 14 features, 6 classes, seven zones of 284 to 5,113 rows.

    A soil type belongs to one climatic zone: the first digit of its ecological land type. The soil
    types would name the domain, so they are not inputs; the ten measurements and the four
    wilderness areas are. Of each class of a zone at most 1,000 rows are drawn by the scenario seed,
    because the subalpine zone has 70% of all rows. All zones with rows are kept: none has a single
    class. The smallest (montane dry, 284 rows of two classes, and montane dry and montane, 447 of
    two) are small sites as practitioners have them; no soil type is in zone 1. As in covertype,
    cover type 4 is dropped.
    """

    name = "covertype-zones"
    summary = "22,279 forest patches in seven climatic zones, 14 features, 6 cover types"
    features = (*MEASURED, *AREAS)
    domains = tuple(ZONES.values())
    default_target = "alpine"
    set_name = "covertype-zones"

    def build_domains(self, raw: Path, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """Draw the rows of each zone; they stay in the order of the official file."""
        table, cover = read_covertype(raw)
        zone = np.array(LAND_TYPES)[table[:, 14:].argmax(axis=1)] // 1000
        number = CLASS_NUMBERS[cover]
        for digit, name in ZONES.items():
            draws = generator(seed, self.set_name, "rows", digit)
            rows = np.flatnonzero((zone == digit) & (number >= 0))
            drawn = rows[draw_at_most(number[rows], MOST_ROWS, draws)]
            yield name, table[drawn, :14], number[drawn].astype(np.uint8)
