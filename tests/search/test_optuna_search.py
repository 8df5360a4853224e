"""Search by Optuna: draws and stopped trials depend on the scores of earlier trials."""

from __future__ import annotations

import random
import sys

import pytest

from farshore.benchmarks import make_benchmark
from farshore.benchmarks.benchmark import Benchmark
from farshore.errors import FarshoreError
from farshore.runs import catalog
from farshore.runs.search import space
from farshore.runs.search.optuna_search import Past, promising, propose, seen_scores
from farshore.runs.search.space import distributions, trial_settings
from farshore.settings import Choice, Power, Uniform, UniformInt

MADE = [make_benchmark(name) for name in ("rotated-digits", "tinyimagenet-c")]


def past_of(method: str, made: Benchmark, trials: int = 6) -> list[Past]:
    """The defaults and random draws with made-up scores; one was stopped, one diverged at once."""
    chance = random.Random(1)
    defaults = space.defaults(method, made)
    past = []
    for trial in range(trials):
        drawn = trial_settings(method, made, search_seed=0, number=0, trial=trial)
        scores = tuple(chance.random() for _ in range(3))
        past.append(Past({**defaults, **drawn}, scores, scores[-1]))
    return [*past, Past(past[1].settings, (0.2,), None), Past(past[2].settings, (), None)]


@pytest.mark.parametrize("made", MADE, ids=lambda made: made.name)
def test_draws_of_every_system_are_settings_it_takes(made: Benchmark) -> None:
    for method in catalog.names():
        searched = distributions(method, made)
        drawn = propose(searched, past_of(method, made), seed=3)
        assert set(drawn) == set(searched)
        built = catalog.find(method).Settings.build(drawn)
        for name, search in searched.items():
            value = getattr(built, name)
            assert value == drawn[name]
            if isinstance(search, Choice):
                assert value in search.options
            elif isinstance(search, Power):
                assert search.base**search.low - 1 <= value <= search.base**search.high * (1 + 1e-9)
            else:
                assert search.low <= value <= search.high


def test_a_draw_depends_on_the_past_and_the_seed_alone() -> None:
    made = MADE[0]
    searched, past = distributions("cl-coral", made), past_of("cl-coral", made)
    first = propose(searched, past, seed=1)
    assert propose(searched, past, seed=1) == first
    assert propose(searched, past, seed=2) != first
    assert propose(searched, past[:3], seed=1) != first


def test_better_trials_draw_the_next_ones_near() -> None:
    searched = {
        "a": Uniform(0, 1),
        "b": Power(10, -3, 0),
        "c": UniformInt(0, 100),
        "d": Choice(("x", "y")),
    }
    chance = random.Random(0)
    past = []
    for _ in range(40):
        values = {
            "a": chance.random(),
            "b": 10 ** chance.uniform(-3, 0),
            "c": chance.randint(0, 100),
            "d": chance.choice("xy"),
        }
        score = (
            values["a"] - abs(values["c"] - 80) / 100 + (values["d"] == "y") + (values["b"] < 0.01)
        )
        past.append(Past(values, (score,), score))
    drawn = [propose(searched, past, seed=seed) for seed in range(30)]
    assert sum(each["a"] for each in drawn) / 30 > 0.6
    assert sum(each["b"] < 0.01 for each in drawn) > 20
    assert sum(each["c"] for each in drawn) / 30 > 60
    assert sum(each["d"] == "y" for each in drawn) > 20


def slow_promising(earlier: list[list[float]], scores: list[float]) -> bool:
    """Successive halving written out: after 1, 2, 4, ... sources the better half continues, and
    always the best.
    """
    seen = len(scores)
    if seen & (seen - 1):
        return True
    others = [each[seen - 1] for each in earlier if len(each) >= seen]
    ranked = sorted([*others, scores[-1]], reverse=True)
    return scores[-1] >= ranked[max(len(ranked) // 2, 1) - 1]


def test_the_better_half_continues() -> None:
    chance = random.Random(0)
    answers = []
    for _ in range(60):
        earlier = [
            [chance.random() for _ in range(chance.randint(0, 7))]
            for _ in range(chance.randint(0, 9))
        ]
        scores = [chance.random() for _ in range(chance.randint(1, 6))]
        answers.append(promising(earlier, scores))
        assert answers[-1] == slow_promising(earlier, scores)
    assert 10 < sum(answers) < 50
    assert promising([], [0.0])  # nobody to fall behind
    assert not promising([[0.5]], [0.4])
    assert promising([[0.5]], [0.5])
    assert promising([[0.5, 0.5, 0.5]] * 3, [0.9, 0.9, 0.0])  # not asked after the third source


def test_scores_are_means_over_the_sources_seen() -> None:
    assert seen_scores([[0.5, 0.1, 0.9], [0.3, 0.7, 0.9], [0.0, 0.6, 0.9]]) == pytest.approx(
        (0.5, 0.5, 0.5)
    )
    assert seen_scores([]) == ()


def test_without_optuna_it_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "optuna", None)
    with pytest.raises(FarshoreError, match=r"pip install '\.\[search\]'"):
        propose({"a": Uniform(0, 1)}, [], seed=0)
