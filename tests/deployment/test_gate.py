"""The gate: which learned sites are refused, and by which bar."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from clinics import COLUMNS, clinic, contents, written

from farshore.deployment.changes import learn
from farshore.deployment.gate import agreement, looks_shuffled
from farshore.deployment.model import Model
from farshore.deployment.new_model import NewModel
from farshore.errors import FarshoreError


@pytest.mark.parametrize(
    ("rows", "max_drop", "words"),
    [
        (150, None, "'wrong' was not kept"),
        (150, 1, "'wrong' was not kept: its labels seem to have nothing to do with its inputs"),
        (60, 1, "'wrong' was not kept: its labels seem to have nothing to do with its inputs"),
    ],
)
def test_shuffled_labels_are_refused_and_the_folder_is_what_it_was(
    work: Path, rows: int, max_drop: float | None, words: str
) -> None:
    site = clinic(5, rows)
    site["ill"] = np.random.default_rng(0).permutation(site["ill"])
    before = contents(work / "model")
    with pytest.raises(FarshoreError, match=words):
        learn(
            work / "model",
            written(work, site),
            name="wrong",
            columns=COLUMNS,
            new=NewModel(),
            steps=20,
            max_drop=max_drop,
        )
    assert contents(work / "model") == before


def test_a_site_that_spoils_the_others_is_refused_by_default(work: Path) -> None:
    site = clinic(5)
    site["ill"] = site["ill"].map({"yes": "no", "no": "yes"})
    before = contents(work / "model")
    with pytest.raises(FarshoreError, match=r"held-out rows of .* fell .* --max-drop 0\.1"):
        learn(
            work / "model",
            written(work, site),
            name="swapped",
            columns=COLUMNS,
            new=NewModel(),
            steps=150,
        )
    assert contents(work / "model") == before


def test_min_score_decides_instead(work: Path, tmp_path: Path) -> None:
    site = clinic(5)
    site["ill"] = np.random.default_rng(0).permutation(site["ill"])
    data = written(work, site)
    options = {"columns": COLUMNS, "new": NewModel(), "steps": 5, "name": "own bar"}
    with pytest.raises(FarshoreError, match=r"below --min-score 0\.9"):
        learn(work / "model", data, min_score=0.9, **options)
    learn(work / "model", data, min_score=0, max_drop=1, **options)
    assert Model.open(work / "model").promised == 0
    with pytest.raises(FarshoreError, match="not allowed with --validation 0"):
        learn(work / "model", data, min_score=0.5, validation=0, **options)
    with pytest.raises(FarshoreError, match="--min-score 2 is not allowed"):
        learn(work / "model", data, min_score=2, **options)
    with pytest.raises(FarshoreError, match=r"below --min-score 0\.99"):
        learn(tmp_path / "none", data, min_score=0.99, **options)
    assert [path.name for path in (tmp_path / "none").iterdir()] == [".lock"]


def test_few_or_rare_rows_are_never_called_shuffled() -> None:
    draws = np.random.default_rng(0)
    labels = np.arange(300) % 2
    related = np.stack([1.0 - labels, labels], axis=1) + draws.normal(0, 0.7, (300, 2))
    assert not looks_shuffled(agreement(related, labels), 0.95)
    shuffled = agreement(related, draws.permutation(labels))
    assert looks_shuffled(shuffled, 0.95)
    assert shuffled.p_value > 0.05
    assert agreement(related[:12], labels[:12]) is None
    rare = (np.arange(300) < 8).astype(int)
    assert agreement(related, rare) is None
