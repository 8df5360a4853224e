"""Doses: a penalty whose gradient has a fixed ratio to that of ERM, distillation beside it, and
what a result says of both. Each number is computed a second time, from gradients of its own.
"""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from farshore.data.batch import Batch
from farshore.invariance.sign_agreement import SignAgreement
from farshore.learner.learner import Learner
from farshore.runs.protocol import execute
from farshore.runs.result import Result
from farshore.runs.run import Run
from farshore.testing import differences, toy_learned
from farshore.testing.methods import steps_do_not_wait, the_target_changes_no_weight

PENALISED = ["cl-vrex", "cl-fishr", "cl-coral", "cl-mmd"]
ANNEALED = ("cl-vrex", "cl-fishr")
TAILORED = [*PENALISED, "cl-andmask"]


def settings_of(method: str, **further: object) -> dict[str, object]:
    return {**({"anneal_steps": 0} if method in ANNEALED else {}), **further}


def made_batch(made: Learner, blobs, rows: int = 8) -> Batch:
    """Rows of a third domain and of two replayed ones, whose stored logits are others."""
    x, y = blobs(5, rows=3 * rows)
    torch.manual_seed(1)
    return Batch(
        x,
        y,
        rows=rows,
        domain=2,
        domains=torch.arange(2),
        replay_rows=rows,
        stored={"logits": torch.randn(2, rows, 2)},
    )


def gradient(network: nn.Module, loss: Tensor) -> Tensor:
    found = torch.autograd.grad(
        loss, list(network.parameters()), retain_graph=True, allow_unused=True
    )
    zeros = [torch.zeros_like(each) for each in network.parameters()]
    pairs = zip(found, zeros, strict=True)
    return torch.cat([(zero if part is None else part).flatten() for part, zero in pairs])


def written(network: nn.Module) -> Tensor:
    return torch.cat([parameter.grad.flatten() for parameter in network.parameters()])


@pytest.mark.parametrize("method", PENALISED)
@pytest.mark.parametrize("ratio", [0.1, 1.0])
def test_the_penaltys_gradient_has_the_ratio(method: str, ratio: float, blobs) -> None:
    settings = settings_of(method, penalty_ratio=ratio, distillation_weight=0.5)
    made = toy_learned(method, domains=2, settings=settings)
    system, batch = made.system.method, made_batch(made, blobs)
    terms = system.terms(batch)
    parts = {name: gradient(system.network, term) for name, term in terms.items()}
    weight = ratio * parts["erm"].norm() / parts["penalty"].norm()
    expected = parts["erm"] + weight * parts["penalty"]
    expected = expected + system.settings.alignment_weight * parts["alignment"]
    expected = expected + 0.5 * parts["distillation"]
    system.network.zero_grad()
    system.gradients(batch)
    assert torch.allclose(written(system.network), expected, rtol=1e-4, atol=1e-6)
    assert float(parts["penalty"].norm()) > 0


def test_with_two_parameters_the_weight_is_the_worked_one() -> None:
    """∇erm = (3, 4), ∇penalty = (0, 0.5): lengths 5 and 0.5, so r = 0.2 gives λ = 2."""
    made = toy_learned("cl-coral", domains=2, settings={"penalty_ratio": 0.2})
    system = made.system.method
    system.network = nn.Linear(2, 1, bias=False)
    nn.init.zeros_(system.network.weight)
    entries = system.network.weight[0]
    terms = {"erm": 3 * entries[0] + 4 * entries[1], "penalty": 0.5 * entries[1]}
    weights = system.weights_of(terms)
    assert float(weights["penalty"]) == pytest.approx(2.0)
    assert not weights["penalty"].requires_grad
    assert weights["alignment"] == 1.0


def test_before_annealing_has_ended_the_weight_is_that_of_annealing(blobs) -> None:
    made = toy_learned("cl-vrex", domains=2, settings={"penalty_ratio": 0.5, "anneal_steps": 10000})
    system, batch = made.system.method, made_batch(made, blobs)
    assert system.weights_of(system.terms(batch))["penalty"] == 1.0


def test_a_penalty_without_gradient_adds_nothing(blobs) -> None:
    made = toy_learned("cl-coral", domains=2, settings={"penalty_ratio": 1.0})
    system, batch = made.system.method, made_batch(made, blobs)
    terms = system.terms(batch)
    terms |= {"erm": terms["erm"] * 1000, "penalty": terms["penalty"] * 0}
    weighted = system.weights_of(terms)["penalty"] * gradient(system.network, terms["penalty"])
    assert torch.equal(weighted, torch.zeros_like(weighted))


@pytest.mark.parametrize("method", PENALISED)
def test_steps_with_a_ratio_do_not_wait(method: str) -> None:
    steps_do_not_wait(method, settings=settings_of(method, penalty_ratio=0.5))


def test_steps_of_andmask_with_distillation_do_not_wait() -> None:
    steps_do_not_wait("cl-andmask", settings={"distillation_weight": 0.5})


@pytest.mark.parametrize("method", TAILORED)
def test_a_target_of_noise_changes_nothing(method: str) -> None:
    further = {"penalty_ratio": 0.5} if method in PENALISED else {}
    settings = settings_of(method, distillation_weight=0.5, **further)
    the_target_changes_no_weight(method, settings=settings)


