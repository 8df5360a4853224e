"""Learners that keep sums can be joined: as if one had learned all, whatever the order."""

from __future__ import annotations

import random
from typing import Any

import pytest
import torch
from torch import Tensor

from farshore.base.trees import copied, tensors
from farshore.data.domain import Domain
from farshore.errors import FarshoreError
from farshore.learner.learner import Learner
from farshore.testing import differences, toy_images, toy_rows
from farshore.testing.toys import toy_image_network

SETTINGS: dict[str, dict[str, Any]] = {"ridge": {"random_features": 20}, "slda": {}, "ncm": {}}
NAMES = tuple("abcdefg")
SOAK = pytest.mark.soak


def domain(name: str, rows: int = 0) -> Domain:
    number = NAMES.index(name)
    # Unequal numbers of rows, so that no mean over domains passes for one over rows.
    drawn = toy_rows(number, rows=rows or 60 + 13 * number, classes=3)
    return Domain.divided(name, *drawn, seed=number)


def learned(names: str, method: str = "ridge", **changes: Any) -> Learner:
    settings = {**SETTINGS.get(method, {}), **changes.pop("settings", {})}
    arguments = {"classes": [0, 1, 2], "preprocess": "none", **changes}
    learner = Learner("mlp", method, settings=settings, **arguments)
    for name in names:
        learner.learn_domain(domain(name), steps=1)
    return learner


def state(learner: Learner) -> dict[str, Any]:
    """All that is kept, by domain: the order in which domains were learned is told apart."""
    kept = copied(learner.system.state_dict())
    kept["sums"] = dict(sorted(zip(kept.pop("domains"), kept["sums"], strict=True)))
    kept["origins"] = dict(sorted(kept["origins"].items()))
    return kept


def relative(first: Tensor, second: Tensor) -> float:
    return float((first - second).abs().max() / second.abs().max())


@pytest.mark.parametrize("partitions", [10, pytest.param(100, marks=SOAK)])
@pytest.mark.parametrize("method", SETTINGS)
def test_any_partition_in_any_order_equals_learning_all_in_one_place(
    method: str, partitions: int
) -> None:
    chance = random.Random(method)
    alone = {name: learned(name, method) for name in NAMES}
    pooled = learned("".join(NAMES), method)
    probe = toy_rows(99, rows=50, classes=3)[0]
    for number in range(partitions):
        order = chance.sample(NAMES, len(NAMES))
        places = chance.randint(2, len(NAMES))
        # Each place joins its own sites first, then all places are joined.
        cuts = sorted(chance.sample(range(1, len(NAMES)), places - 1))
        parts = [order[low:high] for low, high in zip([0, *cuts], [*cuts, None], strict=True)]
        made = []
        for part in parts:
            place = restored(alone[part[0]])
            if part[1:]:
                place.join(*(alone[name] for name in part[1:]))
            made.append(place)
        made[0].join(*made[1:])
        assert differences(state(pooled), state(made[0])) == []
        assert relative(made[0].logits(probe), pooled.logits(probe)) <= 1e-9
        if number % 20 == 7:
            gone = chance.choice(NAMES)
            made[0].forget(gone)
            rest = learned("".join(name for name in NAMES if name != gone), method)
            assert differences(state(rest), state(made[0])) == []


def restored(learner: Learner) -> Learner:
    config = {name: value for name, value in learner.config.items() if name != "train"}
    again = Learner(**config)
    again.load_state_dict(copied(learner.state_dict()))
    return again


@pytest.mark.parametrize("method", SETTINGS)
def test_forgetting_is_the_inverse_of_joining(method: str) -> None:
    first, second = learned("abc", method), learned("de", method)
    before = state(first)
    sums = [tensor for each in second.system.state_dict()["sums"] for tensor in each.values()]
    first.join(second)
    first.forget("d")
    assert differences(state(learned("abce", method)), state(first)) == []
    first.forget("e")
    assert differences(before, state(first)) == []
    left = [each for each in tensors(first.state_dict()) if each.numel() > 1]
    assert not any(torch.equal(one, other) for one in left for other in sums if other.numel() > 1)


def test_many_domains_are_grouped_as_if_learned_in_one_place() -> None:
    """More than 100 domains are left out in groups that follow from their names."""

    def many(numbers: range) -> Learner:
        learner = Learner("mlp", "ncm", classes=[0, 1, 2], preprocess="none")
        for number in numbers:
            rows = Domain.divided(f"site {number}", *toy_rows(number, rows=40, classes=3))
            learner.learn_domain(rows, steps=1)
        return learner

    left, right = many(range(70)), many(range(70, 125))
    right.join(left)
    assert differences(state(many(range(125))), state(right)) == []


