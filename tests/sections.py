"""Sections of a report, made from plain scores: the table and the verdict of a made-up frame."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pandas as pd
from framed import over_data_sets

from farshore.report.build import Section
from farshore.results.measures import TARGET
from farshore.results.published import Published
from farshore.results.tables import Description, make_table
from farshore.results.verdict import judge

# What tables and conditions ask of a result, for frames of plain scores.
RESULT = SimpleNamespace(steps=2, data={}, run=SimpleNamespace(left_out=()))
# Methods of three kinds on three data sets, in percent.
SCORES = {
    "cl-coral": [70.0, 75.0, 72.25],
    "er": [60.0, 63.0, 64.0],
    "finetune": [50.0, 40.0, 60.0],
    "urm": [80.0, 81.0, 82.0],
    "tent": [55.0, 54.0, 53.0],
}
PUBLISHED = Published(
    {
        ("cl-coral", "", "data 0"): (72.8, 2.6),
        ("er", "", "data 0"): (60.0, None),
        ("er", "", "data 1"): (62.0, None),
        ("er", "", "data 2"): (64.0, None),
        ("er", "", "average"): (62.0, None),
    },
    "Their table",
    ("They had another memory.",),
)


def section(frame: pd.DataFrame, published: Published | None = None, **texts: Any) -> Section:
    """The section of these runs; `texts` are fields of its description."""
    verdict = judge(frame)
    fields = {"name": "main", "title": "The main table", "about": "Its numbers are made up."}
    description = Description(**{**fields, **texts})
    table = make_table(frame, description, TARGET, verdict.ranking, published)
    return Section(table, frame, verdict)


def main_section(published: Published | None = PUBLISHED, **texts: Any) -> Section:
    """Methods of three kinds on three data sets."""
    return section(over_data_sets(SCORES), published, **texts)
