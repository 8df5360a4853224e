"""What each benchmark is, in one line: the list of `farshore benchmarks`.

It is kept apart from the benchmarks, whose modules import torch, so that the list appears at once.
A test checks it against the benchmarks themselves.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Line:
    """A benchmark: what it is, and the name of its files for `farshore prepare`, if it has any."""

    what: str
    files: str | None = None
    own_data: bool = False


LINES: dict[str, Line] = {
    "rotated-digits": Line("1,797 digits of 8x8 pixels, rotated by 0 to 75 degrees"),
    "rotated-digits-stream": Line("the same digits in twelve steps of 10 degrees"),
    "heart-hospitals": Line("920 patients from four hospitals, with or without heart disease"),
    "rotated-mnist": Line("70,000 digits, rotated by 0 to 75 degrees", "rotated-mnist"),
    "rotated-mnist-extended": Line("the same with 15 sources, for timing", "rotated-mnist"),
    "covertype": Line("65,386 forest patches in four wilderness areas", "covertype"),
    "covertype-natural": Line("the same with natural class frequencies", "covertype-natural"),
    "covertype-zones": Line("22,279 forest patches in seven climatic zones", "covertype-zones"),
    "cifar10-c": Line("CIFAR-10 under pairs of corruptions", "cifar10-c"),
    "tinyimagenet-c": Line("TinyImageNet under pairs of corruptions", "tinyimagenet-c"),
    "wm811k": Line("wafer maps with nine failure patterns, by production lot", "wm811k"),
    "wm811k-extended": Line("the same with 15 sources, for timing", "wm811k"),
    "camelyon17": Line("lymph node patches from five hospitals", "camelyon17"),
    "camelyon17-extended": Line("the same with 15 sources, for timing", "camelyon17"),
    "table": Line("your table with a column for the domain and one for the class", own_data=True),
    "image-folder": Line("your images in folders domain/class/file", own_data=True),
    "image-table": Line("your images, listed in a table with their paths", own_data=True),
    "hf-dataset": Line("a Hugging Face data set with a column for the domain", own_data=True),
}


def is_prepared(files: str, root: Path) -> bool:
    """Whether the domains of these files have been built in the data folder, for any seed."""
    name = re.compile(rf"{re.escape(files)}(-severity-\d+|-target-.+|-published)*-seed-\d+")
    built = (root / "prepared").glob(f"{files}-*/manifest.json")
    return any(name.fullmatch(manifest.parent.name) for manifest in built)
