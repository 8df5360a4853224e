"""EFC: the feature matrix in closed form, the cost of drift, means that follow, and Gaussians of
few rows.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

import farshore
from farshore.errors import FarshoreError
from farshore.learner.learner import Learner
from farshore.learner.loading import load
from farshore.methods.efc import EFC, EFCSettings, drift_cost, feature_matrix, followed
from farshore.methods.gaussians import Gaussians, fit
from farshore.settings import Uniform

AT_ORIGIN = torch.tensor([[0.25, -0.25], [-0.25, 0.25]], dtype=torch.float64)


def linear(weight: Tensor) -> nn.Linear:
    made = nn.Linear(weight.shape[1], weight.shape[0], dtype=torch.float64)
    made.weight.data = weight
    nn.init.zeros_(made.bias)
    return made


def test_feature_matrix_of_the_identity() -> None:
    identity = linear(torch.eye(2, dtype=torch.float64))
    torch.testing.assert_close(
        feature_matrix(torch.zeros(1, 2, dtype=torch.float64), identity), AT_ORIGIN
    )
    found = feature_matrix(torch.tensor([[1.0, 0.0]], dtype=torch.float64), identity)
    torch.testing.assert_close(
        found,
        0.196612 * torch.tensor([[1.0, -1.0], [-1.0, 1.0]], dtype=torch.float64),
        rtol=0,
        atol=1e-6,
    )


def test_closed_form_equals_the_explicit_mean_of_outer_products() -> None:
    generator = torch.Generator().manual_seed(0)
    classifier = linear(torch.randn(3, 5, generator=generator, dtype=torch.float64))
    classifier.bias.data = torch.randn(3, generator=generator, dtype=torch.float64)
    features = torch.randn(11, 5, generator=generator, dtype=torch.float64)
    explicit = torch.zeros(5, 5, dtype=torch.float64)
    for row in features:
        row = row.clone().requires_grad_()
        log_p = classifier(row).log_softmax(dim=0)
        for c in range(3):
            g = torch.autograd.grad(log_p[c], row, retain_graph=True)[0]
            explicit += log_p[c].detach().exp() * torch.outer(g, g) / 11
    matrix = feature_matrix(features, classifier)
    torch.testing.assert_close(matrix, explicit)
    values = torch.linalg.eigvalsh(matrix)
    assert float(values.min()) > -1e-12
    assert int((values > 1e-9).sum()) <= 2


@pytest.mark.parametrize(
    ("weight", "eta", "drift", "expected"),
    [
        (10, 0.1, (1, 1), 0.2),
        (10, 0.1, (1, -1), 10.2),
        (0.4, 0.1, (1, 1), 0.2),
        (0.4, 0.1, (1, -1), 0.6),
    ],
)
def test_cost_of_drift(
    weight: float, eta: float, drift: tuple[float, float], expected: float
) -> None:
    d = torch.tensor([drift], dtype=torch.float64)
    assert float(weight * drift_cost(d, AT_ORIGIN, eta / weight)) == pytest.approx(expected)
    two = torch.cat([d, torch.zeros_like(d)])
    assert float(weight * drift_cost(two, AT_ORIGIN, eta / weight)) == pytest.approx(expected / 2)


def test_means_follow_the_drift_of_near_rows() -> None:
    before = torch.tensor([[1.0, 0.0], [0.0, 1.0]], dtype=torch.float64)
    after = before + torch.tensor([[0.5, 0.0], [0.0, 0.1]], dtype=torch.float64)
    mean = torch.tensor([[1.0, 0.0]], dtype=torch.float64)
    assert followed(mean, before, after, AT_ORIGIN, 0.2)[0].tolist() == pytest.approx(
        [1.499998, 0], abs=1e-6
    )


def test_one_drift_of_all_rows_moves_the_means_by_it() -> None:
    generator = torch.Generator().manual_seed(0)
    before, means = (torch.randn(n, 4, generator=generator, dtype=torch.float64) for n in (30, 5))
    shift = torch.tensor([1.0, -2.0, 0.5, 0.0], dtype=torch.float64)
    matrix = torch.eye(4, dtype=torch.float64)
    torch.testing.assert_close(followed(means, before, before + shift, matrix, 0.2), means + shift)
    # All distances equal: no 0/0.
    torch.testing.assert_close(
        followed(means, before, before + shift, 0 * matrix, 0.2), means + shift
    )


@pytest.mark.parametrize("full", [True, False])
def test_gaussians_have_the_moments_of_their_rows(full: bool) -> None:
    generator = torch.Generator().manual_seed(0)
    labels = torch.arange(4000) % 2
    mix = torch.tensor([[1.0, 0.0], [0.8, 0.6]])
    features = torch.randn(4000, 2, generator=generator) @ mix.T + 5 * labels[:, None]
    gaussians = Gaussians(full=full)
    gaussians.add("a", features, labels)
    drawn, classes = gaussians.draw(20000, generator)
    for label in (0, 1):
        rows, real = drawn[classes == label], features[labels == label]
        torch.testing.assert_close(rows.mean(dim=0), real.mean(dim=0), rtol=0, atol=0.05)
        expected = real.T.cov() if full else real.T.cov().diag().diag()
        torch.testing.assert_close(rows.T.cov(), expected, rtol=0, atol=0.05)


def test_fewer_rows_than_features_and_one_row() -> None:
    features = 1e3 * torch.randn(7, 40, generator=torch.Generator().manual_seed(0))
    made = fit(features, torch.tensor([0, 0, 0, 2, 2, 2, 4]), full=True)
    assert made["labels"].tolist() == [0, 2, 4]
    assert bool(torch.isfinite(made["factors"]).all())
    torch.testing.assert_close(made["means"][2], features[6])
    assert float(made["factors"][2].diagonal().max()) == pytest.approx(1e-5**0.5)


def test_every_gaussian_is_drawn_as_often_as_any_other_but_for_one() -> None:
    gaussians = Gaussians(full=False)
    gaussians.add("a", torch.randn(30, 3), torch.arange(30) % 5)
    for rows in (3, 5, 12):
        counts = torch.bincount(
            gaussians.draw(rows, torch.Generator().manual_seed(rows))[1], minlength=5
        )
        assert int(counts.sum()) == rows
        assert int(counts.max() - counts.min()) <= 1


def domain(number: int) -> tuple[Tensor, Tensor]:
    generator = torch.Generator().manual_seed(number)
    y = torch.arange(60) % 3
    return 3 * torch.eye(3, 4)[y] + 0.4 * torch.randn(60, 4, generator=generator) + 0.5 * number, y


def trained(method: str = "efc", domains: int = 3, steps: int = 5, **settings: object) -> Learner:
    learner = Learner(
        method=method,
        memory=12,
        settings={"batch_size": 8, **settings},
        network_settings={"width": 8},
        preprocess="none",
    )
    for number in range(domains):
        learner.learn(*domain(number), domain=f"{number}", steps=steps)
    return learner


def weights(learner: Learner) -> Tensor:
    return torch.cat([p.detach().flatten() for p in learner.system.method.network.parameters()])


def test_without_weights_it_is_fine_tuning() -> None:
    assert torch.equal(
        weights(trained(drift_weight=0.0, prototype_weight=0.0)), weights(trained("finetune"))
    )
    for one in ({"drift_weight": 0.0}, {"prototype_weight": 0.0}):
        assert not torch.equal(weights(trained(**one)), weights(trained("finetune")))


def test_a_domain_begins_without_drift() -> None:
    class Watch(farshore.Observer):
        drifts: list[tuple[str, int, float]] = []

        def step(self, domain: str, step: int, terms) -> None:
            if "drift" in terms:
                self.drifts.append((domain, step, float(terms["drift"].detach())))

    learner = Learner(
        method="efc",
        settings={"batch_size": 8},
        network_settings={"width": 8},
        observer=Watch(),
        preprocess="none",
    )
    for number in range(2):
        learner.learn(*domain(number), domain=f"{number}", steps=4)
    assert [(name, step) for name, step, _ in Watch.drifts] == [("1", step) for step in range(4)]
    assert [value > 0 for _, _, value in Watch.drifts] == [False, True, True, True]


def test_the_old_model_is_the_one_at_the_domains_end() -> None:
    learner = trained(domains=2)
    method = learner.system.method
    assert isinstance(method, EFC)
    x, y = domain(5)
    torch.testing.assert_close(method.old(x), learner.logits(x), rtol=0, atol=0)
    before = {name: tensor.clone() for name, tensor in method.old.state_dict().items()}
    method.after_domain = lambda *_: None  # the domain's end would take a new copy
    learner.learn(x, y, domain="next", steps=4)
    assert all(
        torch.equal(tensor, before[name]) for name, tensor in method.old.state_dict().items()
    )


def test_one_gaussian_for_each_domain_and_class() -> None:
    method = trained(domains=2).system.method
    assert method.gaussians.owners == ["0"] * 3 + ["1"] * 3
    assert method.gaussians.parts["labels"].tolist() == [0, 1, 2, 0, 1, 2]
    kept = method.gaussians.parts["means"][3:].clone()
    method.forget("0")
    assert method.gaussians.owners == ["1"] * 3
    assert torch.equal(method.gaussians.parts["means"], kept)


def test_decay_of_the_matrix() -> None:
    replaced, kept, mixed = (
        trained(domains=2, matrix_decay=decay, bandwidth=0.0).system.method.matrix
        for decay in (0.0, 1.0, 0.25)
    )
    first = trained(domains=1).system.method.matrix
    assert torch.equal(kept, first)
    torch.testing.assert_close(mixed, 0.25 * first + 0.75 * replaced)


def test_bandwidth_zero_leaves_the_means() -> None:
    first = trained(domains=1).system.method.gaussians.parts["means"]
    assert torch.equal(
        trained(domains=2, bandwidth=0.0).system.method.gaussians.parts["means"][:3], first
    )
    assert not torch.equal(trained(domains=2).system.method.gaussians.parts["means"][:3], first)


def test_the_share_of_real_rows() -> None:
    method = trained(domains=3, steps=1).system.method
    method.before_domain("next")
    batch = farshore.data.batch.Batch(*domain(4), rows=60)
    assert len(method._previous_rows(batch)[1]) == 0
    method.after_step(batch)
    assert len(method._previous_rows(batch)[1]) == 60 // 4


@pytest.mark.parametrize("frozen", [True, False])
def test_batchnorm_after_the_first_domain(frozen: bool) -> None:
    torch.manual_seed(0)
    features = nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU())
    network = farshore.Network(features, nn.Linear(6, 3))
    learner = Learner(
        network,
        "efc",
        settings={"batch_size": 8, "batchnorm": "frozen" if frozen else "train"},
        preprocess="none",
    )
    learner.learn(*domain(0), domain="a", steps=3)
    layer = learner.system.method.network.features[1]
    before = {name: tensor.clone() for name, tensor in layer.state_dict().items()}
    assert float(before["num_batches_tracked"]) == 3
    learner.learn(*domain(1), domain="b", steps=3)
    assert all(
        torch.equal(tensor, before[name]) == frozen for name, tensor in layer.state_dict().items()
    )


def test_goes_on_after_loading(tmp_path: Path) -> None:
    straight = trained(domains=3, covariance="diagonal")
    learner = trained(domains=2, covariance="diagonal")
    learner.save(tmp_path)
    learner = load(tmp_path)
    learner.learn(*domain(2), domain="2", steps=5)
    assert torch.equal(weights(straight), weights(learner))


def test_another_head_than_a_linear_one_is_refused() -> None:
    network = farshore.Network(
        nn.Linear(4, 6), nn.Sequential(nn.ReLU(), nn.Linear(6, 3)), feature_dim=6
    )
    with pytest.raises(FarshoreError, match=r"efc.*linear classifier, not Sequential"):
        Learner(network, "efc", preprocess="none").learn(*domain(0), steps=1)


def test_defaults_are_efcs_own_and_ranges_the_papers() -> None:
    defaults, searched = EFCSettings.defaults(), EFCSettings.distributions()
    chosen = [defaults[name] for name in ("drift_weight", "prototype_weight", "matrix_decay")]
    assert chosen == [10, 1, 0]
    # η, which EFC's code gives as 0.1, is relative to λ here.
    assert defaults["damping"] * defaults["drift_weight"] == pytest.approx(0.1)
    assert searched["drift_weight"] == Uniform(0.01, 0.5)
    assert searched["prototype_weight"] == Uniform(0.01, 0.99)
    assert searched["matrix_decay"] == Uniform(0.001, 0.1)
