"""Distillation and several notions of invariance: er-kd, cl-mix, and the tailored frame."""

from __future__ import annotations

import pytest
import torch
from attached import priors_by_domain
from torch import Tensor, nn

from farshore.data.batch import Batch
from farshore.errors import FarshoreError
from farshore.invariance.feature_moments import FeatureMoments
from farshore.invariance.gradient_variance import GradientVariance
from farshore.invariance.kernel_mean import KernelMean
from farshore.invariance.mixture import Mixture
from farshore.invariance.risk import Risk
from farshore.learner.learner import Learner
from farshore.learner.loading import load
from farshore.testing import differences, toy_learned, toy_learner

ALL = "vrex+fishr+coral+mmd"
AT_ONCE = {"anneal_steps": 0}


def weights(made: Learner) -> dict[str, Tensor]:
    return made.state_dict()["system"]["network"]


def batch_of(rows: int, inputs: Tensor, labels: Tensor, logits: Tensor) -> Batch:
    """`rows` current rows, then as many of each of the first two domains."""
    return Batch(
        inputs,
        labels,
        rows=rows,
        domain=2,
        domains=torch.arange(2),
        replay_rows=rows,
        stored={"logits": logits},
    )


# ---- distillation --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("er-kd", {"distillation_weight": 0.7}),
        ("cl-coral", {"distillation_weight": 0.7}),
        ("cl-mix", {"distillation_weight": 0.7}),
    ],
)
def test_the_term_is_the_squared_distance_of_the_replayed_logits(
    method: str, settings: dict, blobs
) -> None:
    made = toy_learned(method, domains=2, settings=settings)
    x, y = blobs(5, rows=12)
    stored = torch.randn(2, 4, 2, generator=torch.Generator().manual_seed(0))
    trained = made.system.method
    terms = {name: term.detach() for name, term in trained.terms(batch_of(4, x, y, stored)).items()}
    with torch.no_grad():
        logits = trained.network(x)
    squares = [
        float((logits[4 + 4 * e + row, c] - stored[e, row, c]) ** 2)
        for e in range(2)
        for row in range(4)
        for c in range(2)
    ]
    assert float(terms["distillation"]) == pytest.approx(sum(squares) / len(squares), rel=1e-5)
    assert trained.weights()["distillation"] == 0.7
    assert float(terms["erm"]) == pytest.approx(
        float(nn.functional.cross_entropy(logits, y)), rel=1e-5
    )
    alone = Batch(x, y, rows=12)
    assert list(trained.terms(alone)) == ["erm"]


@pytest.mark.parametrize("method", ["cl-vrex", "cl-fishr", "cl-coral", "cl-mmd", "cl-mix"])
def test_the_frame_without_its_own_terms_is_er_kd_bit_for_bit(method: str) -> None:
    zeros = {"penalty_weight": 0, "alignment_weight": 0, "distillation_weight": 0.5}
    if method in ("cl-vrex", "cl-fishr", "cl-mix"):
        zeros |= AT_ONCE
    assert differences(weights(toy_learned(method, settings=zeros)), weights(er_kd())) == []


def er_kd() -> Learner:
    return toy_learned("er-kd", settings={"distillation_weight": 0.5})


def test_distillation_is_at_work_and_keeps_the_logits_closer_to_the_stored_ones() -> None:
    distances = []
    for weight in (0.0, 5.0):
        made = toy_learned("er-kd", steps=30, settings={"distillation_weight": weight})
        kept = made.system.kept_rows()["d0"]
        distances.append(float((made.logits(kept["inputs"]) - kept["logits"]).square().mean()))
    assert distances[1] < distances[0] / 2


# ---- several notions -----------------------------------------------------------------------------


def notions() -> dict:
    fitted = KernelMean(16)
    fitted.fit(torch.randn(20, 5, generator=torch.Generator().manual_seed(4)), torch.Generator())
    return {
        "vrex": Risk(),
        "fishr": GradientVariance(),
        "coral": FeatureMoments(diagonal=True),
        "mmd": fitted,
    }


def test_penalty_and_alignment_are_the_sums_of_the_single_ones() -> None:
    generator = torch.Generator().manual_seed(1)
    features, logits, old = (torch.randn(3, 6, width, generator=generator) for width in (5, 2, 2))
    labels = torch.arange(18).reshape(3, 6) % 2
    single, factors = notions(), {"vrex": 10.0, "fishr": 100.0, "coral": 0.5, "mmd": 2.0}
    mixture = Mixture(single, factors)
    together = mixture.statistic(features, logits, labels)
    alone = {name: notion.statistic(features, logits, labels) for name, notion in single.items()}
    expected = sum(factors[name] * notion.penalty(alone[name]) for name, notion in single.items())
    assert float(mixture.penalty(together)) == pytest.approx(float(expected), rel=1e-6)
    assert all(float(notion.penalty(alone[name])) > 0 for name, notion in single.items())

    moved = mixture.kept(mixture.statistic(features + 0.5, logits - 1, labels))
    aligned = mixture.alignment(together, moved, logits, {"logits": old})
    parts = [
        notion.alignment(
            alone[name],
            notion.kept(notion.statistic(features + 0.5, logits - 1, labels)),
            logits,
            {"logits": old},
        )
        for name, notion in single.items()
    ]
    assert torch.allclose(aligned, torch.stack(parts).sum(dim=0), rtol=1e-6)
    assert all(bool((part > 0).all()) for part in parts)


