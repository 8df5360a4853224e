"""The settings of trials: defaults first, one random stream per setting, distinct seeds."""

from __future__ import annotations

import numpy as np
import pytest

from farshore.base.randomness import derive
from farshore.benchmarks import make_benchmark
from farshore.errors import FarshoreError
from farshore.runs.search.space import capped, distributions, grid, run_seed, trial_settings
from farshore.settings import Choice, Power, Uniform, UniformInt

DIGITS = make_benchmark("rotated-digits")


def draw(
    method: str, trial: int, number: int = 0, seed: int = 0, **fixed: object
) -> dict[str, object]:
    return trial_settings(method, DIGITS, search_seed=seed, number=number, trial=trial, fixed=fixed)


def test_trial_0_is_the_defaults_and_later_ones_draw_all_that_is_searched() -> None:
    assert draw("cl-coral", 0) == {}
    assert draw("cl-coral", 0, priors="dynamic") == {"priors": "dynamic"}
    for trial in range(1, 20):
        drawn = draw("cl-coral", trial)
        assert set(drawn) == set(distributions("cl-coral", DIGITS))
    assert "alignment_weight" in drawn


def test_trials_and_seeds_draw_other_values_and_the_same_ones_again() -> None:
    rates = {
        draw("er", trial, number)["learning_rate"] for trial in range(1, 20) for number in range(3)
    }
    assert len(rates) == 57
    assert draw("er", 5) == draw("er", 5)
    assert draw("er", 5, seed=1) != draw("er", 5)


def test_each_setting_has_its_own_stream() -> None:
    plain, tailored = draw("finetune", 3), draw("cl-vrex", 3)
    assert set(plain) < set(tailored)
    assert {name: tailored[name] for name in plain} == plain
    fixed = draw("cl-vrex", 3, alignment_weight=0.0)
    assert {**tailored, "alignment_weight": 0.0} == fixed
    rng = np.random.default_rng(derive(0, "draw", 0, 3, "learning_rate"))
    assert tailored["learning_rate"] == distributions("cl-vrex", DIGITS)["learning_rate"].draw(rng)


def test_seeds_of_runs_are_no_search_or_scenario_seeds() -> None:
    seeds = {run_seed(search, number) for search in range(10) for number in range(10)}
    assert len(seeds) == 100
    assert min(seeds) >= 1_000_000


def test_bounds_apply_to_defaults_and_draws() -> None:
    assert capped("er", DIGITS, {}, {"batch_size": 16}) == {"batch_size": 16}
    assert capped("er", DIGITS, {"batch_size": 8}, {"batch_size": 16}) == {"batch_size": 8}
    heart = make_benchmark("heart-hospitals")  # whose default batch has 32 rows
    assert capped("er", heart, {}, {"batch_size": 32}) == {}


def test_a_grid_is_even_on_the_scale_of_the_distribution() -> None:
    assert grid(Power(10, -1, 1), 3) == pytest.approx([0.1, 1, 10])
    assert grid(Uniform(1, 1000), 10)[1] == pytest.approx(112)
    assert grid(UniformInt(0, 10), 3) == [0, 5, 10]
    with pytest.raises(FarshoreError, match="no scale"):
        grid(Choice((1, 2)), 2)
