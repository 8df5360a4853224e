"""What an audit computes, against worked numbers and slower second computations."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from framed import made_frame

from farshore.auditing.choice import early_scores, make_choice
from farshore.auditing.curve import Point, fit_curve, gain_of_rows
from farshore.auditing.findings import check_enough
from farshore.deployment.unlike import SiteRows, compare_sites
from farshore.results.summary import rank
from farshore.results.verdict import recommend


def made_runs(
    scores: Mapping[str, Sequence[float]], early: Mapping[str, Sequence[float]]
) -> pd.DataFrame:
    """Runs at a target each; without the site a, each method has scored `early` at b, c and d."""
    frame = made_frame(
        {
            row: {site: [100 * value] for site, value in zip("abcdef", of, strict=False)}
            for row, of in scores.items()
        },
        targets={site: site for site in "abcdef"},
    )
    results = []
    for row, target in zip(frame["row"], frame["target"], strict=True):
        matrix = [[0.0, *early[row]], [0.0] * 4] if target == "a" else [[0.0] * 4]
        results.append(
            SimpleNamespace(
                title="toy",
                sources=list("xbcd"),
                matrices={"train": matrix},
                run=SimpleNamespace(seed=0),
            )
        )
    return frame.assign(result=results)


def test_a_choice_names_ties_certainty_and_the_choice_without_each_site() -> None:
    scores = {
        "er": (0.80, 0.82, 0.81, 0.79, 0.80, 0.81),
        "best": (0.90, 0.91, 0.92, 0.89, 0.90, 0.90),
        "ridge": (0.90, 0.92, 0.91, 0.90, 0.89, 0.91),
        "ncm": (0.50, 0.52, 0.51, 0.50, 0.49, 0.50),
    }
    early = {"er": 0.6, "best": 0.5, "ridge": 0.4, "ncm": 0.8}
    frame = made_runs(scores, {row: (at, at + 0.01, at + 0.02) for row, at in early.items()})
    found = recommend(frame)
    assert found is not None
    choice = make_choice(frame, rank(frame), found.row)
    assert choice.method == "ridge"
    assert choice.ties == ("best",)
    assert 0.3 < choice.certainty < 1
    assert choice.without == {"a": "ncm"}


def test_the_choice_without_a_site_is_made_by_the_rule_of_the_recommendation() -> None:
    """Without the site, trees lead er by less than chance explains: er is chosen all the same."""
    scores = {"er": (0.8, 0.8, 0.8, 0.8), "trees": (0.9, 0.9, 0.9, 0.9)}
    frame = made_runs(scores, {"er": (0.5, 0.5, 0.6), "trees": (0.8, 0.5, 0.6)})
    assert early_scores(frame)["a"]["er"] == {
        ("toy", site, "", "a, stage 1", 0): score
        for site, score in zip("bcd", (0.5, 0.5, 0.6), strict=True)
    }
    assert make_choice(frame, rank(frame), "trees").without == {"a": "er"}


def test_the_slope_is_that_of_a_regression_with_an_effect_per_site() -> None:
    draws = np.random.default_rng(1)
    points = [
        Point(int(k), site, float(effect + 0.04 * math.log2(k) + 0.01 * draws.normal()))
        for site, effect in zip("abcd", (0.5, 0.7, 0.6, 0.8), strict=True)
        for k in draws.integers(1, 8, size=6)
    ]
    sites = sorted({point.site for point in points})
    design = [[math.log2(p.learned), *(float(p.site == site) for site in sites)] for p in points]
    slope = np.linalg.lstsq(np.array(design), [p.score for p in points], rcond=None)[0][0]
    curve = fit_curve(points)
    assert curve is not None
    assert curve.doubling == pytest.approx(slope)
    assert curve.rising
    assert curve.low < 0.04 < curve.high
    assert curve.gain(4, 4) == pytest.approx(slope)


def test_a_flat_curve_is_not_rising_and_one_stage_is_none() -> None:
    flat = [Point(k, site, 0.5 + 0.01 * (k % 2)) for site in "abc" for k in (1, 2, 3, 4)]
    curve = fit_curve(flat)
    assert curve is not None
    assert not curve.rising
    assert fit_curve([Point(1, site, 0.5) for site in "abc"]) is None


def made_rows(strange: str | None) -> SiteRows:
    draws = np.random.default_rng(2)
    inputs = {name: draws.normal(size=(120, 3)) for name in "abcd"}
    if strange is not None:
        inputs[strange][:, 1] += 3
    labels = {name: (rows[:, 0] > 0).astype(int) for name, rows in inputs.items()}
    columns = ["age", "dose", "dose missing"]
    return SiteRows(inputs, labels, {name: len(rows) for name, rows in inputs.items()}, columns)


def test_the_strange_site_and_its_column_are_named() -> None:
    first = compare_sites(made_rows("c"))[0]
    assert first.site == "c"
    assert first.different
    assert first.area > 0.95
    assert first.columns[0].column == "dose"
    assert len({each.column for each in first.columns}) == 2  # one entry per column


def test_sites_without_shift_are_not_told_apart() -> None:
    assert not any(shift.different for shift in compare_sites(made_rows(None)))


@pytest.mark.parametrize(
    ("sites", "enough"),
    [
        ({"a": 100, "b": 100, "c": 100, "d": 100}, True),
        ({"a": 100, "b": 100, "c": 100}, True),
        ({"a": 100, "b": 100}, False),
        ({"a": 7, "b": 8, "c": 7, "d": 8}, False),
        ({"a": 100, "b": 100, "c": 100, "d": 100, "e": 3}, True),
        ({"a": 100, "b": 100, "c": 3}, False),
    ],
)
def test_too_few_data_are_refused_with_a_reason(sites: dict[str, int], enough: bool) -> None:
    few = check_enough("table", sites, list(sites))
    assert (few is None) == enough
    if few is not None:
        assert few.plain()["status"] == "too few data"
        assert all(any(char.isdigit() for char in reason) for reason in few.reasons)


def test_more_rows_help_where_there_are_few() -> None:
    """Many columns and few rows: a doubling helps. Few columns and many rows: it does not."""

    names_of_sites = "abcdefghijklmnop"

    def made(rows: int, columns: int) -> SiteRows:
        draws = np.random.default_rng(4)
        inputs = {name: draws.normal(size=(rows, columns)) for name in names_of_sites}
        labels = {
            name: (x[:, 0] + x[:, 1] + 0.3 * draws.normal(size=rows) > 0).astype(int)
            for name, x in inputs.items()
        }
        names = [f"x{number}" for number in range(columns)]
        return SiteRows(inputs, labels, dict.fromkeys(inputs, rows), names)

    few = gain_of_rows(made(10, 60), list(names_of_sites))
    many = gain_of_rows(made(300, 2), list(names_of_sites))
    assert few is not None
    assert many is not None
    assert few.mean > 0.02
    assert abs(many.mean) < 0.01
