"""SHOT++: information maximisation, clustering, the stages and what each may change."""

from __future__ import annotations

import inspect
import math

import pytest
import torch
from adapted import adapt, changed, source_model, target_inputs
from torch import nn

from farshore.adaptation.shot import (
    SHOTPP,
    confident_rows,
    decay,
    decay_factor,
    descent,
    epochs,
    information,
    mix,
    mixmatch_loss,
    pseudo_labels,
    sharpen,
)
from farshore.data.inputs import Inputs
from farshore.training.profiles import PROFILES

FAST = {"adaptation_batch": 10, "labelling_batch": 6, "hypothesis_epochs": 2, "labelling_epochs": 2}


def built(**settings) -> SHOTPP:
    return SHOTPP(SHOTPP.Settings.build({**FAST, **settings}))


def tensor(values) -> torch.Tensor:
    return torch.tensor(values, dtype=torch.float64)


def test_information_maximisation() -> None:
    diverse = tensor([[0.9, 0.1], [0.1, 0.9]])
    assert float(information(diverse)) == pytest.approx(-0.36806, abs=1e-5)
    certain = -(diverse * (diverse + 1e-5).log()).sum(1).mean()
    assert float(certain) == pytest.approx(0.32506, abs=1e-5)
    assert float(certain - information(diverse)) == pytest.approx(0.69313, abs=1e-5)
    assert float(information(tensor([[0.9, 0.1], [0.9, 0.1]]))) == pytest.approx(
        0, abs=1e-12
    )  # collapse is not rewarded
    assert float(information(tensor([[0.5, 0.5], [0.5, 0.5]]))) == pytest.approx(0, abs=1e-12)


