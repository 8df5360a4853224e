"""The learner: learning, predicting, errors, saving, and resuming bit for bit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from torch import nn

import farshore
from farshore.errors import FarshoreError, SealedTargetError, StateError
from farshore.learner.learner import Learner
from farshore.learner.loading import load
from farshore.testing import differences, toy_learned, toy_rows
from farshore.training import trainer
from farshore.training.batches import replay_plan

FAST = {"batch_size": 8, "learning_rate": 0.01}


def learner(**options: object) -> Learner:
    return Learner(
        **{
            "network": "mlp",
            "method": "er",
            "memory": 20,
            "settings": FAST,
            "network_settings": {"width": 16},
            "preprocess": "none",
            **options,
        }
    )


def test_it_learns_and_predicts_labels_as_they_were_given(blobs) -> None:
    x, y = blobs(0, rows=80, classes=3)
    names = np.array(["cat", "dog", "eel"])[y.numpy()]
    made = learner()
    scores = made.learn(x.numpy(), names, domain="a", steps=60)
    assert scores["validation accuracy"] > 0.9
    assert (made.predict(x.numpy()) == names).mean() > 0.9
    probabilities = made.predict_proba(pd.DataFrame(x.numpy()))
    assert probabilities.shape == (80, 3)
    assert np.allclose(probabilities.sum(axis=1), 1, atol=1e-5)


def test_replay_retains_what_fine_tuning_forgets(blobs) -> None:
    """Labels swap their meaning along one axis; only the method with a memory retains the first
    domain.
    """
    x, y = blobs(0, rows=100)
    kept = {}
    for method in ("finetune", "er"):
        made = learner(method=method, memory=40)
        made.learn(x, y, domain="a", steps=80)
        made.learn(-x, y, domain="b", steps=80)
        kept[method] = float((made.predict(x) == y.numpy()).mean())
    assert kept["er"] > 0.9
    assert kept["finetune"] < kept["er"] - 0.2


def test_large_rows_are_scored_in_small_batches_with_the_same_result(
    blobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = learner()
    x, y = blobs(0, rows=90, classes=3)
    model.learn(x, y, domain="a", steps=3)
    whole, sizes = model.logits(x), []
    monkeypatch.setitem(trainer.EVALUATION_VALUES, "cpu", 20 * x.shape[1])
    model.system.predictor().register_forward_pre_hook(
        lambda _, inputs: sizes.append(len(inputs[0]))
    )
    torch.testing.assert_close(model.logits(x), whole, rtol=1e-5, atol=1e-6)
    assert sizes == [18, 18, 18, 18, 18]


def test_same_seed_same_weights_other_seed_others(blobs) -> None:
    states = []
    for seed in (0, 0, 1):
        made = learner(seed=seed)
        for number in range(2):
            made.learn(*blobs(number), domain=f"d{number}", steps=5)
        states.append(made.state_dict())
    assert differences(states[0], states[1]) == []
    assert differences(states[0]["system"]["network"], states[2]["system"]["network"]) != []


def test_nothing_depends_on_or_moves_the_global_generators(blobs) -> None:
    torch.manual_seed(1)
    np.random.seed(1)
    first = learner()
    first.learn(*blobs(0), domain="a", steps=5)
    torch.manual_seed(2)
    np.random.seed(2)
    before = torch.get_rng_state()
    second = learner()
    second.learn(*blobs(0), domain="a", steps=5)
    assert torch.equal(before, torch.get_rng_state())
    assert differences(first.state_dict(), second.state_dict()) == []


SCRIPT = """
import sys, torch, farshore
torch.set_num_threads(1)
folder, number = sys.argv[1], int(sys.argv[2])
data = torch.load(folder + f"/data{number}.pt")
settings = {"batch_size": 8, "learning_rate": 0.01}
new = farshore.Learner("mlp", "er", 20, settings=settings, network_settings={"width": 16})
learner = farshore.load(folder + "/model") if number else new
learner.learn(data["x"], data["y"], domain=f"d{number}", steps=12)
learner.save(folder + "/model")
"""


@pytest.mark.soak
def test_learning_on_in_a_new_process_equals_one_process_bit_for_bit(blobs, tmp_path: Path) -> None:
    one = learner(preprocess="columns")
    for number in range(3):
        x, y = blobs(number)
        torch.save({"x": x, "y": y}, tmp_path / f"data{number}.pt")
        one.learn(x, y, domain=f"d{number}", steps=12)
        subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path), str(number)], check=True)
    other = load(tmp_path / "model")
    assert differences(one.state_dict(), other.state_dict()) == []


def test_a_model_that_has_learned_nothing_can_be_saved(tmp_path: Path, blobs) -> None:
    learner(seed=4).save(tmp_path)
    made = load(tmp_path)
    made.learn(*blobs(0), domain="a", steps=3)
    straight = learner(seed=4)
    straight.learn(*blobs(0), domain="a", steps=3)
    assert differences(made.state_dict(), straight.state_dict()) == []


def test_a_users_own_network_is_handed_in_again(tmp_path: Path, blobs) -> None:
    def network() -> farshore.Network:
        torch.manual_seed(0)
        return farshore.Network(nn.Sequential(nn.Linear(4, 9), nn.Tanh()), nn.Linear(9, 2))

    made = learner(network=network(), network_settings=None)
    made.learn(*blobs(0), domain="a", steps=5)
    made.save(tmp_path)
    with pytest.raises(FarshoreError, match="your own network"):
        load(tmp_path)
    back = load(tmp_path, network=network())
    assert np.array_equal(back.predict_proba(blobs(1)[0]), made.predict_proba(blobs(1)[0]))


def test_a_network_with_the_wrong_number_of_classes_is_refused(blobs) -> None:
    made = learner(
        network=farshore.Network(nn.Linear(4, 4), nn.Linear(4, 5)), network_settings=None
    )
    with pytest.raises(FarshoreError, match="5 outputs"):
        made.learn(*blobs(0), domain="a", steps=5)


def test_classes_named_beforehand_may_come_later(blobs) -> None:
    x, y = blobs(0)
    made = learner(classes=[0, 1, 2])
    made.learn(x[y == 0], y[y == 0], domain="a", steps=5)
    made.learn(x, y * 2, domain="b", steps=5)
    assert made.predict_proba(x).shape[1] == 3


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, x, y: m.learn(x, y, domain="a", steps=0), "steps = 0"),
        (lambda m, x, y: m.learn(x[:0], y[:0], domain="a"), "empty"),
        (lambda m, x, y: m.learn(x, y[:-1], domain="a"), "the numbers must be equal"),
        (
            lambda m, x, y: m.learn(x.masked_fill(x > 2, float("nan")), y, domain="a"),
            "NaN or infinite inputs",
        ),
        (lambda m, x, y: m.learn([["a", "b"]] * len(y), y, domain="a"), "give numbers"),
        (lambda m, x, y: m.learn(x, [None] * len(y), domain="a"), "missing in"),
        (lambda m, x, y: m.learn(x, y[:, None], domain="a"), "one label per row"),
        (lambda m, x, y: m.learn(x, y * 0, domain="a"), "one class only"),
        (lambda m, x, y: m.learn(x, y, domain="a", validation=1.0), "leaves no row"),
        (lambda m, x, y: m.predict(x), "has not learned"),
    ],
)
def test_bad_input_is_refused_before_the_first_step(blobs, call, message: str) -> None:
    made = learner()
    with pytest.raises(FarshoreError, match=message):
        call(made, *blobs(0))
    assert made.state_dict()["system"] is None
    assert made.domains == []


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda m, x, y: m.learn(x, y + 5, domain="b"), "classes=\\["),
        (lambda m, x, y: m.learn(x[:, :3], y, domain="b"), "shape \\[3\\]"),
        (lambda m, x, y: m.learn(x.to(torch.uint8), y, domain="b"), "uint8"),
        (lambda m, x, y: m.learn(x, y, domain="a"), "learned before"),
        (lambda m, x, y: m.predict(x[:, :2]), "shape \\[2\\]"),
        (lambda m, x, y: m.predict(x * float("inf")), "NaN or infinite"),
    ],
)
def test_a_later_domain_of_another_form_is_refused_and_nothing_is_lost(
    blobs, call, message: str
) -> None:
    made = learner()
    made.learn(*blobs(0), domain="a", steps=5)
    before = made.state_dict()
    with pytest.raises(FarshoreError, match=message):
        call(made, *blobs(1))
    assert differences(before, made.state_dict()) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "errr"}, "did you mean 'er'"),
        ({"memory": 0}, "at least 1 row"),
        ({"device": "gpu7"}, "unknown device"),
        ({"device": "cuda:99"}, "is not available"),
        ({"settings": {"learning_rate": -1}}, "greater than 0"),
        ({"metric": "f2"}, "macro_f1"),
        ({"preprocess": "scale"}, "'columns' or 'none'"),
    ],
)
def test_a_learner_that_cannot_work_is_refused(options: dict, message: str) -> None:
    with pytest.raises(FarshoreError, match=message):
        learner(**options)


def test_unknown_network_and_its_settings_are_refused_with_the_nearest_name(blobs) -> None:
    with pytest.raises(FarshoreError, match="did you mean 'mlp'"):
        learner(network="mpl").learn(*blobs(0))
    with pytest.raises(FarshoreError, match="did you mean 'width'"):
        learner(network_settings={"widht": 3}).learn(*blobs(0))
    with pytest.raises(FarshoreError, match="width = 0"):
        learner(network_settings={"width": 0}).learn(*blobs(0))
    with pytest.raises(FarshoreError, match="needs images"):
        learner(network="cnn").learn(*blobs(0))


def test_a_memory_smaller_than_the_number_of_domains_is_refused_before_training(blobs) -> None:
    made = learner(memory=1)
    made.learn(*blobs(0), domain="a", steps=5)
    with pytest.raises(FarshoreError, match="smaller than the number of domains"):
        made.learn(*blobs(1), domain="b", steps=5)
    assert made.system.steps_done == 5


def test_divergence_is_an_error_and_names_the_domain(blobs) -> None:
    x, y = blobs(0)
    made = learner(settings={"learning_rate": 1e30, "batch_size": 8})
    with pytest.raises(FarshoreError, match="diverged"):
        made.learn(x * 1e6, y, domain="a", steps=20)


def test_the_observer_sees_every_step_and_the_scores(blobs) -> None:
    class Watch(farshore.Observer):
        def __init__(self) -> None:
            self.steps: list[tuple[str, int, float]] = []
            self.scores: dict[str, dict] = {}

        def step(self, domain, step, terms) -> None:
            self.steps.append((domain, step, float(terms["erm"])))

        def domain(self, domain, scores) -> None:
            self.scores[domain] = dict(scores)

    watch = Watch()
    made = learner(observer=watch)
    for number in range(2):
        made.learn(*blobs(number), domain=f"d{number}", steps=4)
    assert [(domain, step) for domain, step, _ in watch.steps] == [
        (f"d{n}", s) for n in range(2) for s in range(4)
    ]
    assert set(watch.scores) == {"d0", "d1"}
    assert set(watch.scores["d1"]) == {"train accuracy", "validation accuracy"}


@pytest.mark.parametrize(
    ("budget", "size", "past", "least", "expected"),
    [
        ("per-domain", 8, 3, "er", (3, 8)),
        ("total", 8, 3, "er", (3, 2)),
        ("total", 8, 30, "er", (8, 1)),
        ("total", 64, 30, "cl-fishr", (4, 16)),
        ("total", 8, 30, "cl-coral", (1, 8)),
        ("total", 32, 30, "cl-coral", (2, 16)),
        ("total", 32, 30, "cl-andmask", (2, 16)),
        ("total", 2, 5, "cl-coral", (1, 4)),
        ("per-domain", 8, 3, "finetune", (0, 0)),
    ],
)
def test_the_replay_budget(
    blobs, budget: str, size: int, past: int, least: str, expected: tuple[int, int]
) -> None:
    made = learner(method=least, memory=200, settings={"batch_size": size, "replay_budget": budget})
    for number in range(past):
        made.learn(*blobs(number, rows=12), domain=f"d{number}", steps=1)
    assert replay_plan(made.run, made.system.method) == expected
    made.learn(*blobs(past, rows=12), domain="last", steps=1)
    assert made.system.rows_per_step == size + expected[0] * expected[1]


def test_the_memory_contains_rows_with_the_logits_at_the_end_of_the_domain(blobs) -> None:
    made = learner()
    x, y = blobs(0)
    made.learn(x, y, domain="a", steps=5)
    kept = made.system.memory.kept()["a"]
    rows = [int((x == row).all(dim=1).nonzero()[0]) for row in kept["inputs"]]
    assert len(set(rows)) == 20
    assert torch.equal(y[rows], kept["labels"])
    assert torch.allclose(made.logits(kept["inputs"]), kept["logits"], atol=1e-6)


def test_memory_filled_during_training_keeps_the_logits_of_that_moment(blobs) -> None:
    made = learner(settings={**FAST, "memory_fill": "reservoir"})
    made.learn(*blobs(0), domain="a", steps=10)
    kept = made.system.memory.kept()["a"]
    assert len(kept["labels"]) == 20
    assert not torch.allclose(made.logits(kept["inputs"]), kept["logits"], atol=1e-4)
    made.learn(*blobs(1), domain="b", steps=10)
    assert made.system.memory.items == 20


def test_class_balanced_memory(blobs) -> None:
    x, y = blobs(0, rows=90, classes=3)
    many = torch.cat(
        [torch.arange(90)[y == 0], torch.arange(90)[y == 1][:6], torch.arange(90)[y == 2][:6]]
    )
    made = learner(settings={**FAST, "class_balanced_memory": True}, memory=12)
    made.learn(x[many], y[many], domain="a", steps=3, validation=0)
    assert torch.bincount(made.system.memory.kept()["a"]["labels"]).tolist() == [4, 4, 4]


def test_resetting_the_optimizer_each_domain_changes_the_second_domain_only(blobs) -> None:
    states = {}
    for reset in ("never", "domain"):
        made = learner(settings={**FAST, "reset_optimizer": reset})
        made.learn(*blobs(0), domain="a", steps=5)
        first = made.state_dict()["system"]["network"]
        first = {key: value.clone() for key, value in first.items()}
        made.learn(*blobs(1), domain="b", steps=5)
        states[reset] = (first, made.state_dict()["system"]["network"])
    assert differences(states["never"][0], states["domain"][0]) == []
    assert differences(states["never"][1], states["domain"][1]) != []


@pytest.mark.parametrize("optimizer", ["sgd", "adamw"])
def test_other_optimizers(blobs, optimizer: str) -> None:
    made = learner(settings={**FAST, "optimizer": optimizer, "momentum": 0.5})
    made.learn(*blobs(0), domain="a", steps=30)
    assert (made.predict(blobs(0)[0]) == blobs(0)[1].numpy()).mean() > 0.6


def test_the_target_cannot_be_opened_while_a_learner_trains(blobs) -> None:
    from farshore.data.domain import Domain
    from farshore.data.seal import FrozenModel, SealedTarget

    x, y = blobs(0)
    target = SealedTarget("t", lambda: Domain.divided("t", x, y))

    class Thief(farshore.Observer):
        def step(self, domain, step, terms) -> None:
            target.open(FrozenModel(nn.Linear(4, 2)))

    with pytest.raises(SealedTargetError, match="sealed while domain 'a' is training"):
        learner(observer=Thief()).learn(x, y, domain="a", steps=2)
    assert target.opened == []


def test_a_file_in_place_of_a_folder_is_refused(tmp_path: Path, blobs) -> None:
    made = learner()
    made.learn(*blobs(0), domain="a", steps=2)
    (tmp_path / "file").write_text("")
    with pytest.raises(StateError, match="is a file"):
        made.save(tmp_path / "file")
    with pytest.raises(StateError, match="no saved learner"):
        load(tmp_path)


@pytest.mark.parametrize("method", ["er", "sarl", "ridge", "trees", "best"])
def test_logits_and_features_of_one_pass_are_those_of_two(method: str) -> None:
    learner = toy_learned(method, domains=2)
    inputs = torch.as_tensor(toy_rows(2)[0]).float()
    logits, features = learner.logits_and_features(inputs)
    assert torch.equal(logits, learner.logits(inputs))
    torch.testing.assert_close(features, learner.features(inputs))
