"""The two frames: what they reduce to, when the priors fit, how annealing, priors, projections
and masks behave.
"""

from __future__ import annotations

import pytest
import torch
from attached import priors_by_domain
from torch import nn

import farshore
from farshore.data.batch import Batch
from farshore.data.domain import Rows
from farshore.learner.learner import Learner
from farshore.learner.loading import load
from farshore.methods import METHODS
from farshore.runs.protocol import execute
from farshore.runs.run import Run
from farshore.testing import differences, toy_learned, toy_learner

TAILORED = ["cl-vrex", "cl-fishr", "cl-coral", "cl-mmd", "cl-andmask"]
NAIVE = [f"naive-{name}" for name in TAILORED]
ANNEALED = ["cl-vrex", "cl-fishr", "naive-cl-vrex", "naive-cl-fishr"]


@pytest.mark.parametrize("method", [*TAILORED, *NAIVE, "er"])
def test_one_domain_is_fine_tuning_bit_for_bit(method: str) -> None:
    made = toy_learned(method, domains=1)
    plain = toy_learned("finetune", domains=1)
    assert (
        differences(made.state_dict()["system"]["network"], plain.state_dict()["system"]["network"])
        == []
    )


@pytest.mark.parametrize("method", ["cl-vrex", "cl-fishr", "cl-coral", "cl-mmd"])
def test_zero_weights_are_er_bit_for_bit_on_the_cnn(method: str) -> None:
    _, zeros = METHODS.get(method).reduces_to
    results = [
        execute(Run(benchmark="rotated-digits", method=name, steps=3, settings=dict(s)))
        for name, s in ((method, zeros), ("er", {}))
    ]
    assert results[0].target.weights == results[1].target.weights


@pytest.mark.parametrize("method", [*TAILORED[:4], *NAIVE[:4]])
def test_the_terms_are_at_work(method: str) -> None:
    """With its default weights the method is not its simpler one: otherwise the tests above
    would prove nothing.
    """
    simpler, _ = METHODS.get(method).reduces_to
    made, plain = toy_learned(method), toy_learned(simpler)
    assert (
        differences(made.state_dict()["system"]["network"], plain.state_dict()["system"]["network"])
        != []
    )


def batch_of(made: Learner, inputs: torch.Tensor, labels: torch.Tensor, replayed: int) -> Batch:
    """Current rows and the same number of replayed rows of the first `replayed` domains, with
    their stored logits.
    """
    rows = len(labels) // (1 + replayed)
    logits = torch.zeros(replayed, rows, 2)
    return Batch(
        inputs,
        labels,
        rows=rows,
        domain=replayed,
        domains=torch.arange(replayed),
        replay_rows=rows,
        stored={"logits": logits},
    )


def test_andmask_without_mask_and_distillation_is_the_mean_of_the_domains_gradients(blobs) -> None:
    settings = {"mask": "hard", "agreement": 0, "alignment_weight": 0, "adaptive_agreement": False}
    made = toy_learned("cl-andmask", domains=2, settings=settings)
    x, y = blobs(5, rows=24)
    method = made.system.method
    method.network.train()
    method.gradients(batch_of(made, x, y, 2))
    found = [parameter.grad.clone() for parameter in method.network.parameters()]
    expected = [torch.zeros_like(part) for part in found]
    for part in range(3):
        loss = nn.functional.cross_entropy(
            method.network(x[8 * part : 8 * part + 8]), y[8 * part : 8 * part + 8]
        )
        for total, gradient in zip(
            expected, torch.autograd.grad(loss, list(method.network.parameters())), strict=True
        ):
            total += gradient / 3
    for one, two in zip(found, expected, strict=True):
        assert torch.allclose(one, two, atol=1e-6)


def test_andmask_steps_never_against_the_masked_gradient(blobs) -> None:
    """<g̃, g̃ + α q> >= ||g̃||²: distillation may not work against what the domains agree on."""
    gradients = {}
    for weight in (0.0, 0.5):
        made = toy_learned("cl-andmask", domains=2, settings={"alignment_weight": 0.1})
        made.system.method.settings = made.system.method.settings.model_copy(
            update={"alignment_weight": weight}
        )
        x, y = blobs(5, rows=24)
        made.system.method.network.train()
        made.system.method.gradients(batch_of(made, x, y, 2))
        gradients[weight] = torch.cat(
            [parameter.grad.flatten() for parameter in made.system.method.network.parameters()]
        )
    assert float(gradients[0.0] @ gradients[0.5]) >= float(gradients[0.0] @ gradients[0.0]) - 1e-6
    assert not torch.equal(gradients[0.0], gradients[0.5])


