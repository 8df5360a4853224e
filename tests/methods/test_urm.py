"""URM: worked losses, what the critic may and may not touch, and joint training that no
continual learner can do.
"""

from __future__ import annotations

import inspect
import math
from pathlib import Path
from typing import Any

import pytest
import torch
from attached import small_network
from torch import Tensor, nn
from torch.optim import SGD

from farshore.data.batch import Batch
from farshore.data.domain import Domain
from farshore.errors import FarshoreError
from farshore.learner.learner import Learner
from farshore.learner.loading import load
from farshore.methods import METHODS, continual
from farshore.methods.urm import URM, make_critic, verdict
from farshore.runs.plan.select import POOLED
from farshore.runs.protocol import execute
from farshore.runs.run import Run
from farshore.testing import Waiting, differences


def made(rate: float = 0.1, **settings: Any) -> URM:
    """URM on a small network, with plain SGD for the network."""
    method = URM(URM.Settings.build(settings))
    network = method.prepare(small_network()).double()
    method.critic.double()
    method.attach(
        network, None, torch.Generator().manual_seed(0), lambda parameters: SGD(parameters, lr=rate)
    )
    return method


def batch(count: int = 12, seed: int = 1) -> Batch:
    generator = torch.Generator().manual_seed(seed)
    inputs = torch.randn(count, 4, generator=generator, dtype=torch.float64)
    return Batch(inputs, torch.randint(3, (count,), generator=generator), rows=count)


def silence(method: URM) -> None:
    """A critic that always answers 0."""
    for parameter in method.critic[-1].parameters():
        nn.init.zeros_(parameter)


def domains(blobs, count: int = 3) -> list[Domain]:
    return [Domain.divided(f"d{number}", *blobs(number)) for number in range(count)]


def joint(method: str = "urm", **settings: Any) -> Learner:
    return Learner(
        "mlp",
        method,
        settings={"batch_size": 8, **settings},
        network_settings={"width": 16},
        classes=[0, 1],
        preprocess="none",
    )


def test_losses_against_a_silent_critic() -> None:
    method = made(adversarial_weight=0.1)
    silence(method)
    features = torch.rand(6, 5, dtype=torch.float64)
    loss = float(method.critic_loss(features).detach())
    assert loss == pytest.approx(0.76246, abs=1e-5)
    assert loss == pytest.approx(math.log(2) * 1.1, abs=1e-12)
    terms = method.update(batch())
    assert float(terms["adversary"]) == pytest.approx(math.log(2), abs=1e-12)


def test_the_critic_tells_noise_from_features() -> None:
    logits = torch.tensor([[2.0], [0.0]], dtype=torch.float64)
    expected = (math.log1p(math.exp(-2)) + math.log(2)) / 2
    assert float(verdict(logits, real=True)) == pytest.approx(expected)
    assert float(verdict(logits, real=False)) == pytest.approx(
        (2 + math.log1p(math.exp(-2)) + math.log(2)) / 2
    )


@pytest.mark.parametrize(("layers", "linears"), [(1, 3), (2, 4), (3, 5)])
def test_the_critic_has_two_linear_layers_more_than_hidden_ones(layers: int, linears: int) -> None:
    critic = make_critic(7, layers)
    found = [module for module in critic if isinstance(module, nn.Linear)]
    assert [(layer.in_features, layer.out_features) for layer in found] == [
        (7, 100),
        *[(100, 100)] * (linears - 2),
        (100, 1),
    ]
    assert all(
        module.negative_slope == 0.01 for module in critic if isinstance(module, nn.LeakyReLU)
    )


def test_without_weight_the_network_learns_as_plain_erm_with_the_activation() -> None:
    method = made(adversarial_weight=0.0)
    plain = small_network()
    plain.features = nn.Sequential(plain.features, nn.Tanh())
    optimizer = SGD(plain.parameters(), lr=0.1)
    for seed in range(5):
        method.update(batch(seed=seed))
        optimizer.zero_grad()
        nn.functional.cross_entropy(
            plain(batch(seed=seed).inputs), batch(seed=seed).labels
        ).backward()
        optimizer.step()
    assert differences(dict(method.network.state_dict()), dict(plain.state_dict())) == []


