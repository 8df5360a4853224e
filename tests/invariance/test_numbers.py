"""The worked numbers of the notions' definitions, in float64, and a second, slower
implementation of each formula.
"""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor, nn

from farshore.invariance.feature_moments import FeatureMoments
from farshore.invariance.gradient_variance import GradientVariance
from farshore.invariance.invariance import Invariance
from farshore.invariance.kernel_mean import KernelMean, median_distance
from farshore.invariance.risk import Risk, distillation
from farshore.invariance.running import RunningMean, RunningMoments
from farshore.invariance.sign_agreement import SignAgreement, remove_conflict

D = torch.float64


def tensor(values: object) -> Tensor:
    return torch.tensor(values, dtype=D)


def domains(
    seed: int, count: int = 3, rows: int = 6, width: int = 4, classes: int = 3
) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(count, rows, width, generator=generator, dtype=D)
    labels = torch.randint(classes, (count, rows), generator=generator)
    weights = torch.randn(width, classes, generator=generator, dtype=D)
    return features, features @ weights, labels


def notions() -> list[Invariance]:
    kernel = KernelMean(16)
    kernel.fit(domains(0)[0].flatten(0, 1), torch.Generator().manual_seed(0))
    return [Risk(), GradientVariance(), FeatureMoments(), kernel]


# ---- risk ----------------------------------------------------------------------------------------


def test_variance_of_risks() -> None:
    risks = tensor([0.2, 0.5, 0.8]).requires_grad_()
    penalty = Risk().penalty({"risk": risks})
    assert float(penalty.detach()) == pytest.approx(0.06)
    loss = risks.mean() + 10 * penalty
    assert float(loss.detach()) == pytest.approx(1.1)
    loss.backward()
    assert risks.grad.tolist() == pytest.approx([-5 / 3, 1 / 3, 7 / 3])


def test_equal_risks_and_a_single_domain_have_no_penalty() -> None:
    assert float(Risk().penalty({"risk": tensor([0.4, 0.4, 0.4])})) == pytest.approx(0, abs=1e-30)
    assert float(Risk().penalty({"risk": tensor([0.7])})) == 0


def test_risk_is_the_mean_loss_per_domain() -> None:
    features, logits, labels = domains(1)
    found = Risk().statistic(features, logits, labels)["risk"]
    assert torch.allclose(
        found,
        torch.stack(
            [nn.functional.cross_entropy(z, y) for z, y in zip(logits, labels, strict=True)]
        ),
    )


def test_distillation_is_a_mean_over_rows_and_a_mean_or_sum_over_classes() -> None:
    now, then = tensor([[[1.0, 2.0], [0.0, 0.0]]]), tensor([[[0.0, 0.0], [2.0, 0.0]]])
    assert distillation(now, then, "mean").tolist() == pytest.approx([(2.5 + 2) / 2])
    assert distillation(now, then, "sum_classes").tolist() == pytest.approx([(5 + 4) / 2])


def test_risk_alignment_can_be_on_risks() -> None:
    align = Risk(align="risk").alignment(
        {"risk": tensor([1.0, 2.0])}, {"risk": tensor([0.5, 2.0])}, tensor([]), {}
    )
    assert align.tolist() == pytest.approx([0.25, 0])


# ---- gradient variance ---------------------------------------------------------------------------


def worked_fishr() -> tuple[Tensor, Tensor, Tensor]:
    features = tensor([[[1, 0], [0, 2], [1, 1]], [[2, 0], [0, 2], [0, 1]]])
    return features, torch.zeros(2, 3, 2, dtype=D), torch.tensor([[0, 1, 0], [0, 1, 1]])


def test_gradient_variance_of_the_worked_example() -> None:
    variance = GradientVariance().statistic(*worked_fishr())["variance"]
    assert variance[0].tolist() == pytest.approx([1 / 18, 7 / 18, 1 / 18, 7 / 18, 2 / 9, 2 / 9])
    assert variance[1].tolist() == pytest.approx([2 / 9, 1 / 6, 2 / 9, 1 / 6, 2 / 9, 2 / 9])
    assert float(GradientVariance("mean").penalty({"variance": variance})) == pytest.approx(
        0.0064300, abs=1e-7
    )
    assert float(GradientVariance("sum").penalty({"variance": variance})) == pytest.approx(
        0.0385802, abs=1e-7
    )