@pytest.mark.parametrize(("density", "moved"), [(0.05, -0.01), (0.5, 0.0), (0.95, 0.01)])
def test_the_threshold_follows_the_density(density: float, moved: float) -> None:
    made = toy_learned("cl-andmask", domains=1, settings={"agreement": 0.5})
    made.system.method._adapt(torch.tensor(density))
    assert float(made.system.method.threshold) == pytest.approx(0.5 + moved)
    for _ in range(200):
        made.system.method._adapt(torch.tensor(density))
    assert 0.05 - 1e-6 <= float(made.system.method.threshold) <= 1


def test_the_threshold_starts_anew_in_a_new_learner_and_survives_a_save(tmp_path) -> None:
    made = toy_learned("cl-andmask", domains=3, settings={"agreement": 0.9})
    made.save(tmp_path)
    assert (
        float(load(tmp_path).system.method.threshold) == float(made.system.method.threshold) != 0.9
    )


@pytest.mark.parametrize("method", ["cl-vrex", "cl-fishr", "cl-coral", "cl-mmd"])
def test_alignment_is_zero_right_after_the_domain_ended_on_all_its_rows(method: str, blobs) -> None:
    """Section 13, test 4: exact priors, the whole domain as the replay batch, evaluation mode."""
    exact = (
        {"prior_level": "domain"}
        if "prior_level" in METHODS.get(method).Settings.model_fields
        else {}
    )
    made = toy_learner(method, settings=exact)
    x, y = blobs(0)
    made.learn(x, y, domain="a", steps=8, validation=0)
    network = made.system.method.network.eval()
    with torch.no_grad():
        features = network.extract(x)
        logits = network.classifier(features)
    notion = made.system.method.invariance
    statistic = notion.statistic(features[None], logits[None], y[None])
    aligned = notion.alignment(
        statistic,
        made.system.method.priors.stacked(torch.tensor([0])),
        logits[None],
        {"logits": logits[None]},
    )
    assert aligned.tolist() == pytest.approx([0], abs=1e-6)
    moved = {
        name: value + 0.1 + value.abs() * torch.rand_like(value)
        for name, value in statistic.items()
    }
    assert (
        float(
            notion.alignment(
                moved,
                made.system.method.priors.stacked(torch.tensor([0])),
                logits[None] + 1,
                {"logits": logits[None]},
            )
        )
        > 1e-6
    )


def test_stored_logits_are_those_of_the_end_of_domain_model() -> None:
    made = toy_learned("cl-vrex", domains=1)
    kept = made.system.memory.kept()["d0"]
    assert torch.allclose(made.logits(kept["inputs"]), kept["logits"], atol=1e-6)


@pytest.mark.parametrize("method", TAILORED[:4])
def test_static_priors_never_change_and_dynamic_ones_do(method: str, blobs) -> None:
    for kind in ("static", "dynamic"):
        made = toy_learner(method, settings={"priors": kind})
        made.learn(*blobs(0), domain="a", steps=8)
        before = {
            name: value.clone()
            for name, value in priors_by_domain(made.system.method.priors)["a"].items()
        }
        logits = made.system.memory.kept()["a"]["logits"].clone()
        made.learn(*blobs(1), domain="b", steps=8)
        changed = differences(before, priors_by_domain(made.system.method.priors)["a"]) != []
        assert changed is (kind == "dynamic")
        kept = made.system.memory.kept()["a"]
        assert torch.equal(kept["logits"], logits[: len(kept["logits"])]) is (kind == "static")


@pytest.mark.parametrize("method", ANNEALED)
@pytest.mark.parametrize(
    ("scope", "fires_at"), [("penalty", {8}), ("global", {3}), ("domain", {3, 8, 13})]
)
def test_annealing_sets_the_weight_and_resets_the_optimizer_when_it_ends(
    method: str, scope: str, fires_at: set, blobs
) -> None:
    before = METHODS.get(method).weight_before_anneal
    assert before == (1.0 if "vrex" in method else 0.0)
    seen: dict[int, tuple[float, int]] = {}
    made = toy_learner(
        method, settings={"anneal_steps": 3, "anneal_scope": scope, "penalty_weight": 7}
    )
    real = METHODS.get(method).before_step

    def watch(self, step: int, domain_step: int) -> None:
        real(self, step, domain_step)
        seen[step] = (self.penalty_weight, len(self.opts[0].state))

    kind = made.method_type
    made.method_type = type("Watched", (kind,), {"before_step": watch})
    for number in range(3):
        made.learn(*blobs(number), domain=f"d{number}", steps=5)
    for step in range(15):
        count = {"penalty": max(0, step - 5), "global": step, "domain": step % 5}[scope]
        assert seen[step][0] == (before if count < 3 else 7)
        assert (seen[step][1] == 0) == (step in fires_at or step == 0)


