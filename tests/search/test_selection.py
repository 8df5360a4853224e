"""Selection: the best trial by the sources, whatever the target scores are."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from sweeping import experiment, swept

from farshore.runs.plan.plan import selected
from farshore.runs.protocol import execute
from farshore.runs.result import Result
from farshore.runs.run import Run
from farshore.runs.search.selection import Trial, select, select_by_seed
from farshore.runs.store.store import Store


@pytest.fixture(scope="module")
def result() -> Result:
    return execute(Run(benchmark="heart-hospitals", method="finetune", steps=1))


def scored(result: Result, validation: float, target: float) -> Result:
    matrices = {**result.matrices, "validation": [[0.0] * 3, [0.0] * 3, [validation] * 3]}
    scores = result.target.model_copy(
        update={"scores": {**result.target.scores, "accuracy": target}}
    )
    return result.model_copy(update={"matrices": matrices, "target": scores})


def test_the_best_source_validation_at_the_end_of_the_sequence_wins(result: Result) -> None:
    trials = [
        Trial(0, scored(result, 0.5, 0.9)),
        Trial(1, scored(result, 0.7, 0.1)),
        Trial(2, scored(result, 0.7, 0.95)),
    ]
    assert select(trials, "source-validation").number == 1  # of equals the first
    assert select(trials, "oracle").number == 2


def test_diverged_trials_never_win(result: Result) -> None:
    bad = scored(result, 1.0, 1.0).model_copy(update={"status": "diverged", "target": None})
    assert (
        select([Trial(0, bad), Trial(1, scored(result, 0.1, 0.1))], "source-validation").number == 1
    )
    assert select([Trial(0, bad)], "source-validation") is None
    chosen = select_by_seed(
        {0: [Trial(0, bad)], 1: [Trial(0, scored(result, 0.1, 0.3))]}, "source-validation"
    )
    assert [trial.result.target_score for trial in chosen.trials.values()] == [0.3]
    assert chosen.seeds == 2


def test_leaving_sources_out_scores_the_sources_that_a_run_never_saw(result: Result) -> None:
    def trial(number: int, *held_out: float) -> Trial:
        return Trial(
            number,
            scored(result, 0.5, 0.5),
            {str(index): scored(result, 0.1, score) for index, score in enumerate(held_out)},
        )

    assert select([trial(0, 0.2, 0.9), trial(1, 0.6, 0.6)], "leave-one-source-out").number == 1
    bad = result.model_copy(update={"status": "diverged", "target": None})
    broken = Trial(2, scored(result, 0.5, 0.5), {"0": scored(result, 0.1, 1.0), "1": bad})
    assert select([trial(0, 0.2, 0.9), broken], "leave-one-source-out").number == 0


@pytest.mark.parametrize("rule", ["source-validation", "leave-one-source-out"])
def test_scrambled_target_scores_select_the_same_trials(tmp_path: Path, rule: str) -> None:
    found = experiment(selection=rule, search={"trials": 4, "seeds": 1})
    plan, _ = swept(found, tmp_path)
    store = Store(tmp_path)
    before = {
        cell: [trial.number for trial in chosen.trials.values()]
        for cell, chosen in selected(plan, store).items()
    }
    chance = random.Random(0)
    for each in plan.runs:
        if each.held_out is None:
            whole = store.read(each.name)
            store.folder(each.name).write(scored_target(whole, chance.random()))
    after = {
        cell: [trial.number for trial in chosen.trials.values()]
        for cell, chosen in selected(plan, store).items()
    }
    assert before == after
    assert len(before) == 2


def scored_target(result: Result, value: float) -> Result:
    scores = dict.fromkeys(result.target.scores, value)
    return result.model_copy(update={"target": result.target.model_copy(update={"scores": scores})})


def test_runs_that_leave_a_source_out_never_see_the_real_target(tmp_path: Path) -> None:
    plan, _ = swept(
        experiment(
            selection="leave-one-source-out",
            search={"trials": 1, "seeds": 1},
            part={"methods": ["er"]},
        ),
        tmp_path,
    )
    inner = [each for each in plan.runs if each.held_out is not None]
    assert [each.run.target for each in inner] == ["cleveland", "hungarian", "switzerland"]
    for each in inner:
        result = Store(tmp_path).read(each.name)
        assert result.target.name == each.held_out
        assert "va" not in [*result.sources, result.target.name]
        assert len(result.sources) == 2
