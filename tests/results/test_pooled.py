"""A method beside ordinary models of all data: which side is ahead, in words."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from framed import made_frame

from farshore.results.pooled import beside
from farshore.results.summary import paired, rank
from farshore.results.verdict import judge

TARGETS = {name: name for name in "abcd"}
ER = (70, 71, 72, 71)


def frame(forest: tuple[int, ...], kept: int | None = 100):  # type: ignore[no-untyped-def]
    scores = {"er": ER, "finetune": (60, 60, 61, 60), "joint-forest": forest}
    scores["joint-linear"] = (50, 50, 50, 50)
    by_site = {
        row: {site: [value] for site, value in zip("abcd", of, strict=True)}
        for row, of in scores.items()
    }
    made = made_frame(by_site, targets=TARGETS)
    result = None if kept is None else SimpleNamespace(memory_items=kept, steps=1)
    return made.assign(result=[result] * len(made))


@pytest.mark.parametrize(
    ("forest", "words"),
    [
        (
            (80, 81, 83, 81),
            "forest trained on all data at once (joint-forest) scores 81.2",
        ),
        ((60, 90, 72, 71), "(it may be due to chance)"),
        ((60, 61, 62, 63), "kept 100 rows, is ahead of ordinary models"),
        ((71, 70, 72, 70), "kept 100 rows, is level with ordinary models"),
    ],
)
def test_the_sentence_says_which_side_is_ahead(forest: tuple[int, ...], words: str) -> None:
    runs = frame(forest)
    ranking = rank(runs)
    found = beside(runs, ranking, "er")
    assert found is not None
    assert found.reference == "joint-forest"
    assert found.difference == paired(runs, "joint-forest", "er")
    assert words in found.sentence(ranking.metric)
    assert found.ahead == (sum(forest) > sum(ER))


def test_the_verdict_has_it_and_a_frame_without_references_does_not() -> None:
    runs = frame((80, 81, 83, 81), kept=None)
    verdict = judge(runs)
    assert verdict.pooled is not None
    assert verdict.pooled.sentence(verdict.ranking.metric) in verdict.details
    assert verdict.recommendation is not None
    assert verdict.recommendation.row == "er"
    alone = runs[runs["group"] != "references"]
    assert judge(alone).pooled is None