@pytest.mark.parametrize("method", ANNEALED)
def test_every_number_of_anneal_steps_has_an_effect_after_the_first_domain(method: str) -> None:
    """A search that draws it would otherwise compare runs that do the same."""
    networks = [
        toy_learned(method, settings={"anneal_steps": steps, "penalty_weight": 50})
        for steps in (1, 3, 5)
    ]
    states = [learner.state_dict()["system"]["network"] for learner in networks]
    for first, second in ((0, 1), (1, 2), (0, 2)):
        assert differences(states[first], states[second]) != []


@pytest.mark.parametrize("method", ANNEALED)
def test_the_anneal_counter_is_saved_and_starts_again_without_past_domains(
    method: str, blobs, tmp_path
) -> None:
    made = toy_learner(method, settings={"anneal_steps": 3, "penalty_weight": 7})
    made.learn(*blobs(0), domain="a", steps=5)
    made.learn(*blobs(1), domain="b", steps=2)
    made.save(tmp_path)
    again = load(tmp_path)
    for learner in (made, again):
        learner.learn(*blobs(2), domain="c", steps=4)
        assert learner.system.method.unpenalised_steps == 5
        assert learner.system.method.penalty_weight == 7
    assert differences(made.state_dict()["system"], again.state_dict()["system"]) == []
    for domain in ("a", "b", "c"):
        made.forget(domain)
    made.learn(*blobs(3), domain="d", steps=4)
    assert made.system.method.unpenalised_steps == 15
    assert made.system.method.penalty_weight == made.method_type.weight_before_anneal


def test_annealing_can_leave_the_optimizer_alone() -> None:
    kept = toy_learned("cl-vrex", settings={"anneal_resets_optimizer": False})
    reset = toy_learned("cl-vrex")
    assert (
        differences(kept.state_dict()["system"]["network"], reset.state_dict()["system"]["network"])
        != []
    )


@pytest.mark.parametrize("method", TAILORED[:4])
def test_per_domain_passes_give_the_same_without_batchnorm(method: str) -> None:
    joint = toy_learned(method, steps=2).state_dict()["system"]["network"]
    other = toy_learned(method, steps=2, settings={"forward": "per-domain"})
    apart = other.state_dict()["system"]["network"]
    for name, value in joint.items():
        assert torch.allclose(value, apart[name], atol=1e-4), name


@pytest.mark.parametrize("method", TAILORED)
def test_the_modes_of_batchnorm_differ(method: str, pictures) -> None:
    def network() -> farshore.Network:
        torch.manual_seed(0)
        return farshore.Network(
            nn.Sequential(nn.Flatten(), nn.Linear(64, 8), nn.BatchNorm1d(8), nn.ReLU()),
            nn.Linear(8, 2),
        )

    found = []
    for settings in ({}, {"forward": "per-domain"}, {"freeze_batchnorm": True}):
        made = toy_learner(method, network=network(), network_settings=None, settings=settings)
        for number in range(2):
            images, labels = pictures(number)
            made.learn(images.float() / 255, labels, domain=f"d{number}", steps=4)
        found.append(made.state_dict()["system"]["network"])
    assert differences(found[0], found[1]) != []
    assert torch.equal(found[2]["features.2.running_mean"], torch.zeros(8))
    assert not torch.equal(found[0]["features.2.running_mean"], torch.zeros(8))


def test_reductions_over_domains(blobs) -> None:
    made = toy_learned("cl-coral", domains=3)
    x, y = blobs(7, rows=32)
    method = made.system.method
    batch = batch_of(made, x, y, 3)
    terms = {}
    for choice in ("mean", "sum"):
        method.settings = method.settings.model_copy(update={"alignment_reduction": choice})
        terms[choice] = {name: float(term.detach()) for name, term in method.terms(batch).items()}
    assert terms["sum"]["alignment"] == pytest.approx(3 * terms["mean"]["alignment"], rel=1e-5)
    assert terms["sum"]["penalty"] == terms["mean"]["penalty"]
    method.settings = method.settings.model_copy(update={"erm_reduction": "domain-mean"})
    assert float(method.terms(batch)["erm"].detach()) == pytest.approx(
        terms["mean"]["erm"], rel=1e-5
    )