def test_andmask_adds_the_distillation_of_er_kd(blobs) -> None:
    """Whatever the reductions of its own alignment are."""
    own = {"distillation_reduction": "sum_classes", "alignment_reduction": "sum"}
    for settings in ({"alignment_weight": 0.0}, {"alignment_weight": 0.2}, own):
        gradients = []
        for weight in (0.0, 0.5):
            made = toy_learned("cl-andmask", domains=2, settings=settings)
            system, batch = made.system.method, made_batch(made, blobs)
            system.settings = system.settings.model_copy(update={"distillation_weight": weight})
            system.gradients(batch)
            gradients.append(written(system.network))
        logits = batch.replay(system.network(batch.inputs))
        loss = (logits - batch.stored["logits"]).square().mean(dim=(1, 2)).mean()
        expected = 0.5 * gradient(system.network, loss)
        assert torch.allclose(gradients[1] - gradients[0], expected, rtol=1e-3, atol=1e-5)


def test_what_the_mask_takes_away() -> None:
    """Three domains, τ = 1: entries with 3, 1, 1 and 3 votes of the same sign."""
    signs, threshold = torch.tensor([3.0, -1.0, 1.0, -3.0]), torch.tensor(1.0)
    assert float(SignAgreement("hard").masked_share(signs, 3, threshold)) == pytest.approx(0.5)
    unanimous, split = 0.5, torch.sigmoid(torch.tensor((1 / 3 - 1) / 0.5)).item()
    soft = SignAgreement("soft", 0.5).masked_share(signs, 3, threshold)
    assert float(soft) == pytest.approx(1 - (unanimous + split) / 2 / unanimous)
    off = SignAgreement("soft", 1e6).masked_share(signs, 3, threshold)
    assert float(off) == pytest.approx(0, abs=1e-5)


@pytest.mark.parametrize("method", [*PENALISED, "er-kd"])
def test_doses_are_lengths_of_weighted_gradients(method: str, blobs) -> None:
    made = toy_learned(method, domains=2, settings=settings_of(method, distillation_weight=0.5))
    system, batch = made.system.method, made_batch(made, blobs)
    terms, weights = system.terms(batch), system.weights()
    lengths = {
        name: float(weights.get(name, 1.0) * gradient(system.network, term).norm())
        for name, term in terms.items()
    }
    expected = {name: value / lengths["erm"] for name, value in lengths.items() if name != "erm"}
    if "penalty" in expected:
        expected["penalty_weight"] = float(weights["penalty"])
    found = {name: float(value) for name, value in system.doses(batch).items()}
    assert found == pytest.approx(expected, rel=1e-4)
    assert "distillation" in found


def test_doses_of_andmask(blobs) -> None:
    settings = {"mask": "hard", "distillation_weight": 0.5, "adaptive_agreement": False}
    made = toy_learned("cl-andmask", domains=2, settings=settings)
    system, batch = made.system.method, made_batch(made, blobs)
    parts = [batch.parts(each) for each in (batch.inputs, batch.labels)]
    stack = torch.stack(
        [
            gradient(system.network, nn.functional.cross_entropy(system.network(x), y))
            for x, y in zip(*parts, strict=True)
        ]
    )
    agree = (stack.sign().sum(dim=0).abs() == 3).float()
    found = system.doses(batch)
    assert float(found["masked"]) == pytest.approx(1 - float(agree.mean()), abs=1e-4)
    assert 0.05 < float(found["masked"]) < 0.95
    assert 0 < float(found["cosine"]) < 1
    assert found.keys() == {"masked", "cosine", "alignment", "distillation"}
    off = toy_learned("cl-andmask", domains=2, settings={"mask_temperature": 1e6})
    assert float(off.system.method.doses(batch)["cosine"]) == pytest.approx(1, abs=1e-4)


@pytest.mark.parametrize("method", [*TAILORED, "naive-cl-coral", "er-kd"])
def test_measuring_changes_nothing(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    measured = toy_learned(method, domains=3)
    assert measured.system.doses or method == "cl-fishr"  # its first 100 steps have no penalty
    monkeypatch.setattr("farshore.training.trainer.Trainer._measure", lambda *_: {})
    assert (
        differences(
            measured.state_dict()["system"], toy_learned(method, domains=3).state_dict()["system"]
        )
        == []
    )


@pytest.mark.parametrize("method", TAILORED)
def test_a_result_keeps_the_doses_by_stage(method: str) -> None:
    further = {"distillation_weight": 0.5}
    further |= {"penalty_ratio": 0.5} if method in PENALISED else {}
    run = Run(
        benchmark="heart-hospitals", method=method, steps=2, settings=settings_of(method, **further)
    )
    result = execute(run)
    assert list(result.doses) == result.sources[1:]
    for doses in result.doses.values():
        assert doses["distillation"] > 0
        if method in PENALISED:
            assert doses["penalty"] == pytest.approx(0.5, rel=1e-3)
    again = Result.model_validate_json(result.text())
    assert again.doses == result.doses
    older = {name: value for name, value in result.model_dump().items() if name != "doses"}
    assert Result.model_validate(older).doses == {}


@pytest.mark.parametrize("method", PENALISED)
def test_the_ratio_is_at_work_and_zero_distillation_is_none(method: str) -> None:
    plain = toy_learned(method, settings=settings_of(method)).state_dict()["system"]["network"]
    none = settings_of(method, distillation_weight=0.0)
    assert (
        differences(plain, toy_learned(method, settings=none).state_dict()["system"]["network"])
        == []
    )
    ratio = settings_of(method, penalty_ratio=3.0)
    assert (
        differences(plain, toy_learned(method, settings=ratio).state_dict()["system"]["network"])
        != []
    )