REFUSED = {
    "method": ({"method": "slda"}, "the method is slda there, ridge here"),
    "width": ({"settings": {"random_features": 21}}, "the setting random_features is 21 there"),
    "setting": ({"settings": {"strength": 1.0}}, "the setting strength is 1.0 there, None here"),
    "weighting": (
        {"settings": {"class_weight": "balanced"}},
        "the setting class_weight is balanced there, none here",
    ),
    "seed": ({"seed": 1}, "the seed is 1 there, 0 here"),
    "classes": ({"classes": [0, 1, 2, 3]}, "the classes are 0, 1, 2, 3 there, 0, 1, 2 here"),
    "metric": ({"metric": "macro_f1"}, "the metric is macro_f1 there"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_every_difference_is_refused_by_name(what: str) -> None:
    changes, words = REFUSED[what]
    first = learned("ab")
    before = state(first)
    with pytest.raises(FarshoreError) as refused:
        first.join(learned("cd", **changes))
    assert words in str(refused.value)
    assert "began with the same template" in str(refused.value)
    assert differences(before, state(first)) == []


def test_settings_of_the_machine_make_no_difference() -> None:
    first = learned("ab")
    first.join(learned("cd", settings={"threads": 1}))
    assert [each["name"] for each in first.domains] == ["a", "b", "c", "d"]


def test_rows_of_another_width_are_refused() -> None:
    other = Learner("mlp", "ncm", classes=[0, 1, 2], preprocess="none")
    x, y = toy_rows(3, rows=60, classes=3)
    other.learn_domain(Domain.divided("d", torch.cat([x, x], dim=1), y), steps=1)
    with pytest.raises(FarshoreError, match="rows have the shape"):
        learned("ab", "ncm").join(other)


def test_features_of_another_library_are_refused() -> None:
    """The same projection, but features that were computed in another way when it was learned."""
    other = learned("cd")
    other.system.origins["d"]["probe"] = other.system.origins["d"]["probe"] * 1.01
    with pytest.raises(FarshoreError, match="features of 'd' were computed in another way"):
        learned("ab").join(other)
    drawn_otherwise = learned("cd")
    drawn_otherwise.system.model.projection.mul_(1.01)
    with pytest.raises(FarshoreError, match="the random projection that gives the features"):
        learned("ab").join(drawn_otherwise)


def test_rounding_of_another_processor_is_not() -> None:
    other = learned("cd")
    for kept in other.system.origins.values():
        kept["probe"] = kept["probe"] * (1 + 1e-6)
    learned("ab").join(other)


def test_another_network_is_refused() -> None:
    def images(seed: int, name: str) -> Learner:
        torch.manual_seed(seed)
        learner = Learner(toy_image_network(), "ncm", classes=[0, 1], preprocess="none")
        learner.learn_domain(Domain.divided(name, *toy_images(0)), steps=1)
        return learner

    first, other = images(0, "a"), images(0, "b")
    first.join(other, allow_small=True)
    changed = images(0, "c")
    with torch.no_grad():
        next(changed.system.base.parameters()).add_(1.0)
    with pytest.raises(FarshoreError, match="the network that gives the features"):
        first.join(changed, allow_small=True)


def test_methods_that_keep_no_sums_say_which_ones_do() -> None:
    for method in ("er", "best"):
        learner = Learner("mlp", method, classes=[0, 1, 2], preprocess="none")
        learner.learn_domain(domain("a"), steps=2)
        with pytest.raises(FarshoreError, match="choose ridge, slda or ncm when you make the temp"):
            learner.join(learner)
    tuned = learned("a", settings={"first_domain_tuning": True})
    with pytest.raises(FarshoreError, match="first_domain_tuning"):
        tuned.join(learned("b", settings={"first_domain_tuning": True}))


def test_the_same_domain_twice_is_refused() -> None:
    with pytest.raises(FarshoreError, match="'b' is in learner 1 and in learner 3, and would"):
        learned("ab").join(learned("c"), learned("db"))


@pytest.mark.parametrize("method", SETTINGS)
def test_sums_of_few_rows_are_refused_unless_allowed(method: str) -> None:
    small = Learner("mlp", method, settings=SETTINGS[method], classes=[0, 1, 2], preprocess="none")
    x, y = toy_rows(3, rows=10, classes=3)
    small.learn_domain(Domain.divided("few", x, y), steps=1)
    width = len(small.system.model.weight)
    known = learned("ab", method)
    with pytest.raises(FarshoreError) as refused:
        known.join(small)
    words = f"fewer than their {width} features" if width > 8 else "a class has only"
    assert words in str(refused.value)
    assert "--allow-small" in str(refused.value)
    known.join(small, allow_small=True)


def test_one_row_of_a_class_is_refused_however_many_others_there_are() -> None:
    x, y = toy_rows(3, rows=200, classes=2)
    y[17] = 2
    rare = Learner("mlp", "ncm", classes=[0, 1, 2], preprocess="none")
    rare.learn_domain(Domain.divided("rare", x, y, validation=0), steps=1)
    with pytest.raises(FarshoreError, match="a class has only 1 training rows"):
        learned("ab", "ncm").join(rare)


def test_a_state_without_origins_is_read_and_not_joined() -> None:
    old = learned("cd")
    stored = copied(old.state_dict())
    del stored["system"]["origins"]
    old.load_state_dict(stored)
    with pytest.raises(FarshoreError, match="learned by an older version of farshore"):
        learned("ab").join(old)