def test_one_row_per_domain_worked_by_hand() -> None:
    """Risks 1 and 3: variance 1. Means 0 and 4 in one feature: 1/2 (4 + 4) = 4; covariances 0."""
    logits = torch.log(torch.tensor([[[1.0, torch.e - 1]], [[1.0, torch.e**3 - 1]]]))
    features, labels = torch.tensor([[[0.0]], [[4.0]]]), torch.zeros(2, 1, dtype=torch.long)
    mixture = Mixture({"vrex": Risk(), "coral": FeatureMoments()}, {"vrex": 10.0, "coral": 0.5})
    penalty = mixture.penalty(mixture.statistic(features, logits, labels))
    assert float(penalty) == pytest.approx(10 * 1 + 0.5 * 4, rel=1e-5)


def test_weights_of_zero_leave_a_notion_out() -> None:
    features, logits = torch.randn(2, 6, 5), torch.randn(2, 6, 2)
    labels = torch.arange(12).reshape(2, 6) % 2
    single = notions()
    none = Mixture(single, dict.fromkeys(single, 0.0))
    assert float(none.penalty(none.statistic(features, logits, labels))) == 0
    one = Mixture(single, {**dict.fromkeys(single, 0.0), "vrex": 1.0})
    alone = single["vrex"].penalty(single["vrex"].statistic(features, logits, labels))
    assert torch.equal(one.penalty(one.statistic(features, logits, labels)), alone)


@pytest.mark.parametrize("notion", ALL.split("+"))
@pytest.mark.parametrize("level", ["batch", "domain"])
def test_one_notion_is_its_own_method_bit_for_bit(notion: str, level: str) -> None:
    """With the same priors, although a mixture is not told which level a row mean has."""
    annealed = AT_ONCE if notion in ("vrex", "fishr") else {}
    levelled = {"prior_level": level} if notion in ("fishr", "coral") else {}
    chosen = {"notions": notion, "distillation_weight": 0, "prior_level": level, **AT_ONCE}
    mixed = toy_learned("cl-mix", settings=chosen)
    alone = toy_learned(f"cl-{notion}", settings={**annealed, **levelled})
    assert differences(weights(mixed), weights(alone)) == []
    for domain, prior in priors_by_domain(alone.system.method.priors).items():
        own = priors_by_domain(mixed.system.method.priors)[domain]
        assert differences({f"{notion}.{name}": value for name, value in prior.items()}, own) == []


def test_every_notion_is_at_work() -> None:
    """Each subset of the notions trains another network, so none is silently left out."""
    subsets = ["fishr", "coral", "fishr+coral", "fishr+coral+mmd", ALL]
    made = [
        weights(toy_learned("cl-mix", settings={"notions": names, **AT_ONCE})) for names in subsets
    ]
    for first in range(len(made)):
        for second in range(first):
            assert differences(made[first], made[second]) != []


def test_forgetting_removes_the_priors_of_every_notion(tmp_path) -> None:
    made = toy_learned("cl-mix", settings={"notions": ALL})
    priors = made.system.method.priors
    assert {name.partition(".")[0] for name in priors_by_domain(priors)["d0"]} == set(
        ALL.split("+")
    )
    made.forget("d0")
    assert priors.names == ["d1", "d2"]
    made.save(tmp_path)
    again = load(tmp_path)
    assert differences(made.state_dict(), again.state_dict()) == []


@pytest.mark.parametrize("entry", ["coral.mean", "mmd.embedding", "vrex.risk"])
def test_a_state_of_other_notions_is_refused(entry: str) -> None:
    made = toy_learned("cl-mix", domains=2, settings={"notions": ALL})
    state = made.system.state_dict()
    prior = state["method"]["priors"]["priors"][1]
    value = prior.pop(entry)
    with pytest.raises(ValueError, match=entry):
        made.system.load_state_dict(state)
    prior[entry] = value.repeat(2) if value.ndim else value[None]
    with pytest.raises(ValueError, match="shape"):
        made.system.load_state_dict(state)


@pytest.mark.parametrize("given", ["", "fishr+", "fishr+fishr", "fisher", "fishr,coral"])
def test_unknown_notions_are_refused(given: str) -> None:
    with pytest.raises(FarshoreError, match=r"notions = .* joined by \+, such as fishr\+coral"):
        toy_learner("cl-mix", settings={"notions": given})


def test_the_names_may_have_spaces_around_them() -> None:
    made = toy_learned("cl-mix", domains=1, settings={"notions": " coral + fishr "})
    assert made.system.method.settings.notions == "coral+fishr"
