"""docs/referee.md: verdicts follow the differences, and the streams are computed as they say."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from farshore.results.summary import Unit, difference
from reproduction import ANCHORS
from reproduction.arithmetic import UNLIMITED, Scores
from reproduction.pages import referee
from reproduction.prequential import TARGETS, NoChange, errors, measured


def runs(*values: float) -> Scores:
    return {("", str(target), "", "", 0): value for target, value in enumerate(values)}


@pytest.mark.parametrize(
    ("first", "word"),
    [((61.0, 62.1, 63.0), "yes"), ((57.0, 58.1, 59.0), "no"), ((61.0, 58.0, 63.0), "open")],
)
def test_a_claim_holds_if_the_whole_interval_does(first: tuple[float, ...], word: str) -> None:
    found = difference(runs(*first), runs(60.0, 61.0, 62.0), Unit.TARGET, UNLIMITED)
    assert referee.verdict(found) == word
    assert referee.verdict(None) == "not run"


def test_every_claim_has_published_numbers_of_its_data_set() -> None:
    for benchmark, claim, _, _ in referee.CLAIMS:
        known = {f"{score:.1f}" for _, score, _ in referee.anchors(benchmark)}
        named = [word.strip("(),") for word in claim.split() if "." in word]
        assert {word for word in named if word.replace(".", "").isdigit()} <= known, claim


class Counting:
    """Predicts whether it has learned an even number of rows."""

    def __init__(self) -> None:
        self.rows = 0

    def predict_one(self, row: dict[str, float]) -> int:
        return self.rows % 2

    def learn_one(self, row: dict[str, float], label: int) -> None:
        self.rows += 1


def test_each_row_is_predicted_before_it_is_learned_and_frozen_learns_nothing() -> None:
    starts = list(range(0, 2 * 36, 2))  # chunks of two rows, up to chunk 34
    labels = np.zeros(starts[-1], dtype=int)
    found = list(errors(Counting, np.zeros((len(labels), 1)), labels, starts))
    assert found == [(33, 0.5, 0.0), (34, 0.5, 0.0)]
    alternating = np.arange(len(labels)) % 2
    changes = list(errors(NoChange, np.zeros((len(labels), 1)), alternating, starts))
    assert changes == [(33, 1.0, 0.5), (34, 1.0, 0.5)]


@pytest.fixture
def only_no_change(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reproduction.prequential.learners", lambda: {"no change": NoChange})


def test_the_table_of_streams(
    only_no_change: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = pd.read_csv(ANCHORS / "prequential.csv", dtype={"target": str})
    for _, each in table.groupby("learner"):
        assert tuple(each["target"]) == TARGETS
    shared = Path(__file__).resolve().parents[3] / "shared" / "data"
    natural = Path(os.environ.get("FARSHORE_SHARED", shared)) / "natural"
    if not natural.is_dir():
        pytest.skip("the real rows of elec2 are not at hand")
    (tmp_path / "elec2").symlink_to(natural, target_is_directory=True)
    monkeypatch.setenv("FARSHORE_DATA", str(tmp_path))
    written = table[table["learner"] == "no change"].reset_index(drop=True)
    again = measured()
    assert again["prequential"].to_numpy() == pytest.approx(written["prequential"], rel=1e-5)
    assert again["frozen"].to_numpy() == pytest.approx(written["frozen"], rel=1e-5)