def test_unequal_numbers_of_rows_are_compared_per_domain(blobs) -> None:
    """Current and replayed parts of different size give the statistics of each part."""
    made = toy_learned("cl-vrex", domains=2)
    x, y = blobs(7, rows=14)
    batch = Batch(
        x,
        y,
        rows=6,
        domain=2,
        domains=torch.arange(2),
        replay_rows=4,
        stored={"logits": torch.zeros(2, 4, 2)},
    )
    made.system.method.penalty_weight = 1.0
    found = float(made.system.method.terms(batch)["penalty"].detach())
    logits = made.logits(x)
    risks = torch.stack(
        [nn.functional.cross_entropy(logits[a:b], y[a:b]) for a, b in ((0, 6), (6, 10), (10, 14))]
    )
    assert found == pytest.approx(float(risks.var(correction=0)), rel=1e-4)


def test_scope_domain_keeps_a_state_for_every_domain_and_resumes(blobs, tmp_path) -> None:
    for method, settings in (
        ("cl-coral", {"scope": "domain", "batch_size": 1}),
        ("cl-fishr", {"variance_decay": 0.9}),
    ):
        made = toy_learned(method, settings=settings)
        assert set(made.system.method.running) == {"d0", "d1", "d2"}
        assert made.system.method.invariance.scope == "domain"
        batchwise = toy_learned(
            method,
            settings={key: value for key, value in settings.items() if key == "batch_size"},
        )
        assert (
            differences(
                made.state_dict()["system"]["network"], batchwise.state_dict()["system"]["network"]
            )
            != []
        )
        resumed = toy_learner(method, settings=settings)
        for number in range(3):
            resumed.learn(*blobs(number), domain=f"d{number}", steps=8)
            resumed.save(tmp_path)
            resumed = load(tmp_path)
        assert differences(made.state_dict(), resumed.state_dict()) == []


def test_a_stored_gradient_is_the_mean_over_the_domain(blobs) -> None:
    made = toy_learner("naive-cl-andmask")
    x, y = blobs(0)
    made.learn(x, y, domain="a", steps=5, validation=0)
    network = made.system.method.network
    loss = nn.functional.cross_entropy(network(x), y)
    exact = torch.cat(
        [part.flatten() for part in torch.autograd.grad(loss, list(network.parameters()))]
    )
    assert torch.allclose(made.system.method.stored["a"], exact, atol=1e-6)


def test_stored_gradients_are_added_up_once_and_the_same_after_loading_and_forgetting() -> None:
    made = toy_learned("naive-cl-andmask", domains=1).system.method
    made.stored = {}
    generator = torch.Generator().manual_seed(0)
    gradients = {str(number): torch.randn(50, generator=generator) for number in range(40)}
    for number, (name, gradient) in enumerate(gradients.items(), start=1):
        made.stored[name] = gradient
        signs, total = made._sums
        exact = torch.stack(list(made.stored.values()))
        if number <= 16:  # as few as this are added up at once
            assert torch.equal(total, exact.sum(dim=0))
        torch.testing.assert_close(total.double(), exact.double().sum(dim=0), atol=1e-5, rtol=0)
        assert torch.equal(signs, exact.sign().sum(dim=0))
    total = made._sums[1].clone()
    made._summed = None
    assert torch.equal(made._sums[1], total)
    made.forget("7")
    exact = torch.stack(list(made.stored.values()))
    torch.testing.assert_close(made._sums[1], exact.sum(dim=0), atol=1e-5, rtol=0)
    assert torch.equal(made._sums[0], exact.sign().sum(dim=0))


def test_the_bandwidth_is_frozen_after_the_first_domain(blobs) -> None:
    made = toy_learned("cl-mmd", domains=1)
    first = {
        name: value.clone() for name, value in made.system.method.invariance.state_dict().items()
    }
    made.learn(*blobs(1), domain="b", steps=8)
    assert differences(first, made.system.method.invariance.state_dict()) == []


def test_batch_level_priors_leave_out_rows_that_fill_no_batch(blobs) -> None:
    """20 rows in batches of 8: two batches; the mean of their statistics, not of a stump of four
    rows.
    """
    from farshore.methods.priors import compute_prior

    made = toy_learned("cl-coral", domains=1)
    x, y = blobs(3, rows=20)
    rows, order = (
        Rows(x, y, torch.arange(20)),
        torch.randperm(20, generator=torch.Generator().manual_seed(0)),
    )
    prior = compute_prior(
        made.system.method.invariance,
        made.system.method.network,
        rows,
        order,
        level="batch",
        batch_size=8,
    )
    with torch.no_grad():
        features = made.system.method.network.extract(x[order[:16]]).reshape(2, 8, -1)
    expected = made.system.method.invariance.statistic(features, features, features)
    assert torch.allclose(prior["covariance"], expected["covariance"].mean(dim=0), atol=1e-5)