@given(st.integers(0, 500), st.integers(2, 7), st.booleans())
def test_closed_form_equals_explicit_gradients_of_every_row(
    seed: int, rows: int, corrected: bool
) -> None:
    generator = torch.Generator().manual_seed(seed)
    features = torch.randn(rows, 3, generator=generator, dtype=D)
    labels = torch.randint(4, (rows,), generator=generator)
    classifier = nn.Linear(3, 4, dtype=D)
    per_row = []
    for x, y in zip(features, labels, strict=True):
        loss = nn.functional.cross_entropy(classifier(x[None]), y[None])
        per_row.append(
            torch.cat(
                [g.flatten() for g in torch.autograd.grad(loss, list(classifier.parameters()))]
            )
        )
    explicit = torch.stack(per_row).var(dim=0, correction=int(corrected))
    found = GradientVariance(corrected=corrected).statistic(
        features[None], classifier(features)[None], labels[None]
    )["variance"][0]
    assert torch.allclose(found, explicit, atol=1e-10)


def test_the_penalty_has_the_gradient_of_the_explicit_form() -> None:
    """Autograd through the closed form against finite differences, in the features and through
    the softmax.
    """
    features, _, labels = domains(3, count=2, rows=4)
    weights = torch.randn(4, 3, generator=torch.Generator().manual_seed(5), dtype=D)

    def penalty(flat: Tensor) -> Tensor:
        shaped = flat.reshape(features.shape)
        return GradientVariance().penalty(
            GradientVariance().statistic(shaped, shaped @ weights, labels)
        )

    assert torch.autograd.gradcheck(penalty, (features.flatten().requires_grad_(),), atol=1e-8)


def test_identical_rows_have_a_variance_of_zero_in_single_precision() -> None:
    features = (30 * torch.randn(1, 1, 8)).expand(1, 16, 8)
    logits = torch.randn(1, 1, 3).expand(1, 16, 3)
    variance = GradientVariance().statistic(features, logits, torch.zeros(1, 16, dtype=torch.long))[
        "variance"
    ]
    assert float(variance.min()) >= 0
    assert torch.isfinite(GradientVariance()._logs(variance)).all()


def test_moving_variances_are_domainbeds() -> None:
    notion, state, seen = GradientVariance(decay=0.95), None, []
    features, logits, labels = worked_fishr()
    one = GradientVariance().statistic(features, logits, labels)["variance"]
    for _ in range(100):
        state = notion.absorb(state, features, logits, labels)
        seen.append(float((state["variance"] / one)[0, 0]))
    assert seen[:3] == pytest.approx([1, 1.95, 2.8525])
    assert seen[-1] == pytest.approx(19.88, abs=0.01)
    assert float(state["weight"][0]) == pytest.approx(seen[-1])
    aligned = notion.alignment(notion.summary(state), {"variance": one}, tensor([]), {})
    assert aligned.tolist() == pytest.approx([0, 0], abs=1e-9)


def test_log_cosine_alignment_of_the_worked_example() -> None:
    variance = tensor([[1e-4, 1e-3, 1e-2]])
    for norm, times_ten, turned in (("l2", 0.0074, 0.138), ("standardize", 0.0, 2.0)):
        notion = GradientVariance(log_normalisation=norm, log_floor=1e-12)
        prior = {"variance": variance}
        assert float(
            notion.alignment({"variance": 10 * variance}, prior, tensor([]), {})
        ) == pytest.approx(times_ten, abs=5e-4)
        assert float(
            notion.alignment({"variance": variance.flip(1)}, prior, tensor([]), {})
        ) == pytest.approx(turned, abs=5e-3)


# ---- feature moments -----------------------------------------------------------------------------


def test_feature_moments_of_the_worked_example() -> None:
    features = tensor([[[0, 0], [2, 2]], [[1, 0], [1, 2]]])
    statistic = FeatureMoments().statistic(features, features, features)
    assert statistic["mean"].tolist() == [[1, 1], [1, 1]]
    assert statistic["covariance"].tolist() == [[[2, 2], [2, 2]], [[0, 0], [0, 2]]]
    assert float(FeatureMoments("sum").penalty(statistic)) == pytest.approx(3.0)
    # DomainBed's pairwise mean-reduced value is 3.0; the deviation form of two domains is a quarter
    # of it.
    assert float(FeatureMoments("mean").penalty(statistic)) == pytest.approx(3.0 / 4)


