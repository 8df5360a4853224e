"""One table in several forms: a frame, text files and a binary file are the same data.

And nothing in the rows of the target decides how the rows of the sources are read, whatever a frame
stores them as.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from scenarios import make_scenario

from farshore import Run, execute
from farshore.comparing import find_data
from farshore.data.scenario import Scenario
from farshore.data.tables.convert import encode_labels
from farshore.errors import FarshoreError
from farshore.runs.store.identity import run_name

ROWS = 8
SITES = 4
TARGET = SITES - 1
quick = settings(deadline=None, suppress_health_check=list(HealthCheck))


class PolarsFrame:
    """What Farshore uses of a frame of Polars, which is not always installed."""

    def __init__(self, frame: pd.DataFrame) -> None:
        self.frame = frame

    def get_columns(self) -> list[Any]:
        return [PolarsColumn(self.frame[name]) for name in self.frame]


class PolarsColumn:
    """A column: a list of plain Python values, None where one is missing."""

    def __init__(self, values: pd.Series) -> None:
        self.name, self.values = values.name, values

    def to_list(self) -> list[Any]:
        return [None if pd.isna(value) else value for value in self.values.astype(object)]


def spread(draw: st.DrawFn, values: st.SearchStrategy[Any], missing: bool = True) -> list[Any]:
    """A cell for each row; a few are missing."""
    distinct = draw(st.lists(values, min_size=2, max_size=5))
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    cells: list[Any] = [distinct[place] for place in rng.integers(0, len(distinct), ROWS * SITES)]
    for row in rng.integers(0, len(cells), draw(st.integers(0, 3)) if missing else 0):
        cells[row] = None
    return cells


numbers = st.one_of(st.integers(-50, 50).map(float), st.floats(-1e6, 1e6))
whole = st.integers(-(2**31), 2**31)
texts = st.sampled_from(["red", "green", "None", "a,b", 'say "x"', "01", "1.0", "TRUE", "é; è"])


def column(draw: st.DrawFn, kind: str) -> pd.Series:
    """A column of this kind, as a frame stores it."""
    if kind in ("float64", "float32"):
        return pd.Series(spread(draw, numbers), dtype=kind)
    if kind in ("Int64", "int64"):
        return pd.Series(spread(draw, whole, kind == "Int64"), dtype=kind)
    if kind in ("bool", "boolean"):
        return pd.Series(spread(draw, st.booleans(), kind == "boolean"), dtype=kind)
    if kind == "date":
        days = st.dates(pd.Timestamp("2000-01-01").date(), pd.Timestamp("2030-01-01").date())
        hours = draw(st.sampled_from([0, 0, 9]))
        return pd.to_datetime(pd.Series(spread(draw, days))) + pd.Timedelta(hours=hours)
    if kind == "written":  # numbers as text, with a sign for missing ones
        return pd.Series(spread(draw, st.one_of(numbers.map(repr), st.just("?"))), dtype=object)
    cells = spread(draw, texts)
    return pd.Series(cells, dtype="category" if kind == "category" else object)


KINDS = ("float64", "float32", "Int64", "int64", "bool", "boolean", "date", "written", "category")
# Names of the sites as a frame stores them, and the name of the target as it is read.
SITE_NAMES: tuple[tuple[list[Any], str], ...] = (
    (["a", "b", "c", "d"], "d"),
    ([1, 2, 3, 4], "4"),
    ([1.0, 2.0, 3.0, 4.5], "4.5"),
    (["01", "1", "x", " y "], "y"),
    (
        [
            pd.Timestamp(f"2026-01-0{day} {hour}:00")
            for day, hour in ((1, 0), (2, 0), (3, 0), (4, 9))
        ],
        "2026-01-04 09:00:00",
    ),
)
LABELS: tuple[tuple[Any, Any], ...] = (("no", "yes"), (0, 1), (0.0, 1.0), (False, True))


@st.composite
def frames(draw: st.DrawFn) -> tuple[pd.DataFrame, str]:
    """A table of four sites, with columns of several types, and the name of the last site."""
    sites, target = draw(st.sampled_from(SITE_NAMES))
    made = {"site": pd.Series([name for name in sites for _ in range(ROWS)])}
    kinds = draw(st.lists(st.sampled_from([*KINDS, "text"]), min_size=1, max_size=4))
    made |= {f"{kind} {place}": column(draw, kind) for place, kind in enumerate(kinds)}
    if draw(st.booleans()):
        rng = np.random.default_rng(draw(st.integers(0, 2**20)))
        rows = ROWS * SITES
        minutes = pd.to_timedelta(rng.integers(0, 10**6, rows), unit="min")
        made["day"] = pd.Series(pd.Timestamp("2026-01-01") + minutes)
        made["patient"] = pd.Series(np.arange(rows) // 2)
        made["weight"] = pd.Series(rng.integers(1, 4, rows) / draw(st.sampled_from([1, 2])))
    labels = draw(st.sampled_from(LABELS))
    frame = pd.DataFrame({**made, "label": pd.Series(list(labels) * (ROWS * SITES // 2))})
    return frame, target


def options_of(frame: pd.DataFrame) -> dict[str, Any]:
    """The roles; one column is declared as text."""
    declared = [name for name in frame if name.endswith(" 0") and not name.startswith("date")]
    options = {"domain": "site", "label": "label", "categories": tuple(declared)}
    if "day" in frame:
        options |= {"time": "day", "group": "patient", "weight": "weight"}
    return options


def in_form(frame: pd.DataFrame, form: str, folder: Path) -> dict[str, Any]:
    """The same data in some form, as options of a run."""
    options = options_of(frame)
    if form in ("frame", "polars"):
        given_frame = frame if form == "frame" else PolarsFrame(frame)
        return find_data(given_frame, options, folder, form)[1]
    if form == "parquet":
        frame.to_parquet(folder / "t.parquet")
        return {**options, "path": str(folder / "t.parquet")}
    # Text files of single-precision numbers usually have fewer digits, and are then other data.
    frame = frame.astype({name: float for name in frame if frame[name].dtype == "float32"})
    if form == "csv":
        frame.to_csv(folder / "t.csv", index=False)
        return {**options, "path": str(folder / "t.csv")}
    frame.to_csv(folder / "t.txt.gz", index=False, sep=";", encoding="utf-16")
    way = {"separator": ";", "encoding": "utf-16"}
    return {**options, "path": str(folder / "t.txt.gz"), **way}


def print_of(made: Scenario) -> dict[str, Any]:
    """All that training sees of a scenario, to the last bit."""
    return {
        "sources": [
            (each.name, *(part.numpy().tobytes() for part in parts))
            for each in made.sources
            for parts in [(each.inputs, each.labels, each.train, each.validation)]
        ],
        "chosen": (made.classes, made.metric, made.steps, made.memory, made.network),
        "columns": json.dumps(made.preprocessing.state_dict(), default=str),
    }


def read(options: dict[str, Any], target: str) -> tuple[str, dict[str, Any]]:
    """The name of a run and what it trains on; the reason if the data are refused."""
    try:
        run = Run.build(benchmark="table", options=options, method="ridge", target=target)
        return run_name(run), print_of(make_scenario("table", options, target=target))
    except FarshoreError as error:
        return "refused", {"reason": str(error)}


@settings(quick, max_examples=120)
@given(made=frames(), third=st.sampled_from(["polars", "parquet", "compressed"]))
def test_every_form_of_a_table_is_the_same_data(
    tmp_path: Path, made: tuple[pd.DataFrame, str], third: str
) -> None:
    frame, target = made
    of_frame = read(in_form(frame, "frame", tmp_path), target)
    event("refused" if of_frame[0] == "refused" else "read")
    for form in ("csv", third):
        assert read(in_form(frame, form, tmp_path), target) == of_frame, form


# Values of the target's facts: of other types than those of the sources.
FACTS = {
    "day": [pd.Timestamp("2027-01-01 10:11:12"), "2027-02-03", pd.Timestamp("2027-03-04")],
    "patient": [0.5, "x", 3.0],
    "weight": [0.25, "7", 1e6],
}


def noise(draw: st.DrawFn, frame: pd.DataFrame) -> tuple[pd.DataFrame, str]:
    """The frame with other rows, values, types and another name of the target."""
    edited, rows = frame.astype(object), range(ROWS * TARGET, ROWS * SITES)
    rng = np.random.default_rng(draw(st.integers(0, 2**20)))
    for name in [name for name in frame if name not in ("site", "label")]:
        fitting = [*frame[name].astype(object)[:ROWS], None, "?"]
        if name in FACTS:
            edited.loc[rows, name] = [FACTS[name][place] for place in rng.integers(0, 3, ROWS)]
            continue
        if name.startswith(("float", "Int", "int", "written")):
            fitting += [1e300, -7, 0.5, np.nan, "12", "1e999", "None"]
        wild = [*fitting, "unknown", True, "2026-01-01", 3.5]
        chosen = draw(st.sampled_from([fitting, fitting, wild]))
        edited.loc[rows, name] = [chosen[place] for place in rng.integers(0, len(chosen), ROWS)]
    new, target = draw(st.sampled_from([(4.5, "4.5"), ("west", "west"), (99, "99"), (7.0, "7")]))
    edited.loc[rows, "site"] = new
    edited.loc[rows, "label"] = rng.permutation(edited.loc[rows, "label"].to_numpy())
    kept = rng.permutation(len(edited)) if draw(st.booleans()) else np.arange(len(edited))
    kept = np.sort(kept[: draw(st.integers(len(edited) - 4, len(edited)))])
    sources = np.arange(ROWS * TARGET)
    target_rows = kept[kept >= ROWS * TARGET]
    return edited.iloc[[*sources, *target_rows]].infer_objects().reset_index(drop=True), target


@st.composite
def edited_frames(draw: st.DrawFn) -> tuple[tuple[pd.DataFrame, str], tuple[pd.DataFrame, str]]:
    """A frame, and the same one with noise for a target."""
    made = draw(frames())
    return made, noise(draw, made[0])


@settings(quick, max_examples=100)
@given(both=edited_frames())
def test_noise_for_a_target_changes_nothing_that_training_sees(
    tmp_path: Path, both: tuple[tuple[pd.DataFrame, str], tuple[pd.DataFrame, str]]
) -> None:
    (name, first), (other, second) = (
        read(in_form(frame, "frame", tmp_path), target) for frame, target in both
    )
    event("refused" if "refused" in (name, other) else "read")
    assert first == second or "refused" in (name, other)


@settings(quick, max_examples=5)
@given(both=edited_frames())
def test_noise_for_a_target_changes_no_weight_and_no_choice(
    tmp_path: Path, both: tuple[tuple[pd.DataFrame, str], tuple[pd.DataFrame, str]]
) -> None:
    found = []
    for frame, target in both:
        try:
            options = in_form(frame, "frame", tmp_path)
            fields = {"network_settings": {"width": 8}, "steps": 2, "memory": 12}
            run = Run.build(
                benchmark="table", options=options, method="er", target=target, **fields
            )
            result = execute(run)
        except FarshoreError:
            return
        chosen = (result.target.weights, result.metric, result.classes, result.matrices)
        found.append((*chosen, result.source_scores))
    assert found[0] == found[1]


def test_numbers_with_a_sign_for_missing_ones_are_numbers_in_a_frame(tmp_path: Path) -> None:
    frame = pd.DataFrame({"x": ["1", "2.5", "?", "4"] * 6, "site": np.repeat(["a", "b", "c"], 8)})
    frame["label"] = ["no", "yes"] * 12
    made = make_scenario("table", in_form(frame, "frame", tmp_path), target="c")
    assert list(made.preprocessing.numbers) == ["x"]
    assert made.sources[0].inputs.shape == (8, 2)


def test_a_model_knows_its_names_however_they_are_written(tmp_path: Path) -> None:
    """Codes and classes come as `3.0` as soon as one of them is missing."""
    frame = pd.DataFrame({"code": [3.0, 6.0, 7.0, np.nan] * 6, "site": np.repeat(["a", "b"], 12)})
    frame["label"] = [0.0, 1.0] * 12
    options = {"domain": "site", "label": "label", "categories": "code"}
    made = make_scenario("table", find_data(frame, options, tmp_path, "t")[1], target="b")
    assert made.classes == ("0", "1")
    assert made.preprocessing.categories == {"code": ["3", "6", "7"]}
    seen = [
        made.preprocessing.transform(pd.DataFrame({"code": cells})).tolist()
        for cells in (["3.0", "6.0", ""], ["3", "6", None], [3.0, 6.0, np.nan], [3, 6, "NA"])
    ]
    assert all(each == seen[0] for each in seen)
    assert encode_labels(["1.0", "0", "1"], made.classes, domain="new").tolist() == [1, 0, 1]


def test_a_row_is_in_a_constructed_target_whatever_the_others_are(tmp_path: Path) -> None:
    cells = {"x": np.arange(60.0), "label": ["no", "yes"] * 30}
    sizes = []
    for other in ("2", "two"):
        frame = pd.DataFrame({**cells, "ward": ["1", "1.0", "01", other, other] * 12})
        options = {"domain": "auto", "domain_by": "blocks", "label": "label"}
        found = find_data(frame, options, tmp_path, "t")[1]
        made = make_scenario("table", found, target="ward=1")
        sizes.append(sum(len(source) for source in made.sources))
    assert sizes == [24, 24]
