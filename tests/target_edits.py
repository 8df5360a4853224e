"""Random edits of a target domain, in files: none of them may change a trained weight."""

from __future__ import annotations

import csv
import gzip
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st
from PIL import Image

from farshore import Run, execute

COLUMNS = [
    *("site", "count", "weight", "flag", "code", "colour", "patient", "day", "visit", "outcome")
]
TARGET = "3"
# A domain after the target in time, which a run with this target leaves out.
LATER = "later"
TABLE_OPTIONS = {"domain": "site", "label": "outcome", "group": "patient", "time": "day"}
# What a refusal may say: the rest of an edited target must be read, and change nothing.
REFUSED = (
    "is not a number",
    "has no value",
    "have no value",
    "exists only in the target",
    "neither a number nor an ISO date",
    "cannot be read",
    "a point is not allowed",
    "is not an ISO date",
    "all of them in one way",
)
QUICK = {"steps": 1, "memory": 12}
SMALL = {"network_settings": {"width": 8}}
# Ways to train on images: all of a network, or a classifier on features that are computed once.
IMAGE_WAYS: tuple[dict[str, Any], ...] = (
    {"network": "cnn", **SMALL},
    {"network": "cnn", **SMALL, "settings": {"augment": "strong", "micro_batch": 3}},
    {"network": "histogram"},
    {
        "network": "histogram",
        "settings": {"augment": "standard", "augment_copies": 1, "head_width": 4},
    },
)

Row = list[str]


def base_rows() -> list[Row]:
    """Rows of three sites, as text: numbers, gaps, truth values, codes, words, groups and days."""
    rng = np.random.default_rng(0)
    rows = []
    for site in ("1", "2", TARGET):
        for number in range(12):
            sick = number % 2 == 0
            rows.append(
                [
                    site,
                    str(rng.integers(0, 9)),
                    f"{rng.normal(70 + 5 * sick, 2):.4f}" if number % 5 else "",
                    str(bool(rng.random() < 0.5)),
                    str(rng.choice(["01", "1", "X"])),
                    str(rng.choice(["red", "green", "NA"])),
                    f"{site}0{number // 3}",
                    f"2026-0{int(site)}-{number + 1:02d}",
                    f"202{number % 3}-0{int(site)}-{number + 1:02d}" if number % 4 else "",
                    "yes" if sick else "no",
                ]
            )
    return rows


def write_rows(path: Path, rows: list[Row]) -> None:
    """Write a CSV file; a compressed one has semicolons and decimal commas."""
    if path.suffix != ".gz":
        with path.open("w", newline="", encoding="utf-8") as file:
            csv.writer(file).writerows([COLUMNS, *rows])
        return
    numeric = [COLUMNS.index(column) for column in ("count", "weight")]
    with gzip.open(path, "wt", newline="", encoding="utf-16") as file:
        writer = csv.writer(file, delimiter=";")
        writer.writerow(COLUMNS)
        for row in rows:
            cells = enumerate(row)
            writer.writerow([c.replace(".", ",") if i in numeric else c for i, c in cells])


words = st.one_of(
    st.sampled_from(
        ["maybe", "True", "1.0", "01", "3.5", "-7", "1e300", "1e999", "inf", "?", "None", "é,\"'"]
    ),
    st.text(st.characters(codec="utf-8", exclude_characters="\0\r"), max_size=8),
)
numbers = st.one_of(
    st.floats(allow_nan=False).map(repr),
    st.integers(-(10**20), 10**20).map(str),
    st.sampled_from(["", "NA", " 7 ", "+3", ".5", "1E3"]),
)
days = st.dates().map(str)


@st.composite
def edited_tables(draw: st.DrawFn) -> list[Row]:
    """The rows after edits of the target's cells, names, labels, rows and their places."""
    rows = base_rows()
    sources = [row for row in rows if row[0] != TARGET]
    target = [row for row in rows if row[0] == TARGET]
    for _ in range(draw(st.integers(0, 5))):
        row = draw(st.sampled_from(target))
        column = draw(st.sampled_from(COLUMNS[1:]))
        # Mostly cells that fit their column, so that few edits are refused.
        fitting = {"count": numbers, "weight": numbers, "day": days, "visit": days}.get(
            column, words
        )
        if column == "outcome":
            fitting = st.sampled_from(["yes", "no"])
        row[COLUMNS.index(column)] = draw(st.one_of(fitting, fitting, fitting, words))
    name = draw(st.one_of(st.just(TARGET), st.sampled_from(["3.5", "x", "003", "01", "2.5"])))
    for row in target:
        row[0] = name
    target = draw(st.permutations(target))[: draw(st.integers(4, len(target)))]
    target += draw(st.lists(st.sampled_from(target), max_size=3))
    places = draw(
        st.lists(st.integers(0, len(sources)), min_size=len(target), max_size=len(target))
    )
    for place, row in sorted(zip(places, target, strict=True), key=lambda pair: -pair[0]):
        sources.insert(place, row)
    return sources