def test_covariances_equal_numpy_and_one_row_gives_zero() -> None:
    features = domains(4)[0]
    found = FeatureMoments().statistic(features, features, features)["covariance"]
    for e in range(3):
        assert np.allclose(found[e].numpy(), np.cov(features[e].numpy().T))
    alone = FeatureMoments().statistic(features[:, :1], features, features)
    assert float(alone["covariance"].abs().max()) == 0


def test_shifting_all_domains_and_turning_the_features_change_nothing() -> None:
    features = domains(5)[0]
    rotation = torch.linalg.qr(
        torch.randn(4, 4, generator=torch.Generator().manual_seed(1), dtype=D)
    )[0]
    notion = FeatureMoments("sum")
    base, moved, turned = (
        notion.penalty(notion.statistic(f, f, f))
        for f in (features, features + 3, features @ rotation)
    )
    assert float(moved) == pytest.approx(float(base))
    assert float(turned) == pytest.approx(float(base))


def test_running_moments_of_a_domain_are_those_of_its_weighted_rows() -> None:
    """Scope `domain`: three batches with decay 0.5 against a weighted covariance computed at
    once.
    """
    notion, state = FeatureMoments(scope="domain", decay=0.5), None
    batches = [domains(seed, count=1)[0] for seed in (1, 2, 3)]
    for features in batches:
        state = notion.absorb(state, features, features, features)
    summary = notion.summary(state)
    everything = torch.cat([features[0] for features in batches]).numpy()
    weights = np.repeat([0.25, 0.5, 1.0], 6)
    assert np.allclose(summary["mean"][0].numpy(), np.average(everything, axis=0, weights=weights))
    assert np.allclose(summary["covariance"][0].numpy(), np.cov(everything.T, aweights=weights))


def test_running_moments_of_single_rows_are_a_covariance() -> None:
    notion, state = FeatureMoments(scope="domain", decay=0.99), None
    rows = domains(7, count=1, rows=40)[0]
    for row in range(40):
        state = notion.absorb(state, rows[:, row : row + 1], rows, rows)
        assert torch.isfinite(notion.summary(state)["covariance"]).all()
    assert int(torch.linalg.matrix_rank(notion.summary(state)["covariance"][0])) == 4


# ---- kernel mean ---------------------------------------------------------------------------------


def test_median_distance_of_the_worked_example() -> None:
    assert float(median_distance(tensor([[0.0], [1.0], [3.0], [7.0]]))) == pytest.approx(3.5)
    assert float(median_distance(tensor([[2.0], [2.0], [2.0]]))) == 1
    assert float(median_distance(tensor([[2.0]]))) == 1


@pytest.mark.parametrize("form", ["cos", "paired"])
def test_random_fourier_features_estimate_kernel_and_discrepancy(form: str) -> None:
    """Mean over draws: z(0,0)·z(1,1) -> exp(-1), and MMD² of the two worked sets -> 0.388210 (σ
    = 1).
    """
    x, y = tensor([[0, 0], [2, 2]]), tensor([[1, 0], [1, 2]])
    products, distances = [], []
    for seed in range(1000):
        notion = KernelMean(128, form=form, bandwidth=1.0)
        notion.fit(torch.cat([x, y]), torch.Generator().manual_seed(seed))
        products.append(float(notion.embed(tensor([0, 0])) @ notion.embed(tensor([1, 1]))))
        means = notion.statistic(torch.stack([x, y]), x, y)["embedding"]
        distances.append(float((means[0] - means[1]).square().sum()))
    assert np.mean(products) == pytest.approx(0.36788, abs=0.012)
    assert np.mean(distances) == pytest.approx(0.388210, abs=0.012)


def test_paired_features_have_unit_length_and_others_at_most_sqrt_two() -> None:
    features = domains(8)[0].flatten(0, 1)
    for form, bound in (("paired", 1.0), ("cos", 2.0)):
        notion = KernelMean(32, form=form)
        notion.fit(features, torch.Generator().manual_seed(0))
        norms = notion.embed(features).square().sum(dim=1)
        assert float(norms.max()) <= bound + 1e-9
        if form == "paired":
            assert torch.allclose(norms, torch.ones_like(norms))


def test_the_draw_is_fixed_saved_and_loaded() -> None:
    features = domains(9)[0]
    notion, other = KernelMean(16), KernelMean(16)
    assert notion.state_dict() == {}
    notion.fit(features.flatten(0, 1), torch.Generator().manual_seed(0))
    other.load_state_dict(notion.state_dict(), torch.device("cpu"))
    assert torch.equal(other.embed(features), notion.embed(features))
    assert float(notion.sigma) == pytest.approx(float(median_distance(features.flatten(0, 1))))