def test_clustering_corrects_a_prediction() -> None:
    features = tensor([[1, 0], [0.9, 0.1], [0, 1], [0.2, 0.8]])
    probabilities = tensor([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    assert probabilities.argmax(1).tolist() == [0, 0, 1, 0]
    assert pseudo_labels(features, probabilities).tolist() == [0, 0, 1, 1]


def test_clustering_equals_a_loop() -> None:
    generator = torch.Generator().manual_seed(3)
    features = torch.randn(25, 4, generator=generator, dtype=torch.float64)
    probabilities = torch.randn(25, 5, generator=generator, dtype=torch.float64).softmax(1)
    probabilities[:, 4] = 0  # a class that is nobody's prediction
    places = [torch.cat([row, torch.ones(1, dtype=torch.float64)]) for row in features]
    places = [place / place.norm() for place in places]
    weights = probabilities.tolist()
    for _ in range(2):
        centroids = {}
        for label in set(probabilities.argmax(1).tolist()):
            total = sum(row[label] for row in weights)
            if total > 0:
                centroids[label] = (
                    sum(row[label] * place for row, place in zip(weights, places, strict=True))
                    / total
                )
        labels = [
            max(centroids, key=lambda k, p=place: float(p @ centroids[k] / centroids[k].norm()))
            for place in places
        ]
        weights = [[float(label == k) for k in range(5)] for label in labels]
    assert pseudo_labels(features, probabilities).tolist() == labels
    assert 4 not in labels


def test_learning_rates_decay() -> None:
    assert [decay_factor(done) for done in (0, 0.5, 1)] == pytest.approx(
        [1, 0.26085, 0.16556], abs=1e-5
    )
    optimizer = descent((nn.ParameterList([nn.Parameter(torch.ones(1))]), 0.02))
    for _ in range(2):  # from the first rate, not from the last one
        decay(optimizer, 0.5)
        assert optimizer.param_groups[0]["lr"] == pytest.approx(0.02 * 0.26085, abs=1e-6)
    group = optimizer.param_groups[0]
    assert (group["momentum"], group["nesterov"], group["weight_decay"]) == (0.9, True, 1e-3)


def test_every_epoch_takes_every_row_once_in_another_order() -> None:
    parts = list(epochs(21, 3, 7, torch.Generator().manual_seed(0)))
    assert [len(part) for part in parts] == [7] * 7
    first, second = torch.cat(parts[:3]), torch.cat(parts[3:6])
    assert sorted(first.tolist()) == sorted(second.tolist()) == list(range(21))
    assert first.tolist() != second.tolist()


def test_sharpening() -> None:
    assert sharpen(tensor([[0.6, 0.4]]), 0.5)[0].tolist() == pytest.approx(
        [0.69231, 0.30769], abs=1e-5
    )
    assert sharpen(tensor([[0.6, 0.4]]), 1.0)[0].tolist() == pytest.approx([0.6, 0.4])


def test_the_surest_rows_of_every_class_count_as_labelled() -> None:
    entropies = tensor([0.1, 0.2, 0.3, 1.0])
    assert confident_rows(entropies, torch.zeros(4, dtype=torch.long)).tolist() == [
        True,
        True,
        True,
        False,
    ]  # share .75
    # The share holds in each class: three of four, and int(.75 * 2) = 1 of two.
    entropies = tensor([0.1, 0.2, 0.3, 9.0, 9.0, 0.25, 0.26, 0.27])
    predicted = torch.tensor([0, 0, 0, 0, 1, 1, 2, 2])
    assert confident_rows(entropies, predicted).tolist() == [
        True,
        True,
        True,
        False,
        False,
        True,
        True,
        False,
    ]
    assert not bool(confident_rows(tensor([0.5, 0.5]), torch.tensor([0, 1])).any())


def test_mixing_and_its_loss() -> None:
    inputs, targets = tensor([[1.0], [3.0]]), tensor([[1.0, 0.0], [0.0, 1.0]])
    mixed, mixed_targets = mix(inputs, targets, 0.75, torch.tensor([1, 0]))
    assert mixed[:, 0].tolist() == pytest.approx([1.5, 2.5])
    assert mixed_targets.tolist() == [[0.75, 0.25], [0.25, 0.75]]
    logits = tensor([[0.0, 0.0], [math.log(3), 0.0]])
    loss = mixmatch_loss(logits, mixed_targets, labelled=1, weight=10)
    assert float(loss) == pytest.approx(
        math.log(2) + 10 * 0.25
    )  # soft labels cost ln 2; (.75 - .25)² in both classes


@pytest.mark.parametrize("kind", ["group", "batch", "none"])
def test_hypothesis_transfer_leaves_the_classifier(kind: str) -> None:
    network, inputs = source_model(kind), target_inputs(kind)
    built().hypothesis_transfer(network, Inputs(inputs), torch.Generator().manual_seed(0))
    moved = changed(source_model(kind), network)
    assert not [name for name in moved if name.startswith("classifier")]
    assert moved >= {name for name, _ in network.named_parameters() if name.startswith("features")}
    assert not any(parameter.requires_grad for parameter in network.parameters())
    assert not network.training


def test_labelling_transfer_moves_features_and_classifier() -> None:
    network, inputs = source_model("group"), target_inputs("group")
    built().labelling_transfer(network, Inputs(inputs), torch.Generator().manual_seed(0))
    assert changed(source_model("group"), network) == {
        name for name, _ in network.named_parameters()
    }


def test_hypothesis_transfer_makes_rows_certain_and_diverse() -> None:
    network, inputs = source_model("group"), target_inputs("group", 60)
    before = float(information(network(inputs).softmax(1)))
    built(hypothesis_epochs=15, rotation_weight=0).hypothesis_transfer(
        network, Inputs(inputs), torch.Generator().manual_seed(0)
    )
    assert float(information(network(inputs).softmax(1))) < before - 0.05


def test_the_first_step_is_the_gradient_of_all_three_losses() -> None:
    """By hand: IM, pseudo-labels and the rotation head, whose loss reaches f through the turned
    images alone.
    """
    network, inputs = source_model("group"), target_inputs("group", 10)
    adaptation = built(stage_steps=1, rotation_weight=0.5, pseudo_label_weight=0.4)
    head = adaptation.rotation_head(network, Inputs(inputs), torch.Generator().manual_seed(0))
    generator = torch.Generator().manual_seed(0)
    adaptation.hypothesis_transfer(network, Inputs(inputs), generator)

    twin = source_model("group")
    twin.features.requires_grad_(True)
    generator = torch.Generator().manual_seed(0)
    adaptation.rotation_head(twin, Inputs(inputs), generator)
    rows = torch.randperm(10, generator=generator)
    turns = torch.randint(4, (10,), generator=generator)
    labels = adaptation.label(twin, Inputs(inputs))[rows]
    x = inputs[rows]
    features = twin.extract(x)
    p = twin.classifier(features).softmax(1)
    turned = torch.stack(
        [torch.rot90(image, int(turn), dims=(1, 2)) for image, turn in zip(x, turns, strict=True)]
    )
    seen = torch.cat([features.detach(), twin.extract(turned)], dim=1)
    certain = -(p * (p + 1e-5).log()).sum(1).mean()
    diverse = -(p.mean(0) * (p.mean(0) + 1e-5).log()).sum()
    loss = (
        certain
        - diverse
        + 0.4 * nn.functional.nll_loss(p.log(), labels)
        + 0.5 * nn.functional.cross_entropy(head(seen), turns)
    )
    parameters = list(twin.features.parameters())
    gradients = torch.autograd.grad(loss, parameters)
    for old, gradient, new in zip(
        parameters, gradients, network.features.parameters(), strict=True
    ):
        # The first step of SGD with Nesterov momentum moves by 1.9 times the gradient (with weight
        # decay).
        torch.testing.assert_close(
            new, old.detach() - 0.01 * 1.9 * (gradient + 1e-3 * old.detach()), rtol=1e-3, atol=1e-6
        )


def test_the_rotation_head_learns_to_tell_turns() -> None:
    inputs = torch.zeros(40, 1, 8, 8, dtype=torch.uint8)
    inputs[:, :, :3] = torch.randint(
        150, 255, (40, 1, 3, 8), generator=torch.Generator().manual_seed(0)
    ).to(torch.uint8)  # bright top
    network = source_model("batch")
    head = built(hypothesis_epochs=60).rotation_head(
        network, Inputs(inputs), torch.Generator().manual_seed(0)
    )
    still = network.extract(inputs)
    right = [
        head(torch.cat([still, network.extract(torch.rot90(inputs, turn, dims=(2, 3)))], 1)).argmax(
            1
        )
        == turn
        for turn in range(4)
    ]
    assert float(torch.cat(right).double().mean()) > 0.9
    assert changed(source_model("batch"), network) == set()


def test_rotation_is_for_square_images_and_can_be_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    real = SHOTPP.rotation_head
    monkeypatch.setattr(
        SHOTPP, "rotation_head", lambda self, *rest: (asked.append(1), real(self, *rest))[1]
    )
    adapt("shot++", source_model("group"), target_inputs("group"), **FAST)
    assert len(asked) == 1
    adapt("shot++", source_model("group"), target_inputs("group"), rotation_weight=0, **FAST)
    adapt("shot++", source_model("group"), target_inputs("group")[:, :, :6], **FAST)
    adapt("shot++", source_model("none"), target_inputs("none"), **FAST)
    assert len(asked) == 1


def test_labels_come_from_predictions_alone() -> None:
    assert set(inspect.signature(SHOTPP.adapt).parameters) == {
        "self",
        "network",
        "target",
        "generator",
    }
    inputs = Inputs(target_inputs("group"))
    assert not [name for name in dir(inputs) if "label" in name]


@pytest.mark.parametrize("kind", ["group", "batch", "layer", "none"])
def test_the_whole_way_is_deterministic_and_finite(kind: str) -> None:
    runs = [
        adapt("shot++", source_model(kind), target_inputs(kind), seed=seed, **FAST)[0]
        for seed in (0, 0, 1)
    ]
    assert torch.equal(runs[0], runs[1])
    assert not torch.equal(runs[0], runs[2])
    assert bool(torch.isfinite(runs[0]).all())


def test_noise_on_tables_and_a_fresh_classifier_are_settings() -> None:
    plain, _, _ = adapt("shot++", source_model("none"), target_inputs("none"), **FAST)
    noisy, _, _ = adapt(
        "shot++", source_model("none"), target_inputs("none"), table_noise=0.1, **FAST
    )
    assert not torch.equal(plain, noisy)
    _, fresh, _ = adapt(
        "shot++", source_model("none"), target_inputs("none"), labelling_classifier="fresh", **FAST
    )
    _, kept, _ = adapt("shot++", source_model("none"), target_inputs("none"), **FAST)
    source = source_model("none").classifier.weight
    assert float((kept.classifier.weight - source).norm()) < float(
        (fresh.classifier.weight - source).norm()
    )


@pytest.mark.parametrize("rows", [1, 2, 11])
def test_few_rows(rows: int) -> None:
    for kind in ("batch", "none"):
        logits, _, _ = adapt("shot++", source_model(kind), target_inputs(kind, rows), **FAST)
        assert logits.shape == (rows, 3)
        assert bool(torch.isfinite(logits).all())


def test_steps_can_be_bounded_and_stages_left_out() -> None:
    _, none, _ = adapt(
        "shot++",
        source_model("group"),
        target_inputs("group"),
        hypothesis_epochs=0,
        labelling_epochs=0,
    )
    assert changed(source_model("group"), none) == set()
    assert built(stage_steps=5)._plan(100, 10, 15) == (10, 5)
    assert built()._plan(101, 10, 15) == (11, 165)


def test_defaults_are_the_repositorys_for_digits_and_for_objects() -> None:
    digits, objects = (
        SHOTPP.Settings.defaults(PROFILES.get(profile), SHOTPP.name)
        for profile in ("default", "large-data")
    )
    names = ("pseudo_label_weight", "rotation_weight", "mixup", "labelling_epochs", "feature_rate")
    assert [digits[name] for name in names] == [0.1, 0.2, 0.1, 30, 1.0]
    assert [objects[name] for name in names] == [0.3, 0.6, 0.75, 50, 0.1]
    assert (digits["hypothesis_epochs"], digits["adaptation_batch"], digits["labelling_batch"]) == (
        15,
        64,
        36,
    )