def test_the_critic_learns_from_features_before_the_step_and_leaves_the_network_alone() -> None:
    method = made(rate=0.5, adversarial_weight=0.3)
    with torch.no_grad():
        before = method.network.extract(batch().inputs)
    critic, seen = method.critic_loss, []

    def watched(features: Tensor) -> Tensor:
        seen.append(features)
        stepped.append({name: value.clone() for name, value in method.network.state_dict().items()})
        gradients.append([p.grad.clone() for p in method.network.parameters()])
        # Gradients that the network's step left in the critic must be gone.
        assert all(p.grad is None for p in method.critic.parameters())
        return critic(features)

    stepped: list[dict[str, Tensor]] = []
    gradients: list[list[Tensor]] = []
    method.critic_loss = watched  # type: ignore[method-assign]
    method.update(batch())
    assert torch.equal(seen[0], before)
    assert not seen[0].requires_grad
    assert differences(stepped[0], dict(method.network.state_dict())) == []
    assert differences(gradients[0], [p.grad for p in method.network.parameters()]) == []
    with torch.no_grad():
        assert not torch.allclose(
            method.network.extract(batch().inputs), before
        )  # the network did step


def test_the_networks_step_follows_both_losses_and_leaves_the_critic() -> None:
    method = made(rate=0.1, adversarial_weight=0.2)
    before = {name: value.clone() for name, value in method.network.state_dict().items()}
    features = method.network.extract(batch().inputs)
    loss = nn.functional.cross_entropy(method.network.classifier(features), batch().labels)
    loss = loss + 0.2 * nn.functional.softplus(-method.critic(features)).mean()  # -log sigmoid
    gradients = torch.autograd.grad(loss, list(method.network.parameters()))
    method.update(batch())
    for (name, after), gradient in zip(method.network.named_parameters(), gradients, strict=True):
        torch.testing.assert_close(after.detach(), before[name] - 0.1 * gradient)


@pytest.mark.parametrize(
    ("activation", "low", "high"), [("tanh", -1, 1), ("relu", 0, 1), ("sigmoid", 0, 1)]
)
def test_noise_fills_the_box_of_the_activation(activation: str, low: float, high: float) -> None:
    method = made(feature_activation=activation)
    noise = method.noise(torch.zeros(20_000, 5, dtype=torch.float64))
    assert float(noise.min()) >= low
    assert float(noise.max()) < high
    assert float(noise.mean()) == pytest.approx((low + high) / 2, abs=0.01)
    assert float(noise.var()) == pytest.approx((high - low) ** 2 / 12, abs=0.005)
    features = method.network.extract(100 * batch().inputs)
    if activation != "relu":
        assert float(features.detach().abs().max()) <= 1


def test_the_activation_stays_in_the_model_and_the_critic_out_of_prediction(
    blobs, tmp_path: Path
) -> None:
    learner = joint()
    learner.learn_jointly(domains(blobs), steps=5)
    x, _ = blobs(0)
    assert float(learner.system.method.network.extract(10 * x).detach().abs().max()) <= 1
    assert isinstance(learner.system.method.predictor().features[-1], nn.Tanh)
    assert not any("critic" in name for name in learner.system.method.predictor().state_dict())
    learner.save(tmp_path)
    loaded = load(tmp_path)
    assert differences(loaded.state_dict(), learner.state_dict()) == []
    assert torch.equal(loaded.logits(x), learner.logits(x))
    nn.init.zeros_(loaded.system.method.critic[0].weight)
    assert torch.equal(loaded.logits(x), learner.logits(x))