# ---- all notions ---------------------------------------------------------------------------------


@pytest.mark.parametrize("place", range(4))
def test_penalties_do_not_depend_on_the_order_of_domains_or_rows(place: int) -> None:
    notion = notions()[place]
    features, logits, labels = domains(11)
    base = notion.penalty(notion.statistic(features, logits, labels))
    order, rows = torch.tensor([2, 0, 1]), torch.tensor([3, 1, 5, 0, 4, 2])
    turned = notion.penalty(
        notion.statistic(features[order][:, rows], logits[order][:, rows], labels[order][:, rows])
    )
    assert float(turned) == pytest.approx(float(base), rel=1e-9)
    assert float(base) > 0


@pytest.mark.parametrize("place", range(4))
def test_identical_domains_and_a_single_domain_have_no_penalty(place: int) -> None:
    notion = notions()[place]
    same = [tensor_[:1].expand(4, *tensor_.shape[1:]) for tensor_ in domains(12)]
    assert float(notion.penalty(notion.statistic(*same))) == pytest.approx(0, abs=1e-20)
    assert float(notion.penalty(notion.statistic(*(tensor_[:1] for tensor_ in same)))) == 0


@pytest.mark.parametrize("place", range(4))
@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_deviation_from_the_mean_equals_the_mean_over_pairs(place: int, count: int) -> None:
    """1/s Σ ||φ_i - φ̄||² = (s-1)/(2s) · mean over pairs ||φ_i - φ_j||²."""
    notion = notions()[place]
    statistic = notion.statistic(*domains(13, count=count))
    pairs = []
    for i in range(count):
        for j in range(i + 1, count):
            one = {name: value[i : i + 1] for name, value in statistic.items()}
            pairs.append(
                float(
                    notion.deviation(
                        one, {name: value[j : j + 1] for name, value in statistic.items()}
                    )
                )
            )
    assert float(notion.penalty(statistic)) == pytest.approx(
        (count - 1) / (2 * count) * np.mean(pairs)
    )


@pytest.mark.parametrize("place", range(4))
def test_one_row_and_one_class_give_finite_numbers_and_gradients(place: int) -> None:
    notion = notions()[place]
    features, _, labels = domains(14, rows=1)
    features = features.requires_grad_()
    statistic = notion.statistic(features, features[..., :3], labels * 0)
    prior = {name: value.detach() for name, value in statistic.items()}
    stored = {"logits": torch.zeros(3, 1, 3, dtype=D)}
    total = (
        notion.penalty(statistic)
        + notion.alignment(statistic, prior, features[..., :3], stored).sum()
    )
    total.backward()
    assert torch.isfinite(total)
    assert torch.isfinite(features.grad).all()


# ---- running estimators --------------------------------------------------------------------------


@given(st.lists(st.integers(1, 9), min_size=1, max_size=6), st.integers(0, 1000))
def test_running_moments_equal_numpy(sizes: list[int], seed: int) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(sum(sizes), 3)) * 5 + 100
    full, entries, mean = RunningMoments(outer=True), RunningMoments(outer=False), RunningMean()
    for part in np.split(rows, np.cumsum(sizes)[:-1]):
        centred = part - part.mean(axis=0)
        full.merge(
            len(part), torch.from_numpy(part.mean(axis=0)), torch.from_numpy(centred.T @ centred)
        )
        entries.merge(
            len(part),
            torch.from_numpy(part.mean(axis=0)),
            torch.from_numpy((centred**2).sum(axis=0)),
        )
        mean.add({"x": torch.from_numpy(part.mean(axis=0))[None]}, len(part))
    assert np.allclose(full.mean.numpy(), rows.mean(axis=0))
    assert np.allclose(mean.means["x"].numpy(), rows.mean(axis=0))
    if len(rows) > 1:
        assert np.allclose(full.covariance(unbiased=True).numpy(), np.cov(rows.T))
    assert np.allclose(entries.covariance(unbiased=False).numpy(), rows.var(axis=0))


