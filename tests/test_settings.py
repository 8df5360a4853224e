"""Settings: the paper's defaults and distributions, and helpful errors."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from farshore.benchmarks import BENCHMARKS
from farshore.errors import FarshoreError
from farshore.methods import METHODS
from farshore.runs import catalog
from farshore.settings import (
    DEFAULT,
    Choice,
    MethodSettings,
    Power,
    Profile,
    RunSettings,
    Searched,
    Uniform,
    UniformInt,
    divide,
    parse_assignments,
    setting,
)
from farshore.training.profiles import PROFILES

# The paper's table of hyper-parameters: method, setting, default, distribution (of the default
# profile).
TABLE = [
    ("cl-coral", "penalty_weight", 1.0, Power(10, -1, 1)),
    ("cl-coral", "alignment_weight", 1.0, Power(10, -1, 1)),
    ("naive-cl-coral", "penalty_weight", 1.0, Power(10, -1, 1)),
    ("cl-mmd", "penalty_weight", 1.0, Power(10, -1, 1)),
    ("cl-mmd", "alignment_weight", 1.0, Power(10, -1, 1)),
    ("cl-mmd", "rff_features", 128, None),
    ("naive-cl-mmd", "penalty_weight", 1.0, Power(10, -1, 1)),
    ("naive-cl-mmd", "rff_features", 128, None),
    ("cl-vrex", "penalty_weight", 10.0, Power(10, -1, 5)),
    ("cl-vrex", "alignment_weight", 1.0, Uniform(1, 1000)),
    ("naive-cl-vrex", "penalty_weight", 10.0, Power(10, -1, 5)),
    ("cl-fishr", "penalty_weight", 1000.0, Power(10, 1, 4)),
    ("cl-fishr", "alignment_weight", 1.0, Uniform(1, 1000)),
    ("naive-cl-fishr", "penalty_weight", 1000.0, Power(10, 1, 4)),
    ("cl-andmask", "agreement", 1.0, Uniform(0.5, 1)),
    ("cl-andmask", "alignment_weight", 0.1, Uniform(0.1, 0.5)),
    ("naive-cl-andmask", "agreement", 1.0, Uniform(0.5, 1)),
    # DomainBed's, whose upper bound the paper takes over.
    ("urm", "adversarial_weight", 0.1, Uniform(0, 0.2)),
    ("urm", "critic_layers", 1, Choice((1, 2, 3))),
    ("urm", "feature_activation", "tanh", Choice(("tanh", "relu"))),
    ("urm", "critic_rate", 1e-3, Power(10, -5.5, -3.5)),
]


@pytest.mark.parametrize(("method", "name", "default", "search"), TABLE)
def test_the_papers_table(method: str, name: str, default: object, search: object) -> None:
    kind = METHODS.get(method).Settings
    assert kind.defaults()[name] == default
    assert kind.distributions().get(name) == search


@pytest.mark.parametrize("method", ["cl-vrex", "cl-fishr", "naive-cl-vrex", "naive-cl-fishr"])
def test_anneal_steps_depend_on_how_long_training_is(method: str) -> None:
    kind, long = METHODS.get(method).Settings, PROFILES.get("long-training")
    assert kind.defaults(DEFAULT, method)["anneal_steps"] == 100
    assert kind.distributions(DEFAULT, method)["anneal_steps"] == UniformInt(0, 1000)
    assert kind.defaults(long, method)["anneal_steps"] == 500
    assert kind.distributions(long, method)["anneal_steps"] == UniformInt(0, 2500)


def test_shared_settings_depend_on_how_large_the_data_are() -> None:
    large = PROFILES.get("large-data-short-training")
    assert MethodSettings.defaults() == {
        "learning_rate": 1e-3,
        "weight_decay": 0.0,
        "batch_size": 64,
    }
    assert MethodSettings.defaults(large) == {
        "learning_rate": 5e-5,
        "weight_decay": 0.0,
        "batch_size": 32,
    }
    assert MethodSettings.distributions() == {
        "learning_rate": Power(10, -4.5, -0.5),
        "batch_size": Power(2, 3, 8, whole=True),
    }
    assert MethodSettings.distributions(large) == {
        "learning_rate": Power(10, -5, -0.5),
        "weight_decay": Power(10, -6, -2),
        "batch_size": Power(2, 3, 5, whole=True),
    }


@pytest.mark.parametrize(
    ("distribution", "low", "high"),
    [
        (Uniform(2, 5), 2, 5),
        (UniformInt(0, 3), 0, 3),
        (Power(10, -1, 1), 0.1, 10),
        (Power(2, 3, 8, whole=True), 8, 256),
        (Choice((1, 7)), 1, 7),
    ],
)
def test_draws_stay_in_range_and_reach_both_ends(
    distribution: Uniform, low: float, high: float
) -> None:
    draws = [distribution.draw(np.random.default_rng(seed)) for seed in range(400)]
    assert all(low <= value <= high for value in draws)
    middle = (low * high) ** 0.5 if isinstance(distribution, Power) else (low + high) / 2
    assert 0.35 < np.mean([value < middle for value in draws]) < 0.65
    if isinstance(distribution, UniformInt):
        assert set(draws) == {0, 1, 2, 3}


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"penalty_wieght": 1}, "penalty_weight"),
        ({"penalty_weight": -1}, "greater than or equal to 0"),
        ({"learning_rate": 0}, "greater than 0"),
        ({"learning_rate": "fast"}, "learning_rate"),
        ({"learning_rate": float("nan")}, "finite"),
        ({"batch_size": 2.5}, "batch_size"),
        ({"statistic_reduction": "max"}, "'mean' or 'sum'"),
    ],
)
def test_refusals_name_the_setting_and_what_is_allowed(values: dict, message: str) -> None:
    with pytest.raises(FarshoreError, match=message):
        METHODS.get("cl-coral").Settings.build(values)


def test_texts_of_a_command_line_are_read() -> None:
    built = METHODS.get("cl-mmd").Settings.build(
        {"learning_rate": "0.01", "batch_size": "8", "bandwidth": "2.5"}
    )
    assert (built.learning_rate, built.batch_size, built.bandwidth) == (0.01, 8, 2.5)
    assert METHODS.get("cl-mmd").Settings.build({"bandwidth": "median"}).bandwidth == "median"
    with pytest.raises(FarshoreError, match="bandwidth"):
        METHODS.get("cl-mmd").Settings.build({"bandwidth": "-1"})


def test_assignments() -> None:
    assert parse_assignments(["a=1", "b = x=y"]) == {"a": "1", "b": "x=y"}
    with pytest.raises(FarshoreError, match="name=value"):
        parse_assignments(["novalue"])


def test_settings_of_method_and_run_are_distinguished() -> None:
    kind = METHODS.get("cl-coral").Settings
    assert divide({"penalty_weight": 2, "replay_budget": "total"}, kind) == (
        {"penalty_weight": 2},
        {"replay_budget": "total"},
    )
    with pytest.raises(FarshoreError, match="did you mean 'replay_budget'"):
        divide({"replay_buget": "total"}, kind)


@pytest.mark.parametrize("method", catalog.names())
def test_no_setting_has_the_name_of_a_run_setting(method: str) -> None:
    assert not set(catalog.find(method).Settings.model_fields) & set(RunSettings.model_fields)


@pytest.mark.parametrize("method", catalog.names())
def test_every_setting_is_explained_and_its_defaults_are_valid(method: str) -> None:
    kind = catalog.find(method).Settings
    assert all(field.description for field in kind.model_fields.values())
    for profile in map(PROFILES.get, PROFILES.names()):
        kind.build({}, profile, method)
        rng = np.random.default_rng(0)
        for _ in range(20):
            kind.build(
                {
                    name: search.draw(rng)
                    for name, search in kind.distributions(profile, method).items()
                }
            )


RECORDED = json.loads((Path(__file__).parent / "settings_by_profile.json").read_text())


@pytest.mark.parametrize("profile", [name for name in RECORDED if name != "about"])
@pytest.mark.parametrize("method", catalog.names())
def test_no_default_or_distribution_has_moved(profile: str, method: str) -> None:
    expected = {**RECORDED["default"][method], **RECORDED[profile].get(method, {})}
    searched = catalog.find(method).Settings.searched(PROFILES.get(profile), method)
    shown = {
        name: [each.default, str(each.search) if each.search is not None else None]
        for name, each in searched.items()
    }
    assert shown == expected


def test_which_profile_a_benchmark_uses() -> None:
    others = {
        name: kind.profile
        for name in BENCHMARKS.names()
        if (kind := BENCHMARKS.get(name)).profile != "default"
    }
    assert others == {
        "cifar10-c": "long-training",
        "tinyimagenet-c": "large-data",
        "wm811k": "large-data",
        "wm811k-extended": "large-data",
        "camelyon17": "large-data-short-training",
        "camelyon17-extended": "large-data-short-training",
        "image-folder": "frozen-features",
        "image-table": "frozen-features",
        "hf-dataset": "frozen-features",
    }


def test_a_profile_for_all_methods_leaves_a_methods_own_default_alone() -> None:
    class Own(MethodSettings):
        learning_rate: float = setting(0.5, Uniform(0, 1), gt=0, help="its own")

    large = PROFILES.get("large-data")
    assert Own.defaults(large)["learning_rate"] == 0.5
    assert Own.defaults(large)["batch_size"] == 32
    named = Profile("x", "", {"mine": {"learning_rate": (0.25, None)}})
    assert Own.searched(named, "mine")["learning_rate"] == Searched(0.25, None)
    assert Own.searched(named, "other")["learning_rate"] == Searched(0.5, Uniform(0, 1))


def test_given_values_in_their_plain_form() -> None:
    kind = METHODS.get("cl-mmd").Settings
    assert kind.plain({"learning_rate": "0.01", "bandwidth": "median", "batch_size": 64}) == {
        "learning_rate": 0.01,
        "bandwidth": "median",
        "batch_size": 64,
    }
