"""wm811k: labelled wafer maps of a real fab, divided into ranges of production lots."""

import zipfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from ..data.downloads.inert_pickle import read_inert
from ..data.downloads.prepared import Prepared
from ..errors import FarshoreError
from .extended import Extended, repeated
from .image import ImageBenchmark

PATTERNS = (
    *("Center", "Donut", "Edge-Loc", "Edge-Ring", "Loc", "Near-full", "Random", "Scratch", "none"),
)
LOTS = tuple(f"lots-{number}" for number in range(1, 6))
SIDE = 48
PICKLE, ARRAYS, META = "LSWMD.pkl", "maps.npz", "meta.csv.gz"
# 0 background, 1 good, 2 faulty as bytes: 0, 0.5 and 1 times 255. 128 / 255 is 0.502, the byte
# nearest to one half.
LEVELS = np.array([0, 128, 255], np.uint8)


# A function that reads a map, class numbers, and the first and last lot per wafer.
Wafers = tuple[Callable[[int], np.ndarray], np.ndarray, np.ndarray, np.ndarray]


class WM811K(ImageBenchmark):
    """Contiguous ranges of production lots of about equal size: four sources and the target.

    No lot is in two domains: the cuts are between lots. The paper states only that wafers are
    grouped by lots. Maps are resized to 48x48 by the nearest die, so that they keep their three
    values, and normalised by ImageNet's statistics.
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
    by_hand = (
        f"{PICKLE} (2.1 GB) is not in {{raw}}: get it from http://mirlab.org/dataSet/public/ "
        "(MIR-WM811K) or from Kaggle (qingyi/wm811k-wafer-map), put it there"
    )

    def has_files(self, raw: Path) -> bool:
        """Whether the authors' LSWMD.pkl, or its labelled maps as arrays, exist."""
        return (raw / PICKLE).is_file() or ((raw / ARRAYS).is_file() and (raw / META).is_file())

    def build_domains(self, raw: Path, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """Divide the lots, leave out wafers with an ambiguous range, and resize the maps."""
        pickled = (raw / PICKLE).is_file()
        maps, labels, first, last = _read_pickle(raw / PICKLE) if pickled else _read_arrays(raw)
        cuts = cut_lots(first, last)
        range_number = np.searchsorted(cuts, first, side="right")
        known = range_number == np.searchsorted(cuts, last, side="right")
        self.about |= {"wafers": len(labels), "left_out": int((~known).sum()), "whole": pickled}
        self.about["lots"] = {
            name: [int(first[rows].min()), int(last[rows].max())]
            for name, rows in _ranges(range_number, known)
        }
        for name, rows in _ranges(range_number, known):
            yield name, np.stack([resize(maps(row)) for row in rows])[:, None], labels[rows]

    def notes(self, prepared: Prepared) -> tuple[str, ...]:
        """Report what was left out, and whether a part of the data set was used."""
        notes, about = [], prepared.about
        if about["left_out"]:
            notes.append(
                f"{about['left_out']} of {about['wafers']} wafers were left out: their lot is "
                "known only as a range that spans a cut"
            )
        if not about["whole"]:
            notes.append(f"a part of WM-811K, {_part(about)}")
        return tuple(notes)

    def data_facts(self, seed: int) -> dict[str, str]:
        """Add which part of the data set was used."""
        about = self.open(seed).about
        return super().data_facts(seed) | ({} if about["whole"] else {"part": _part(about)})


def _part(about: Mapping[str, Any]) -> str:
    return f"{about['wafers']} labelled wafers, all with a pattern and some of those without"


class WM811KExtended(Extended, WM811K):
    """wm811k with fifteen sources, for timing; `lots-1-2` is the first range the second time."""

    name = "wm811k-extended"
    summary = "wm811k with 15 source domains by repetition of its four; for timing"
    domains = repeated(LOTS[:-1], LOTS[-1])


def _ranges(range_number: np.ndarray, known: np.ndarray) -> list[tuple[str, np.ndarray]]:
    number = np.where(known, range_number, -1)
    return [(name, np.flatnonzero(number == place)) for place, name in enumerate(LOTS)]


def cut_lots(first: np.ndarray, last: np.ndarray) -> np.ndarray:
    """Return the lot numbers at which ranges start, so that all five have similar sizes.

    `first` and `last` bracket the lot of each wafer. Near each fifth, the lot that splits the
    fewest brackets is chosen.
    """
    starts = np.sort(first)
    cuts = []
    for fifth in range(1, len(LOTS)):
        ideal = len(starts) * fifth // len(LOTS)
        margin = len(starts) // 100
        near = np.unique(starts[max(0, ideal - margin) : ideal + margin + 1])
        split = np.array([int(((first < lot) & (last >= lot)).sum()) for lot in near])
        distance = np.abs(np.searchsorted(starts, near) - ideal)
        cuts.append(int(near[np.lexsort(np.stack([distance, split]))[0]]))
    if len(set(cuts)) < len(cuts):
        raise FarshoreError("the wafers come from too few lots to form five ranges")
    return np.array(cuts)


def resize(wafer: np.ndarray) -> np.ndarray:
    """Resize to 48x48 by the nearest die; values 0, 1, 2 become bytes."""
    rows, columns = (
        ((np.arange(SIDE) + 0.5) * length / SIDE).astype(int) for length in wafer.shape
    )
    return LEVELS[wafer[rows[:, None], columns[None, :]].clip(0, 2)]


def _read_arrays(raw: Path) -> Wafers:
    """Read `flat` values, `offset`, `shape` and `label` of the maps, and the lot brackets."""
    try:
        with np.load(raw / ARRAYS, allow_pickle=False) as loaded:
            arrays = ("flat", "offset", "shape", "label")
            flat, offset, shape, named = (loaded[name] for name in arrays)
        meta = pd.read_csv(raw / META, usecols=["lot_lo", "lot_hi"])
    except (OSError, ValueError, KeyError, zipfile.BadZipFile) as error:
        why = f"{raw / ARRAYS} and {META} cannot be read ({error}): put them there again"
        raise FarshoreError(why) from None

    def read(row: int) -> np.ndarray:
        return flat[offset[row] : offset[row + 1]].reshape(shape[row])

    return read, _numbers(named), meta["lot_lo"].to_numpy(), meta["lot_hi"].to_numpy()


def _read_pickle(path: Path) -> Wafers:
    """Read the authors' table: `waferMap`, `lotName` and `failureType`, empty if unlabelled."""
    table = read_inert(path)
    missing = [name for name in ("waferMap", "lotName", "failureType") if name not in table]
    if missing:
        raise FarshoreError(f"{path} has no column {missing[0]!r}: it is not the published file")
    named = [_first_text(label) for label in table["failureType"]]
    rows = np.flatnonzero([label != "" for label in named])
    lots = np.array([_lot_number(path, lot) for lot in table["lotName"][rows]])
    order = np.argsort(lots, kind="stable")
    rows, lots = rows[order], lots[order]
    maps = table["waferMap"]
    labels = _numbers(np.array([named[row] for row in rows]))
    return lambda row: _check_map(path, maps[rows[row]]), labels, lots, lots


def _first_text(label: object) -> str:
    """The pattern in a cell, which is a text or an array with at most one; empty if unlabelled."""
    if not isinstance(label, np.ndarray):
        return "" if label is None else str(label)
    return str(label.flat[0]) if label.size else ""


def _lot_number(path: Path, lot: object) -> int:
    number = str(lot).removeprefix("lot")
    if not number.isdecimal() or len(number) > 9:
        raise FarshoreError(
            f"{path} has the lot {str(lot)[:40]!r}: it is not the published file, which numbers "
            "its lots lot1, lot2, ..."
        )
    return int(number)


def _check_map(path: Path, wafer: object) -> np.ndarray:
    if not isinstance(wafer, np.ndarray) or wafer.dtype.kind not in "iu" or wafer.ndim != 2:
        raise FarshoreError(f"{path} has a wafer map that is not a grid of numbers: get it again")
    if wafer.size == 0:
        raise FarshoreError(f"{path} has an empty wafer map: get it again")
    return wafer


def _numbers(names: np.ndarray) -> np.ndarray:
    known = {pattern.lower(): number for number, pattern in enumerate(PATTERNS)}
    wrong = sorted(name for name in set(map(str, names)) if name.lower() not in known)
    if wrong:
        why = f"{wrong[0]!r} is not a failure pattern of WM-811K: {', '.join(PATTERNS)}"
        raise FarshoreError(why)
    return np.array([known[str(name).lower()] for name in names], np.uint8)
