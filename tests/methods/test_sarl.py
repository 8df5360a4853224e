"""SARL: its terms by hand, when they act, and what is inert without new classes."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn
from torch.nn.functional import normalize

import farshore
from farshore.learner.learner import Learner
from farshore.learner.loading import load
from farshore.methods.priors import class_sums
from farshore.methods.sarl import SARL, SARLSettings, semantic_ratio
from farshore.networks.winners import KWinners
from farshore.settings import Choice, UniformInt
from farshore.training.profiles import PROFILES


def ratio(near: int, far: int) -> float:
    means = torch.tensor([[1.0, 0.0], [0.0, 0.0], [0.0, 0.0]], dtype=torch.float64)
    references = torch.tensor([[0.0, 0.0], [0.8, 0.6], [0.0, 1.0]], dtype=torch.float64)
    masks = torch.zeros(2, 3, 3, dtype=torch.bool)
    masks[0, 0, near] = masks[1, 0, far] = True
    return float(semantic_ratio(means, references, *masks))


def test_semantic_ratio() -> None:
    assert ratio(1, 2) == pytest.approx(0.2)
    assert ratio(2, 1) == pytest.approx(5.0)


def test_without_far_classes_the_semantic_term_is_off() -> None:
    means = torch.rand(3, 4, requires_grad=True)
    every, none = torch.ones(3, 3, dtype=torch.bool), torch.zeros(3, 3, dtype=torch.bool)
    value = semantic_ratio(means, torch.rand(3, 4), every, none)
    value.backward()
    assert float(value.detach()) == 0
    assert means.grad.tolist() == torch.zeros(3, 4).tolist()


def test_class_sums() -> None:
    sums, counts = class_sums(
        torch.tensor([[3.0, 4.0], [0.0, 2.0], [5.0, 0.0]]), torch.tensor([1, 1, 0]), 3
    )
    assert sums.tolist() == [[5, 0], [3, 6], [0, 0]]
    assert counts.tolist() == [1, 2, 0]


def domain(number: int, classes: int = 3, rows: int = 60) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(number)
    y = torch.arange(rows) % classes
    return 3 * torch.eye(classes, 4)[y] + 0.4 * torch.randn(
        rows, 4, generator=generator
    ) + 0.5 * number, y


def trained(
    domains: int = 3, steps: int = 6, observer: farshore.Observer | None = None, **settings: object
) -> Learner:
    settings = {"batch_size": 8, "warmup_steps": 2, **settings}
    learner = Learner(
        method="sarl",
        memory=12,
        settings=settings,
        network_settings={"width": 8},
        observer=observer,
        preprocess="none",
    )
    for number in range(domains):
        learner.learn(*domain(number), domain=f"{number}", steps=steps, validation=0)
    return learner


def weights(learner: Learner) -> Tensor:
    return torch.cat([p.detach().flatten() for p in learner.system.method.network.parameters()])


class Watch(farshore.Observer):
    def __init__(self) -> None:
        self.seen: dict[tuple[str, int], dict[str, float]] = {}

    def step(self, domain: str, step: int, terms) -> None:
        self.seen[domain, step] = {name: float(term.detach()) for name, term in terms.items()}


def test_when_the_terms_act() -> None:
    watch = Watch()
    trained(domains=2, observer=watch)
    assert all(set(watch.seen["0", step]) == {"erm"} for step in range(6))
    early = {"erm", "replay", "logits", "prototypes"}
    assert [set(watch.seen["1", step]) for step in range(6)] == 2 * [early] + 4 * [
        early | {"stable", "semantics"}
    ]
    assert all(term >= 0 for terms in watch.seen.values() for term in terms.values())


@pytest.mark.parametrize("changed", [{"similarity": -1.0}, {"semantic_weight": 1.0}])
def test_the_published_semantics_are_inert_and_the_default_acts(changed: dict[str, float]) -> None:
    assert torch.equal(
        weights(trained(semantics="classes")), weights(trained(semantics="classes", **changed))
    )
    base = {"similarity": 0.99, "semantic_weight": 0.5}
    assert not torch.equal(weights(trained(**base)), weights(trained(**{**base, **changed})))


@pytest.mark.parametrize("name", ["logit_weight", "stable_weight", "prototype_weight"])
def test_each_weight_acts_from_the_second_domain_on(name: str) -> None:
    assert torch.equal(weights(trained(domains=1)), weights(trained(domains=1, **{name: 0.0})))
    assert not torch.equal(weights(trained()), weights(trained(**{name: 0.0})))


def test_a_new_class_is_pulled_by_the_published_semantics() -> None:
    def run(weight: float) -> tuple[Tensor, Watch]:
        watch = Watch()
        settings = {
            "batch_size": 16,
            "warmup_steps": 1,
            "semantics": "classes",
            "semantic_weight": weight,
            "similarity": 0.8,
        }
        learner = Learner(
            method="sarl",
            memory=12,
            settings=settings,
            network_settings={"width": 8},
            classes=[0, 1, 2],
            observer=watch,
            preprocess="none",
        )
        learner.learn(*domain(0, classes=2), domain="0", steps=200)
        learner.learn(*domain(1), domain="1", steps=4)
        return weights(learner), watch

    weak, watch = run(0.01)
    assert watch.seen["1", 3]["semantics"] > 0
    assert not torch.equal(weak, run(1.0)[0])


def test_groups_hold_the_class_itself_and_similar_ones() -> None:
    learner = trained(domains=1, similarity=0.8)
    method = learner.system.method
    assert isinstance(method, SARL)
    method.before_domain("next")
    method.sums, method.counts = torch.eye(3, 8), torch.ones(3)
    method.seen_sums = torch.zeros(3, 8)
    method.seen_sums[0, :2] = torch.tensor(
        [0.7, 0.9]
    )  # cosine 0.61 with class 0 and 0.79 with class 1
    method.seen_sums[1, :2] = torch.tensor([0.9, 0.6])  # cosine 0.83 with class 0
    method._group()
    assert method.together.tolist() == [
        [True, False, False],
        [True, True, False],
        [False, False, True],
    ]


def test_prototypes_are_means_over_the_domains() -> None:
    learner = trained(domains=1)
    method = learner.system.method
    x, y = domain(0)
    first = normalize(features(learner, x), dim=1)
    means = torch.stack([first[y == c].mean(dim=0) for c in range(3)])
    torch.testing.assert_close(method._prototypes(), means)
    more, labels = domain(7, rows=30)
    learner.learn(more, labels, domain="more", steps=3, validation=0)
    second = normalize(features(learner, more), dim=1)
    expected = torch.stack(
        [(20 * means[c] + 10 * second[labels == c].mean(dim=0)) / 30 for c in range(3)]
    )
    torch.testing.assert_close(method._prototypes(), expected)
    assert float(method._prototypes().norm(dim=1).max()) <= 1 + 1e-6


def features(learner: Learner, x: Tensor) -> Tensor:
    with torch.no_grad():
        return learner.system.method.network.eval().extract(x)


def test_prototypes_of_the_first_domain_stay_where_that_is_chosen() -> None:
    one, three = (
        trained(domains=1, prototypes="first").system.method,
        trained(domains=3, prototypes="first").system.method,
    )
    assert torch.equal(one._prototypes(), three._prototypes())
    assert not torch.equal(one._prototypes(), trained(domains=3).system.method._prototypes())


def test_the_frozen_model_is_the_one_of_the_last_domain() -> None:
    learner = trained(domains=1)
    method, x = learner.system.method, domain(3)[0]
    torch.testing.assert_close(method.old(x), learner.logits(x), rtol=0, atol=0)
    before = {name: tensor.clone() for name, tensor in method.old.state_dict().items()}
    method.after_domain = lambda *_: None
    learner.learn(*domain(3), domain="next", steps=5)
    assert all(
        torch.equal(tensor, before[name]) for name, tensor in method.old.state_dict().items()
    )
    assert all(parameter.grad is None for parameter in method.old.parameters())


def test_batchnorm_sees_the_memory_after_the_copy() -> None:
    torch.manual_seed(0)
    features = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU())
    network = farshore.Network(features, nn.Linear(6, 3))
    learner = Learner(network, "sarl", memory=20, settings={"batch_size": 8}, preprocess="none")
    learner.learn(*domain(0), domain="a", steps=5)
    layer = learner.system.method.network.features[1]
    assert int(layer.num_batches_tracked) == 5 + 20 // 8
    kept = learner.system.method.old.features[1]
    assert int(kept.num_batches_tracked) == 5
    assert torch.equal(kept.weight, layer.weight)


def test_sparse_activations_in_training_and_prediction(tmp_path: Path) -> None:
    learner = trained(winners=0.5)
    layer = next(
        module
        for module in learner.system.method.predictor().modules()
        if isinstance(module, KWinners)
    )
    seen: list[Tensor] = []
    layer.register_forward_hook(lambda _module, _inputs, output: seen.append(output))
    before = learner.logits(domain(0)[0])
    assert int((seen[0] > 0).sum(dim=1).max()) <= 4
    learner.save(tmp_path)
    assert torch.equal(load(tmp_path).logits(domain(0)[0]), before)


def test_goes_on_after_loading(tmp_path: Path) -> None:
    straight, learner = trained(), trained(domains=2)
    learner.save(tmp_path)
    learner = load(tmp_path)
    learner.learn(*domain(2), domain="2", steps=6, validation=0)
    assert torch.equal(weights(straight), weights(learner))


def test_the_papers_table() -> None:
    defaults, searched = SARLSettings.defaults(), SARLSettings.distributions()
    names = (
        "logit_weight",
        "stable_weight",
        "prototype_weight",
        "similarity",
        "semantic_weight",
        "warmup_steps",
    )
    assert [defaults[name] for name in names] == [1.0, 1.0, 1.0, 0.8, 0.01, 100]
    assert searched["logit_weight"] == searched["prototype_weight"] == Choice((0.2, 0.5, 1.0))
    assert searched["warmup_steps"] == UniformInt(0, 1000)
    long = PROFILES.get("long-training")
    assert SARLSettings.defaults(long, "sarl")["warmup_steps"] == 500
    assert SARLSettings.distributions(long, "sarl")["warmup_steps"] == UniformInt(0, 2500)
    assert not {"stable_weight", "similarity", "semantic_weight"} & set(searched)
