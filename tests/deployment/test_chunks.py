"""Tables of any size: predicted in chunks, judged by a sample, written completely or not at all."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from clinics import clinic

from farshore.cli.evaluate import evaluate
from farshore.cli.predict import predict
from farshore.deployment import gate, model
from farshore.deployment.site import Sample, Site
from farshore.errors import FarshoreError
from farshore.tasks.classification import CLASSIFICATION


@pytest.fixture
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of 64 rows."""
    monkeypatch.setattr(model, "CHUNK_ROWS", 64)


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """150 rows of a new clinic, the last of them with a word that no clinic had."""
    clinic(7).assign(ill=lambda frame: frame["ill"]).to_csv(tmp_path / "new.csv", index=False)
    return tmp_path / "new.csv"


def test_chunks_change_no_prediction(
    four: Path, table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    outputs, said = [], []
    pd.read_csv(table).to_parquet(table.with_suffix(".parquet"))
    for rows in (1 << 16, 64):
        monkeypatch.setattr(model, "CHUNK_ROWS", rows)
        for data in (table, table.with_suffix(".parquet")):
            out = table.with_name(f"{rows}.csv")
            predict(model=four / "model", data=data, out=out)
            printed = capsys.readouterr().out
            predict(model=four / "model", data=data)
            assert capsys.readouterr().out == out.read_text()
            outputs.append(out.read_text())
            said.append(printed)
    assert len(set(outputs)) == 1
    assert outputs[0].count("\n") == 151
    assert "150 rows: " in said[2]
    assert said[0] == said[1]
    assert said[2] == said[3]
    assert "drawn at random" not in said[0]
    assert "is measured on 64 of its 150 rows, drawn at random" in said[2]


def test_scores_are_those_of_all_rows(
    four: Path, table: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    said = []
    for rows in (1 << 16, 64):
        monkeypatch.setattr(model, "CHUNK_ROWS", rows)
        evaluate(model=four / "model", data=table)
        said.append(capsys.readouterr().out)
    scores = [text[text.index("new.csv: 150 rows") :] for text in said]
    assert scores[0] == scores[1]


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize(
    ("column", "message"),
    [
        ("age", "column 'age', row 140: 'old' is not a number: fix it"),
        ("ill", "row 140: unknown label 'old'"),
    ],
)
def test_a_bad_cell_far_down_leaves_nothing(
    four: Path, table: Path, column: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    frame = pd.read_csv(table, dtype=object)
    frame.loc[140, column] = "old"
    frame.to_csv(table, index=False)
    (table.parent / "out.csv").write_text("before")
    before = sorted(table.parent.iterdir())
    with pytest.raises(FarshoreError, match=message):
        evaluate(model=four / "model", data=table)
    if column == "age":
        for out in (table.parent / "out.csv", None):
            with pytest.raises(FarshoreError, match=message):
                predict(model=four / "model", data=table, out=out)
    assert capsys.readouterr().out == ""
    assert sorted(table.parent.iterdir()) == before
    assert (table.parent / "out.csv").read_text() == "before"


def chunk(rows: range) -> Site:
    return Site(pd.DataFrame({"x": rows}, index=rows), [str(row) for row in rows])


def drawn(most: int, seed: int) -> Sample:
    sample = Sample(most, seed)
    for start in range(0, 60, 20):
        sample.add(chunk(range(start, start + 20)))
    return sample


def test_every_row_is_drawn_equally_often() -> None:
    counts = np.zeros(60)
    for seed in range(500):
        site = drawn(20, seed)._site
        assert site is not None
        rows = list(map(int, site.names))
        assert rows == sorted(set(rows))
        assert site.inputs["x"].tolist() == rows  # type: ignore[union-attr]
        assert len(rows) == 20
        counts[rows] += 1
    # 500 draws with probability 1/3: a standard deviation of 10.5.
    assert np.abs(counts - 500 / 3).max() < 4.5 * 10.5
    assert drawn(60, 0)._site.names == [str(row) for row in range(60)]  # type: ignore[union-attr]


def test_the_label_check_fits_its_forest_to_a_sample(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gate, "FOREST_ROWS", 200)
    draws = np.random.default_rng(0)
    inputs = draws.normal(size=(1000, 3))
    related = gate.quick_agreement(CLASSIFICATION, inputs, (inputs[:, 0] > 0).astype(int), 0)
    random = gate.quick_agreement(CLASSIFICATION, inputs, draws.integers(0, 2, 1000), 0)
    assert related is not None
    assert random is not None
    assert (related.rows, random.rows) == (200, 200)
    assert related.area > 0.95
    assert abs(random.area - 0.5) < 4 * random.error