def test_every_step_sees_a_batch_of_every_source(blobs, monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[Batch] = []
    real = URM.update
    monkeypatch.setattr(
        URM, "update", lambda self, batch: (seen.append(batch), real(self, batch))[1]
    )
    sources = domains(blobs)
    learner = joint()
    learner.learn_jointly(sources, steps=4)
    assert len(seen) == learner.system.steps_done == 12  # k·T
    for batch_ in seen:
        for place, source in enumerate(sources):
            rows = batch_.inputs[8 * place : 8 * place + 8]
            allowed = source.inputs[source.train]
            assert bool((rows[:, None] == allowed[None]).all(dim=2).any(dim=1).all())
    learner = joint(joint_steps="total")
    learner.learn_jointly(sources, steps=4)
    assert learner.system.steps_done == 4


def test_joint_learning_learns_is_deterministic_and_forgets_no_source(blobs) -> None:
    runs = [joint(), joint()]
    for learner in runs:
        learner.learn_jointly(domains(blobs), steps=60)
    assert differences(runs[0].state_dict(), runs[1].state_dict()) == []
    assert all(runs[0].score(domain.split("train")) > 0.95 for domain in domains(blobs))


def test_steps_do_not_wait_for_the_device() -> None:
    method = made()
    method.update(batch())
    with Waiting() as waiting:
        method.update(batch())
    assert waiting.operations == []


def test_what_cannot_be_learned_at_once_or_in_turn_is_refused(blobs) -> None:
    learner = joint()
    with pytest.raises(FarshoreError, match="all domains in one call"):
        learner.learn_jointly([], steps=3)
    other = Domain.divided("wide", torch.zeros(9, 7), torch.zeros(9).long())
    with pytest.raises(FarshoreError, match="rows of shape"):
        joint().learn_jointly([*domains(blobs), other], steps=3)
    learner.learn_jointly(domains(blobs), steps=1)
    with pytest.raises(FarshoreError, match="only once"):
        learner.learn_jointly(domains(blobs), steps=1)
    with pytest.raises(FarshoreError, match="learns all its domains at once"):
        Learner("mlp", "urm", preprocess="none").learn(*blobs(0))
    with pytest.raises(FarshoreError, match="learns all its domains at once"):
        learner.learn(*blobs(4), domain="later")


def test_it_is_offline_and_no_continual_method() -> None:
    assert "urm" not in continual()
    assert set(METHODS.names()) - set(continual()) == {"urm", "joint", "majority", *POOLED}
    text = inspect.getdoc(URM) or ""
    assert "Equation:" in text
    assert "Paper:" in text


def test_a_run_is_marked_offline() -> None:
    result = execute(Run(benchmark="heart-hospitals", method="urm", steps=3))
    assert result.kind == "offline"
    assert result.stages == ["all sources"]
    assert [len(row) for row in result.matrices["validation"]] == [3]
    assert result.rows_per_step == [96]
    assert result.backward_transfer() is None
    assert result.source_score() == pytest.approx(sum(result.matrices["train"][0]) / 3)
    assert result.settings["adversarial_weight"] == 0.1
    again = execute(Run(benchmark="heart-hospitals", method="urm", steps=3))
    assert again.target == result.target.model_copy(update={"opened_at": again.target.opened_at})


def test_batchnorm_and_images(pictures) -> None:
    from farshore import Network
    from farshore.networks.network import ImageInputs

    torch.manual_seed(0)
    layers = [
        nn.Conv2d(1, 8, 3, padding=1),
        nn.BatchNorm2d(8),
        nn.ReLU(),
        nn.AdaptiveAvgPool2d(2),
        nn.Flatten(),
    ]
    network = Network(nn.Sequential(*layers), nn.Linear(32, 2), inputs=ImageInputs())
    learner = Learner(network, "urm", settings={"batch_size": 8}, classes=[0, 1], preprocess="none")
    learner.learn_jointly(
        [Domain.divided(f"d{number}", *pictures(number)) for number in range(2)], steps=10
    )
    assert bool(torch.isfinite(learner.logits(pictures(0)[0])).all())
    trained = learner.system.method.network
    assert int(trained.batchnorms()[0].num_batches_tracked) == 20
    assert int(network.batchnorms()[0].num_batches_tracked) == 0  # the caller's is a copy's origin