def test_a_mean_of_batch_variances_is_not_the_variance_of_the_domain() -> None:
    """Values 0,1 | 2,3: mean of batch variances 0.5, variance of all 1.667; hence `prior_level`."""
    features = tensor([[[0.0], [1.0]], [[2.0], [3.0]]])
    notion = FeatureMoments()
    mean = RunningMean()
    mean.add(notion.statistic(features, features, features), 4)
    assert float(mean.result()["covariance"]) == pytest.approx(0.5)
    exact = notion.domain_prior([(part, part, part[:, 0].long()) for part in features])
    assert float(exact["covariance"]) == pytest.approx(5 / 3)


def test_domain_priors_equal_the_statistic_of_all_rows() -> None:
    features, logits, labels = domains(15, count=1, rows=20)
    parts = [
        (features[0, a:b], logits[0, a:b], labels[0, a:b]) for a, b in ((0, 7), (7, 9), (9, 20))
    ]
    for notion in (GradientVariance(), GradientVariance(corrected=True), FeatureMoments()):
        whole = notion.statistic(features, logits, labels)
        for name, value in notion.domain_prior(parts).items():
            assert torch.allclose(value.double(), whole[name][0], rtol=1e-5, atol=1e-7)


# ---- sign agreement ------------------------------------------------------------------------------

GRADIENTS = [[1, 2, -1, 0], [3, -2, -3, 0], [2, 4, -2, 1]]


@pytest.mark.parametrize(
    ("mask", "threshold", "expected"),
    [
        ("hard", 1.0, (4, 0, -4, 0)),
        ("hard", 0.3, (2, 4 / 3, -2, 1 / 3)),
        ("hard", 0.0, (2, 4 / 3, -2, 1 / 3)),
        ("soft", 1.0, (3.990, 0.0068, -3.990, 0.0017)),
        ("soft", 0.5, (3.448, 0.368, -3.448, 0.092)),
    ],
)
def test_masks_of_the_worked_example(
    mask: str, threshold: float, expected: tuple[float, ...]
) -> None:
    combined, density = SignAgreement(mask, 0.1).combine(
        tensor(GRADIENTS), [tensor(GRADIENTS).shape[1]], tensor(threshold)
    )
    assert combined.tolist() == pytest.approx(expected, abs=6e-4)
    assert float(density) == (0.5 if threshold > 0.4 else 1.0)


def test_unanimity_is_recognised_for_every_number_of_domains() -> None:
    for count in range(2, 80):
        ones = torch.ones(count, 5)
        combined, density = SignAgreement("hard").combine(ones, [5], torch.tensor(1.0))
        assert float(density) == 1
        assert torch.allclose(combined, torch.ones(5))


def test_nothing_agreed_on_is_a_step_of_zero() -> None:
    combined, density = SignAgreement("hard").combine(
        tensor([[1.0, -1.0], [-1.0, 1.0]]), [2], tensor(1.0)
    )
    assert combined.tolist() == [0, 0]
    assert float(density) == 0


def test_density_counts_entries_over_all_tensors_but_scaling_is_per_tensor() -> None:
    gradients = tensor([[1.0, 1.0, 1.0], [1.0, -1.0, 1.0]])
    combined, density = SignAgreement("hard").combine(gradients, [2, 1], tensor(1.0))
    assert combined.tolist() == [pytest.approx(2.0), 0.0, pytest.approx(1.0)]
    assert float(density) == pytest.approx(2 / 3)


def test_projection_of_the_worked_example() -> None:
    def left(q: list[float], how: str) -> list[float]:
        return remove_conflict(tensor(q), tensor([1.0, 1.0]), how, [2]).tolist()

    assert left([-3.0, 1.0], "global") == pytest.approx([-2, 2])
    assert left([3.0, 1.0], "global") == [3, 1]
    assert left([-3.0, 1.0], "elementwise") == [0, 1]
    assert left([-3.0, 1.0], "none") == [-3, 1]


@given(st.integers(0, 2000), st.sampled_from(["global", "per-tensor", "elementwise"]))
def test_after_projection_nothing_conflicts(seed: int, how: str) -> None:
    generator = torch.Generator().manual_seed(seed)
    extra, main = torch.randn(2, 7, generator=generator, dtype=D)
    left = remove_conflict(extra, main, how, [3, 4])
    products = [
        float((q * g).sum()) for q, g in zip(left.split([3, 4]), main.split([3, 4]), strict=True)
    ]
    assert sum(products) >= -1e-9
    if how != "global":
        assert min(products) >= -1e-9
    norm = float(main.dot(main))
    step = float(main.dot(main + 0.3 * left))
    assert step >= norm - 1e-9