@st.composite
def later_rows(draw: st.DrawFn) -> list[Row]:
    """Rows of a domain that comes after the target in time, with anything in their cells."""
    rows = [[LATER, *row[1:]] for row in base_rows()[:6]]
    for number, row in enumerate(rows):
        row[COLUMNS.index("day")] = f"2027-01-{number + 1:02d}"
        for _ in range(draw(st.integers(0, 2))):
            column = draw(st.sampled_from([*COLUMNS[1:7], "outcome"]))
            row[COLUMNS.index(column)] = draw(st.one_of(numbers, words))
    return rows


def target_of(rows: list[Row]) -> str:
    """The name of the target in edited rows."""
    return next(row[0] for row in rows if row[0] not in ("1", "2", LATER))


def table_weights(path: Path, rows: list[Row], method: str) -> str:
    """The checksum of the weights trained on these rows, ahead of any adaptation."""
    write_rows(path, rows)
    options = {**TABLE_OPTIONS, "path": str(path)}
    if path.suffix == ".gz":
        options["decimal"] = ","
    return _weights(
        benchmark="table",
        options=options,
        target=target_of(rows),
        left_out=(LATER,) if any(row[0] == LATER for row in rows) else (),
        method=method,
        **SMALL,
    )


# ---- images -------------------------------------------------------------------------------------

Picture = tuple[str, np.ndarray]


def base_pictures() -> list[Picture]:
    """Relative names and grey pixels of three sites."""
    rng = np.random.default_rng(0)
    return [
        (f"{site}/{label}/{number}.png", rng.integers(0, 200, (6, 6), dtype=np.uint8) + 50 * shade)
        for site in ("a", "b", "c")
        for shade, label in enumerate(("dark", "light"))
        for number in range(4)
    ]


@st.composite
def edited_pictures(draw: st.DrawFn) -> list[Picture]:
    """The images after edits of the target's pixels, colours, sizes, formats and names."""
    pictures = base_pictures()
    sources = [picture for picture in pictures if not picture[0].startswith("c/")]
    site = draw(st.sampled_from(["c", "0", "z z", "ü", "a.b"]))
    rng = np.random.default_rng(draw(st.integers(0, 1000)))
    for name, pixels in pictures[len(sources) :]:
        kind = draw(st.sampled_from(["same", "noise", "colour", "large", "deep", "renamed"]))
        label, file = name.split("/")[1:]
        if kind == "renamed":
            file = draw(st.sampled_from(["0", "zz", "é"])) + file
        suffix = draw(st.sampled_from([".png", ".bmp", ".tif"])) if kind != "deep" else ".png"
        shape = {"colour": (6, 6, 3), "large": (20, 9)}.get(kind, (6, 6))
        changed = {
            "same": pixels,
            "renamed": pixels,
            "deep": rng.integers(0, 65535, (6, 6), dtype=np.uint16),
        }.get(kind, rng.integers(0, 255, shape, dtype=np.uint8))
        sources.append((f"{site}/{label}/{Path(file).stem}{suffix}", changed))
    return sources


def picture_weights(
    folder: Path, pictures: list[Picture], method: str, way: dict[str, Any] | None = None
) -> str:
    """The checksum of the weights trained on these images, ahead of any adaptation."""
    shutil.rmtree(folder, ignore_errors=True)
    for name, pixels in pictures:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(folder / name)
    target = pictures[-1][0].split("/")[0]
    options = {"path": str(folder), "size": 8}
    chosen = IMAGE_WAYS[0] if way is None else way
    fields = {"benchmark": "image-folder", "options": options, "target": target, **chosen}
    return _weights(**fields, method=method)


def _weights(**fields: Any) -> str:
    settings = {"batch_size": 4, **fields.pop("settings", {})}
    result = execute(Run.build(**fields, **QUICK, settings=settings))
    assert result.target is not None
    return result.target.weights
