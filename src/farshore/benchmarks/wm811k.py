"""wm811k: labelled wafer maps of a real fab, cut into ranges of production lots."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ..data.domain import Domain
from ..data.inert_pickle import read_inert
from ..errors import FarshoreError
from ..randomness import derive
from .extended import ExtendedImages, repeated
from .image import ImageBenchmark

PATTERNS = (
    "Center",
    "Donut",
    "Edge-Loc",
    "Edge-Ring",
    "Loc",
    "Near-full",
    "Random",
    "Scratch",
    "none",
)
LOTS = tuple(f"lots-{number}" for number in range(1, 6))
SIDE = 48
PICKLE, ARRAYS, META = "LSWMD.pkl", "maps.npz", "meta.csv.gz"
# 0 background, 1 good, 2 faulty, divided by 2: in bytes of 255. 128 / 255 is 0.502, the nearest
# byte to one half.
LEVELS = np.array([0, 128, 255], np.uint8)


class WM811K(ImageBenchmark):
    """Contiguous ranges of production lots, about equally many labelled wafers each: four sources
    and the target.

    No lot stands in two domains, so the cuts lie between lots. The paper says no more than that
    lots group the wafers. Maps are brought to 48x48 by the nearest die, so that they keep their
    three values, and normalised by ImageNet's statistics.
    """

    name = "wm811k"
    summary = (
        "labelled wafer maps, nine failure patterns, four ranges of production lots -> a fifth"
    )
    reference = (
        "Wu, Jang, Chen, Wafer Map Failure Pattern Recognition ..., IEEE Trans. "
        "Semiconductor Manufacturing 28(1), 2015"
    )
    licence = "Copyright 2015 Jyh-Shing Roger Jang; redistribution allowed with the notice"
    domains: ClassVar[tuple[str, ...]] = LOTS
    default_target = LOTS[-1]
    classes = PATTERNS
    metric = "macro_f1"
    steps = 500
    profile = "large-data"
    raw = "wm811k"
    set_name = "wm811k"
    files = ()

    def has_files(self, raw: Path) -> bool:
        """LSWMD.pkl as its authors give it, or its labelled maps as arrays."""
        return (raw / PICKLE).is_file() or ((raw / ARRAYS).is_file() and (raw / META).is_file())

    def _fetch(self, raw: Path, root: object, bar: object) -> None:
        if not self.has_files(raw):
            raise FarshoreError(
                f"{PICKLE} (2.1 GB) is not in {raw}: get it from "
                "http://mirlab.org/dataSet/public/ (MIR-WM811K) or from "
                "Kaggle (qingyi/wm811k-wafer-map), put it there and type `farshore prepare "
                "wm811k` again"
            )

    def build_domains(self, raw: Path, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """Cut the lots, leave out wafers of which nobody knows the side, resize."""
        maps, labels, first, last = read_wafers(raw)
        cuts = cut_lots(first, last)
        place = np.searchsorted(cuts, first, side="right")
        known = place == np.searchsorted(cuts, last, side="right")
        self.about |= {
            "wafers": len(labels),
            "left_out": int((~known).sum()),
            "whole": (raw / PICKLE).is_file(),
        }
        self.about["lots"] = {
            name: [int(first[rows].min()), int(last[rows].max())]
            for name, rows in _ranges(place, known)
        }
        for name, rows in _ranges(place, known):
            yield name, np.stack([resize(maps(row)) for row in rows])[:, None], labels[rows]

    def make(
        self, sources: Sequence[str], target: str, seed: int
    ) -> tuple[list[Domain], Callable[[], Domain], tuple[str, ...]]:
        """Each range keeps its rows and its division, whatever the order and the target are."""
        prepared = self.open(seed)

        def make_domain(name: str) -> Domain:
            return Domain.divided(
                name, *prepared.read(name), seed=derive(seed, self.set_name, LOTS.index(name))
            )

        notes = []
        about = prepared.about
        if about["left_out"]:
            notes.append(
                f"{about['left_out']} of {about['wafers']} wafers were left out: their lot is "
                "known to a range that spans a cut"
            )
        if not about["whole"]:
            notes.append(f"a part of WM-811K, {_part(about)}")
        return [make_domain(name) for name in sources], lambda: make_domain(target), tuple(notes)

    def data_facts(self, seed: int) -> dict[str, str]:
        """Which part it is, too."""
        about = self.open(seed).about
        return super().data_facts(seed) | ({} if about["whole"] else {"part": _part(about)})


def _part(about: Mapping[str, Any]) -> str:
    return f"{about['wafers']} labelled wafers, all with a pattern and some of those without"


class WM811KExtended(ExtendedImages, WM811K):
    """wm811k with fifteen sources, for timing: `lots-1-2` is the second time that the first
    range comes.
    """

    name = "wm811k-extended"
    summary = "wm811k with 15 source domains by repetition of its four; for timing"
    domains = repeated(LOTS[:-1], LOTS[-1])


def _ranges(place: np.ndarray, known: np.ndarray) -> list[tuple[str, np.ndarray]]:
    return [(name, np.flatnonzero((place == number) & known)) for number, name in enumerate(LOTS)]


def cut_lots(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Lot numbers at which a new range begins, such that all five have about equally many wafers.

    `first` and `last` bracket each wafer's lot. Near each fifth, the lot that splits the fewest
    brackets is taken.
    """
    begins = np.sort(first)
    cuts = []
    for fifth in range(1, len(LOTS)):
        at = len(begins) * fifth // len(LOTS)
        near = np.unique(begins[max(0, at - len(begins) // 100) : at + len(begins) // 100 + 1])
        split = np.array([int(((first < lot) & (last >= lot)).sum()) for lot in near])
        distance = np.abs(np.searchsorted(begins, near) - at)
        cuts.append(int(near[np.lexsort(np.stack([distance, split]))[0]]))
    if len(set(cuts)) < len(cuts):
        raise FarshoreError("the wafers come from too few lots to be cut into five ranges")
    return np.array(cuts)


def resize(wafer: np.ndarray) -> np.ndarray:
    """48x48 by the nearest die, values 0, 1, 2 as bytes."""
    rows, columns = (
        ((np.arange(SIDE) + 0.5) * length / SIDE).astype(int) for length in wafer.shape
    )
    found: np.ndarray = LEVELS[wafer[rows[:, None], columns[None, :]].clip(0, 2)]
    return found


def read_wafers(
    raw: Path,
) -> tuple[Callable[[int], np.ndarray], np.ndarray, np.ndarray, np.ndarray]:
    """The labelled wafers: how a map is read, class numbers, and the first and last lot each may
    come from.
    """
    return _read_pickle(raw / PICKLE) if (raw / PICKLE).is_file() else _read_arrays(raw)


def _read_arrays(
    raw: Path,
) -> tuple[Callable[[int], np.ndarray], np.ndarray, np.ndarray, np.ndarray]:
    """`flat` values with `offset` and `shape` of each map, `label`, and brackets of the lot in
    the table beside.
    """
    try:
        with np.load(raw / ARRAYS, allow_pickle=False) as loaded:
            flat, offset, shape, named = (
                loaded[name] for name in ("flat", "offset", "shape", "label")
            )
        meta = pd.read_csv(raw / META, usecols=["lot_lo", "lot_hi"])
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        raise FarshoreError(
            f"{raw / ARRAYS} and {META} cannot be read ({error}): put them there again"
        ) from None

    def read(row: int) -> np.ndarray:
        wafer: np.ndarray = flat[offset[row] : offset[row + 1]].reshape(shape[row])
        return wafer

    return read, _numbers(named), meta["lot_lo"].to_numpy(), meta["lot_hi"].to_numpy()


def _read_pickle(
    path: Path,
) -> tuple[Callable[[int], np.ndarray], np.ndarray, np.ndarray, np.ndarray]:
    """The authors' table: `waferMap`, `lotName` and `failureType`, which is empty where nobody
    labelled the wafer.
    """
    table = read_inert(path)
    lacking = [name for name in ("waferMap", "lotName", "failureType") if name not in table]
    if lacking:
        raise FarshoreError(f"{path} has no column {lacking[0]!r}: it is not the published file")
    named = [np.asarray(each).reshape(-1) for each in table["failureType"]]
    rows = np.flatnonzero([len(each) > 0 and str(each[0]) != "" for each in named])
    lots = np.array([int(str(lot).removeprefix("lot")) for lot in table["lotName"][rows]])
    order = np.argsort(lots, kind="stable")
    rows, lots = rows[order], lots[order]
    maps = table["waferMap"]
    return (
        lambda row: np.asarray(maps[rows[row]]),
        _numbers(np.array([str(named[row][0]) for row in rows])),
        lots,
        lots,
    )


def _numbers(names: np.ndarray) -> np.ndarray:
    known = {pattern.lower(): number for number, pattern in enumerate(PATTERNS)}
    wrong = sorted(
        {str(name) for name in names} - {name for name in map(str, names) if name.lower() in known}
    )
    if wrong:
        raise FarshoreError(f"{wrong[0]!r} is no failure pattern of WM-811K: {', '.join(PATTERNS)}")
    return np.array([known[str(name).lower()] for name in names], np.uint8)
