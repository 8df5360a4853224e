"""Small files in the official layouts of the image data sets."""

from __future__ import annotations

import csv
import pickle
import sys
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from PIL import Image

from farshore.benchmarks import corrupted
from farshore.benchmarks.camelyon17 import FOLDER
from farshore.benchmarks.wm811k import PATTERNS
from farshore.data.corruptions import corrupt
from farshore.data.downloads.public_files import PublicFile, checksum


def use_made_frost(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write random photographs to ROOT/frost, because the real ones are not shipped."""
    files = []
    (root / "frost").mkdir()
    for number in range(5):
        path = root / "frost" / f"f{number}.png"
        pixels = np.random.default_rng(number).integers(90, 255, (240, 300, 3)).astype(np.uint8)
        Image.fromarray(pixels).save(path)
        files.append(PublicFile(path.name, (), checksum(path), path.stat().st_size))
    for module in (corrupt, corrupted):
        monkeypatch.setattr(module, "FROST", tuple(files))


def write_tiny_imagenet(root: Path, classes: int = 3, images: int = 5) -> None:
    """Write an unpacked ROOT/tinyimagenet/tiny-imagenet-200.

    Each class has `images` training images and as many validation images.
    """
    top = root / "tinyimagenet" / "tiny-imagenet-200"
    rng = np.random.default_rng(0)
    names = [f"n{number:08d}" for number in range(classes)]
    (top / "val" / "images").mkdir(parents=True)
    (top / "wnids.txt").write_text("\n".join(reversed(names)))
    annotations = []
    for number in range(classes * images):
        name = names[number % classes]
        (top / "train" / name / "images").mkdir(parents=True, exist_ok=True)
        for path in (
            top / "train" / name / "images" / f"{name}_{number}.JPEG",
            top / "val" / "images" / f"val_{number}.JPEG",
        ):
            Image.fromarray(rng.integers(0, 256, (64, 64, 3)).astype(np.uint8)).save(path)
        annotations.append(f"val_{number}.JPEG\t{name}\t0\t0\t63\t63\n")
    (top / "val" / "val_annotations.txt").write_text("".join(annotations))


def wafers(rows: int = 60) -> pd.DataFrame:
    rng = np.random.default_rng(0)
    maps = np.empty(rows, dtype=object)
    kinds = np.empty(rows, dtype=object)
    for row in range(rows):
        maps[row] = rng.integers(0, 3, (20 + row % 3, 25)).astype(np.uint8)
        kinds[row] = np.array([[PATTERNS[row % 9]]]) if row % 4 else np.empty((0, 0))
    lots = np.array([f"lot{row // 3 + 1}" for row in range(rows)], dtype=object)
    parts = {
        "waferMap": maps,
        "dieSize": np.arange(rows, dtype=float),
        "lotName": lots,
        "failureType": kinds,
    }
    table = pd.DataFrame({name: pd.Series(part, dtype=part.dtype) for name, part in parts.items()})
    table.columns = pd.Index(list(parts), dtype=object)
    return table


def old_pickle(table: pd.DataFrame) -> bytes:
    """The table in the form of pandas before 0.25: records of modules that today's pandas no
    longer has.
    """

    class Old:
        def __init__(self, state=None, args=()):  # type: ignore[no-untyped-def]
            self.state, self.args = state, args

        def __reduce__(self):  # type: ignore[no-untyped-def]
            return type(self), self.args, self.state

    places = {
        "DataFrame": "pandas.core.frame_",
        "BlockManager": "pandas.core.internals_",
        "_new_Index": "pandas.indexes.base",
    }
    kinds = {}
    for name, module in places.items():
        kinds[name] = type(name, (Old,), {"__module__": module, "__qualname__": name})
        sys.modules.setdefault(module, types.ModuleType(module))
        setattr(sys.modules[module], name, kinds[name])
    objects = [name for name in table.columns if table[name].dtype == object]
    values = np.empty((len(objects), len(table)), dtype=object)
    for row, name in enumerate(objects):
        values[row] = table[name].to_numpy()
    where = [list(table.columns).index(name) for name in objects]
    other = [column for column in range(len(table.columns)) if column not in where]
    numbers = np.stack([table.iloc[:, column].to_numpy() for column in other])
    names = np.array(list(table.columns), dtype=object)
    axes = [kinds["_new_Index"](args=("Index", {"data": names, "name": None}))]
    blocks = [
        {"values": values, "mgr_locs": np.array(where)},
        {"values": numbers, "mgr_locs": slice(other[0], other[0] + 1, 1)},
    ]
    manager = kinds["BlockManager"](
        state=(axes, [], [], {"0.14.1": {"axes": axes, "blocks": blocks}})
    )
    frame = kinds["DataFrame"](state={"_data": manager, "_typ": "dataframe"})
    try:
        return pickle.dumps(frame, protocol=2)
    finally:
        for module in places.values():
            sys.modules.pop(module, None)


def write_wafer_arrays(root: Path, rows: int = 60) -> None:
    """Write ROOT/wm811k as arrays: concatenated maps, and the range of lots of each map."""
    folder = root / "wm811k"
    folder.mkdir()
    rng = np.random.default_rng(0)
    shapes = np.stack([20 + np.arange(rows) % 3, np.full(rows, 25)], axis=1)
    sizes = shapes.prod(axis=1)
    np.savez(
        folder / "maps.npz",
        flat=rng.integers(0, 3, sizes.sum()).astype(np.uint8),
        offset=np.concatenate([[0], sizes.cumsum()]),
        shape=shapes,
        label=np.array(PATTERNS)[np.arange(rows) % 9],
    )
    lots = np.arange(rows) // 3 + 1
    pd.DataFrame({"lot_lo": lots, "lot_hi": lots + (np.arange(rows) % 7 == 0)}).to_csv(
        folder / "meta.csv.gz", index=False
    )


def write_hospitals(root: Path) -> None:
    """Write ROOT/camelyon17 in the WILDS layout: 12 patches per hospital, two in split 1."""
    folder = root / "camelyon17" / FOLDER
    rng = np.random.default_rng(0)
    rows = []
    for center in range(5):
        for number in range(12):
            patient, node, x, y = f"{center * 20 + 4:03d}", center % 4, 32 * number, 64
            slide = f"patient_{patient}_node_{node}"
            (folder / "patches" / slide).mkdir(parents=True, exist_ok=True)
            pixels = rng.integers(0, 256, (96, 96, 3)).astype(np.uint8)
            pixels[0, 0] = center, number, 0
            Image.fromarray(pixels).save(
                folder / "patches" / slide / f"patch_{slide}_x_{x}_y_{y}.png"
            )
            rows.append(
                [len(rows), patient, node, x, y, number % 2, center * 10, center, int(number < 2)]
            )
    with open(folder / "metadata.csv", "w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(
            ["", "patient", "node", "x_coord", "y_coord", "tumor", "slide", "center", "split"]
        )
        writer.writerows(rows)
