"""Regrets, penalties at equal labels, and C-Mixup: formulas, seal, resumed and saved runs."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.special import betaincinv
from sklearn.kernel_ridge import KernelRidge
from sklearn.linear_model import LogisticRegression
from torch import Tensor, nn

import farshore
from farshore.base.randomness import Generators
from farshore.data.batch import Batch, Draw
from farshore.errors import FarshoreError
from farshore.invariance.attainable import FOLDS, STRENGTHS, attainable_risk, kernel
from farshore.invariance.feature_moments import FeatureMoments
from farshore.invariance.invariance import Invariance
from farshore.invariance.kernel_mean import KernelMean
from farshore.invariance.risk import Risk
from farshore.runs import catalog
from farshore.runs.resume import Resume
from farshore.settings import RunSettings
from farshore.tasks.classification import Classification
from farshore.tasks.regression import Regression
from farshore.tasks.task import Task
from farshore.testing import check_method, toy_learned, toy_rows
from farshore.training.mixing import LabelMixing
from tests.numbered import executed, table

OPTIONS: list[tuple[str, dict[str, Any]]] = [
    ("cl-vrex", {"risk": "regret", "anneal_steps": 2}),
    ("cl-vrex", {"risk": "regret", "alignment": "risk", "loss": "huber", "priors": "dynamic"}),
    ("cl-coral", {"condition": "label"}),
    ("cl-mmd", {"condition": "label", "label_bandwidth": 0.3}),
    ("er", {"mixing": "c-mixup"}),
    ("der++", {"mixing": "c-mixup", "mix_alpha": 0.5, "label_bandwidth": 1.0}),
    ("joint", {"mixing": "c-mixup"}),
]


def drawn(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)


# ---- what a domain can attain --------------------------------------------------------------------


def curved(count: int, noise: float, seed: int = 0) -> tuple[Tensor, Tensor]:
    x = drawn(count, 4, seed=seed)
    y = x[:, 0] - x[:, 1].square() / 1.5 + noise * drawn(count, seed=seed + 1)
    return x, y[:, None].float()


def test_the_attainable_risk_is_that_of_kernel_ridge_out_of_fold() -> None:
    x, y = curved(90, 0.3)
    fold, pairs, labels = np.arange(90) % FOLDS, kernel(x).numpy(), y.double().numpy()
    errors = np.zeros((len(STRENGTHS), 90))
    for number, strength in enumerate(STRENGTHS):
        for each in range(FOLDS):
            out = fold != each
            model = KernelRidge(alpha=strength * out.sum(), kernel="precomputed")
            model.fit(pairs[np.ix_(out, out)], labels[out])
            found = model.predict(pairs[np.ix_(~out, out)])
            errors[number, ~out] = np.square(found - labels[~out])[:, 0]
    expected = errors.mean(axis=1).min()
    assert attainable_risk(Regression(), x, y) == pytest.approx(expected, rel=1e-4)


def test_the_kernel_is_a_level_a_plane_and_a_smooth_rest() -> None:
    x = torch.tensor([[0.0, 0.0], [2.0, 0.0], [4.0, 6.0]], dtype=torch.float64)
    away = x - x.mean(dim=0)
    scaled = away / away.square().mean().sqrt()
    far = torch.tensor([[float((a - b).norm()) for b in scaled] for a in scaled])
    sigma = sorted([far[0, 1], far[0, 2], far[1, 2]])[1]
    for a in range(3):
        for b in range(3):
            rest = float(torch.exp(-(far[a, b] ** 2) / (2 * sigma**2)))
            expected = 100 + float(scaled[a] @ scaled[b]) / 2 + rest
            assert float(kernel(x)[a, b]) == pytest.approx(expected)


def test_the_attainable_risk_of_classes_is_that_of_logistic_regression_out_of_fold() -> None:
    x, y = curved(60, 0.3)
    labels = (y[:, 0] > 0).long()
    values, vectors = np.linalg.eigh(kernel(x).numpy())
    z, fold = vectors * np.sqrt(values.clip(0)), np.arange(60) % FOLDS
    losses = np.zeros((len(STRENGTHS), 60))
    for number, strength in enumerate(STRENGTHS):
        for each in range(FOLDS):
            out = fold != each
            # Two logits of opposite weights: half the squared norm of their difference.
            model = LogisticRegression(
                C=1 / (strength * out.sum()), fit_intercept=False, tol=1e-8, max_iter=5000
            ).fit(z[out], labels[out])
            p = model.predict_proba(z[~out])[np.arange((~out).sum()), labels[~out]]
            losses[number, ~out] = -np.log(p)
    expected = losses.mean(axis=1).min()
    assert attainable_risk(Classification((0, 1)), x, labels) == pytest.approx(expected, rel=1e-3)


def test_the_attainable_risk_is_about_the_noise_of_the_labels() -> None:
    for noise in (0.3, 1.0):
        found = attainable_risk(Regression(), *curved(400, noise))
        assert noise**2 * 0.8 < found < noise**2 * 1.2 + 0.05
    x, _ = curved(400, 0.0)
    coin = (drawn(400, seed=9) > 0).long()
    assert attainable_risk(Classification((0, 1)), x, coin) == pytest.approx(np.log(2), abs=0.02)
    huber = Regression().under(RunSettings(loss="huber"))
    assert attainable_risk(huber, *curved(400, 1.0)) < attainable_risk(
        Regression(), *curved(400, 1.0)
    )


def test_the_attainable_risk_of_a_single_row_is_that_of_no_prediction() -> None:
    one = torch.tensor([[3.0]])
    assert attainable_risk(Regression(), torch.ones(1, 2), one) == pytest.approx(9)
    found = attainable_risk(Classification((0, 1)), torch.ones(1, 2), torch.tensor([1]))
    assert found == pytest.approx(np.log(2))


def test_regrets_of_the_truth_are_equal_where_risks_are_not() -> None:
    """Two domains follow one function with other noise: only risks punish the truth."""
    risks, regrets = [], []
    for seed, noise in ((0, 0.2), (7, 1.0)):
        x, y = curved(400, noise, seed)
        truth = x[:, 0] - x[:, 1].square() / 1.5
        risks.append(float((truth[:, None] - y).square().mean()))
        regrets.append(risks[-1] - attainable_risk(Regression(), x, y))
    assert np.var(regrets) < 0.05 * np.var(risks)


@pytest.mark.parametrize("priors", ["static", "dynamic"])
def test_the_penalty_is_the_variance_of_regrets_and_the_yardstick_stays(priors: str) -> None:
    settings = {"risk": "regret", "priors": priors}
    learner = toy_learned("cl-vrex", domains=2, settings=settings)
    method = learner.system.method
    before = method.priors.stacked()["attainable"].clone()
    learner.learn(*toy_rows(2), domain="d2", steps=4)
    after = method.priors.stacked()
    assert torch.equal(after["attainable"][:2], before)
    assert len(set(after["attainable"].tolist())) == 3
    x, y = toy_rows(5, rows=36)
    batch = Batch(
        x, y, rows=12, domains=torch.tensor([2, 0]), replay_rows=12,
        stored={"logits": torch.zeros(2, 12, 2)},
    )  # fmt: skip
    method.invariance.attainable = torch.tensor([0.125])
    method.penalty_weight = 1.0
    found = float(method.terms(batch)["penalty"].detach())
    logits = learner.logits(x)
    each = [nn.functional.cross_entropy(logits[a : a + 12], y[a : a + 12]) for a in (0, 12, 24)]
    floors = [0.125, *after["attainable"][[2, 0]].tolist()]
    expected = np.var([float(risk) - floor for risk, floor in zip(each, floors, strict=True)])
    assert found == pytest.approx(expected, rel=1e-4)


def test_alignment_on_risks_is_the_same_with_regrets() -> None:
    plain, notion = Risk(align="risk"), Risk(align="risk", regret=True)
    notion.attainable = torch.tensor([0.3])
    prior, now = {"risk": torch.tensor([0.5])}, {"risk": torch.tensor([1.1])}
    regret = {"risk": now["risk"] - 0.3}
    found = notion.alignment(regret, notion.kept(prior), torch.zeros(0), {})
    assert torch.allclose(found, plain.alignment(now, prior, torch.zeros(0), {}))


# ---- penalties at equal labels -------------------------------------------------------------------


def fitted(notion: Invariance, task: Task, features: Tensor) -> Invariance:
    notion.task = task
    notion.fit(features.flatten(0, 1), torch.Generator().manual_seed(0))
    return notion


def both(task: Task, features: Tensor) -> list[Invariance]:
    kinds = (FeatureMoments(condition="label"), KernelMean(8, condition="label"))
    return [fitted(notion, task, features) for notion in kinds]


def slow_spread(parts: list[tuple[Tensor, float]], reduce: str) -> tuple[float, float]:
    """Σ_e m_e ||φ_e - φ̄||² and Σ_e m_e at one label."""
    total = sum(mass for _, mass in parts)
    if total == 0:
        return 0.0, 0.0
    mean = sum(mass * value for value, mass in parts) / total
    squares = [float(getattr((value - mean).square(), reduce)()) for value, _ in parts]
    return sum(mass * square for (_, mass), square in zip(parts, squares, strict=True)), total


def slow_penalty(notion: Any, features: Tensor, weights: list[Tensor]) -> float:
    """The penalty by loops over labels, domains and rows; weights [n, A] of each domain."""
    sums: dict[str, list[tuple[float, float]]] = {}
    for a in range(weights[0].shape[1]):
        parts: dict[str, list[tuple[Tensor, float]]] = {}
        for rows, near in zip(features, weights, strict=True):
            w = near[:, a]
            mass = float(w.mean())
            safe = w.sum().clamp_min(1e-12)
            if isinstance(notion, KernelMean):
                z = notion.embed(rows)
                value = sum(w[i] * z[i] for i in range(len(z))) / safe
                parts.setdefault("embedding", []).append((value, mass))
                continue
            mean = sum(w[i] * rows[i] for i in range(len(rows))) / safe
            outer = sum(
                w[i] * torch.outer(rows[i] - mean, rows[i] - mean) for i in range(len(rows))
            )
            several = bool(w.sum() ** 2 > 1.5 * w.square().sum())
            divisor = w.sum() - w.square().sum() / safe
            parts.setdefault("mean", []).append((mean, mass))
            covariance = outer / divisor if several else torch.zeros_like(outer)
            parts.setdefault("covariance", []).append((covariance, mass * several))
        for name, of in parts.items():
            sums.setdefault(name, []).append(slow_spread(of, notion.reduction))
    return sum(sum(s for s, _ in of) / sum(m for _, m in of) for of in sums.values())


def test_labels_are_near_by_a_kernel_or_as_a_class() -> None:
    task = Regression().under(RunSettings(label_bandwidth=0.5))
    near = task.nearness(torch.tensor([[0.0], [1.0], [9.0]]))
    assert near.shape == (3, 5)  # at -2, -1, 0, 1, 2
    assert near[0].tolist() == pytest.approx(np.exp([-8, -2, 0, -2, -8]))
    assert near[1].tolist() == pytest.approx(np.exp([-18, -8, -2, 0, -2]))
    assert float(near[2].max()) < 1e-20
    assert Regression(("a", "b")).nearness(torch.zeros(4, 2)).shape == (4, 10)
    assert Regression(bandwidth=5.0).nearness(torch.ones(2, 1)).shape == (2, 1)
    classes = Classification((0, 1, 2)).nearness(torch.tensor([[2, 0]]))
    assert classes.tolist() == [[[0, 0, 1], [1, 0, 0]]]


@pytest.mark.parametrize("outputs", [1, 2])
def test_the_penalty_at_equal_labels_is_that_of_loops(outputs: int) -> None:
    features = drawn(3, 7, 4)
    labels = 1.5 * drawn(3, 7, outputs, seed=1)
    task = Regression(tuple("ab"[:outputs]), bandwidth=0.5)
    weights = []
    for rows in labels:
        columns = [rows[:, k] - a for k in range(outputs) for a in (-2, -1, 0, 1, 2)]
        weights.append(torch.stack([torch.exp(-(c**2) / 0.5) for c in columns], dim=1))
    for notion in both(task, features):
        found = notion.penalty_at_labels([features[:1], features[1:]], [labels[:1], labels[1:]])
        assert float(found) == pytest.approx(slow_penalty(notion, features, weights), rel=1e-5)


def test_with_classes_each_class_is_compared_with_itself() -> None:
    features, labels = drawn(2, 6, 3), torch.tensor([[0, 0, 0, 0, 1, 2], [0, 0, 1, 1, 1, 1]])
    weights = [nn.functional.one_hot(rows, 3).double() for rows in labels]
    for notion in both(Classification((0, 1, 2)), features):
        found = notion.penalty_at_labels([features], [labels])
        assert float(found) == pytest.approx(slow_penalty(notion, features, weights), rel=1e-5)


def test_a_bandwidth_without_end_is_the_usual_penalty() -> None:
    features, labels = drawn(3, 8, 4), drawn(3, 8, 1, seed=1)
    for notion in both(Regression(bandwidth=1e4), features):
        usual = notion.penalty(notion.statistic(features, features, labels))
        found = notion.penalty_at_labels([features], [labels])
        assert float(found) == pytest.approx(float(usual), rel=1e-4)


def test_other_frequencies_of_labels_alone_are_hardly_punished() -> None:
    """f = g(y) + noise in all domains: only P(y) differs."""
    labels = torch.stack([0.6 * drawn(2000, 1, seed=n) + shift for n, shift in enumerate((-1, 1))])
    features = torch.cat([labels, labels.square()], dim=2) + 0.1 * drawn(2, 2000, 2, seed=5)
    for notion in both(Regression(bandwidth=0.3), features):
        usual = float(notion.penalty(notion.statistic(features, features, labels)))
        assert float(notion.penalty_at_labels([features], [labels])) < 0.15 * usual
        moved = features + torch.tensor([[[0.0, 0.0]], [[1.0, 0.0]]])
        shifted = float(notion.penalty_at_labels([moved], [labels]))
        assert shifted > 3 * float(notion.penalty_at_labels([features], [labels]))


def test_running_moments_have_no_labels() -> None:
    settings = {"condition": "label", "scope": "domain"}
    with pytest.raises(FarshoreError, match="scope = 'domain' is not allowed: it should be batch"):
        farshore.Learner(method="cl-coral", settings=settings)


# ---- C-Mixup -------------------------------------------------------------------------------------


def mixing(**settings: Any) -> LabelMixing:
    return LabelMixing(RunSettings(mixing="c-mixup", **settings), Generators.from_seed(0))


def test_partners_are_drawn_by_the_kernel_of_the_labels() -> None:
    labels = torch.tensor([0.0, 0.3, 1.0, -2.0])
    mixer, repeats, h = mixing(label_bandwidth=0.7), 20000, 0.7
    rows = {"inputs": torch.eye(4).expand(repeats, 4, 4), "labels": labels.expand(repeats, 4)[..., None]}  # noqa: E501  # fmt: skip
    found = mixer.mixed(rows, torch.tensor(0.0), mixer.generators.data)["inputs"].mean(dim=0)
    for i in range(4):
        chance = np.exp([-float((labels[i] - y) ** 2) / (2 * h**2) for y in labels])
        assert found[i].tolist() == pytest.approx(chance / chance.sum(), abs=0.015)


def test_shares_are_quantiles_of_their_distribution() -> None:
    for alpha in (0.5, 2.0):
        shares = mixing(mix_alpha=alpha).shares.double()
        assert float(shares.mean()) == pytest.approx(0.5)
        assert float(shares.var()) == pytest.approx(1 / (4 * (2 * alpha + 1)), rel=0.01)
        middle = float(shares[1023:1025].mean())
        assert middle == pytest.approx(betaincinv(alpha, alpha, 0.25), rel=1e-3)


def test_everything_of_a_row_is_mixed_alike_and_within_its_domain() -> None:
    mixer = mixing(label_bandwidth=100.0)
    x = torch.cat([torch.rand(6, 2), 100 + torch.rand(8, 2)])
    y = x.sum(dim=1, keepdim=True)
    past = x[6:].reshape(2, 4, 2)
    past[1] += 1000
    batch = Batch(
        x, x.sum(dim=1, keepdim=True), rows=6, domains=torch.arange(2), replay_rows=4,
        stored={"logits": 3 * past.sum(dim=2, keepdim=True)}, weights=2 * x[:, 0],
    )  # fmt: skip
    away = torch.rand(5, 2)
    batch.draws["replay"] = Draw(away, away.sum(dim=1, keepdim=True), {"logits": away})
    given = x.clone()
    found = mixer(batch)
    assert torch.equal(batch.inputs, given)
    assert not torch.equal(found.inputs, given)
    assert torch.allclose(found.labels, found.inputs.sum(dim=1, keepdim=True), rtol=1e-5)
    assert torch.allclose(found.weights, 2 * found.inputs[:, 0], rtol=1e-5)
    replayed = found.replay(found.labels)
    assert torch.allclose(found.stored["logits"], 3 * replayed, rtol=1e-5)
    assert float(found.inputs[:6].max()) <= 1
    assert 100 <= float(found.inputs[6:10].min()) <= float(found.inputs[6:10].max()) <= 101
    assert float(found.inputs[10:].min()) >= 1100
    draw = found.draws["replay"]
    assert torch.allclose(draw.stored["logits"], draw.inputs)
    assert not torch.equal(draw.inputs, away)
    assert len(y) == len(found.labels)


def test_mixed_images_stay_whole_numbers() -> None:
    mixer = mixing()
    images = torch.tensor([0, 255], dtype=torch.uint8).reshape(1, 2, 1, 1, 1)
    rows = {"inputs": images, "labels": torch.zeros(1, 2, 1)}
    draws = [
        mixer.mixed(rows, torch.tensor(0.3), mixer.generators.data)["inputs"] for _ in range(20)
    ]
    found = torch.stack(draws)
    assert found.dtype == torch.uint8
    assert set(found.flatten().tolist()) == {0, 255, 76, 178}  # 0.3 · 255, and 0.7 · 255 down


@pytest.mark.parametrize("method", ["er", "der++"])
def test_a_memory_keeps_rows_as_they_were_given(method: str) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3)).astype(np.float32)
    y = x.sum(axis=1) * 7
    settings = {"mixing": "c-mixup", "memory_fill": "reservoir", "learning_rate": 1e-7}
    learner = farshore.Learner(
        method=method, settings=settings, preprocess="none", memory=20, task="regression"
    )
    learner.learn(x, y, domain="a", steps=5)
    known = {row.tobytes() for row in x}
    kept = [rows for rows in learner.system.kept_rows().values() if "inputs" in rows]
    assert sum(len(rows["inputs"]) for rows in kept) >= 16
    for rows in kept:
        assert {row.numpy().tobytes() for row in rows["inputs"]} <= known
        back = learner.known_task.values(rows["labels"])[:, 0]
        assert back == pytest.approx(rows["inputs"].sum(dim=1).numpy() * 7, abs=1e-4)
        now = learner.logits(rows["inputs"])
        assert float((rows["logits"] - now).abs().max()) < 1e-3


def test_mixtures_change_the_weights_and_repeat() -> None:
    x, y = (each.numpy() for each in curved(80, 0.1))

    def learned(**settings: Any) -> np.ndarray:
        learner = farshore.Learner(method="er", settings=settings)
        learner.learn(x, y[:, 0], domain="a", steps=10)
        return learner.predict(x)

    mixed = learned(mixing="c-mixup")
    assert np.array_equal(mixed, learned(mixing="c-mixup"))
    assert not np.array_equal(mixed, learned())
    assert not np.array_equal(mixed, learned(mixing="c-mixup", mix_alpha=0.2))
    assert not np.array_equal(mixed, learned(mixing="c-mixup", label_bandwidth=2.0))
    assert np.array_equal(learned(), learned(mix_alpha=0.2, label_bandwidth=2.0))


def test_classes_and_methods_without_steps_refuse_mixtures(tmp_path: Path) -> None:
    frame = table()
    with pytest.raises(
        FarshoreError, match="mixing = 'c-mixup' is not allowed with method 'ridge'"
    ):
        executed(tmp_path, frame, "ridge", settings={"mixing": "c-mixup"})
    frame["y"] = (frame["y"] > 500).astype(int)
    with pytest.raises(FarshoreError, match="mixing = 'c-mixup' is for a number as the label"):
        executed(tmp_path, frame, "er", settings={"mixing": "c-mixup"})
    numbers = executed(tmp_path, table(), "auto", settings={"mixing": "c-mixup"}, steps=2)
    assert numbers.target.scores["mae"] > 0


# ---- every promise of a run ----------------------------------------------------------------------


def seen(result: Any) -> tuple[Any, ...]:
    """Everything that must not depend on the target."""
    return result.target.weights, result.matrices, result.task, result.source_scores


@pytest.mark.parametrize("numbers", [True, False])
@pytest.mark.parametrize(("method", "settings"), OPTIONS)
def test_a_target_of_noise_changes_nothing_and_a_killed_run_continues(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    settings: dict[str, Any],
    numbers: bool,
) -> None:
    if not numbers and {"mixing", "loss"} & set(settings):
        pytest.skip("for numbers only")

    def run(folder: str, *, noise: bool = False, **further: Any) -> Any:
        frame = table(noise=noise)
        if not numbers:
            frame["y"] = (frame["y"] > 500).map({True: "high", False: "low"})
        return executed(tmp_path / folder, frame, method, settings=settings, steps=4, **further)

    whole = run("whole")
    assert seen(run("noise", noise=True)) == seen(whole)
    if method == "joint":
        return
    learn, folder = farshore.Learner.learn_domain, tmp_path / "resume"

    def killed(self: Any, domain: Any, **given: Any) -> None:
        if domain.name == "c":
            raise KeyboardInterrupt
        learn(self, domain, **given)

    monkeypatch.setattr(farshore.Learner, "learn_domain", killed)
    with pytest.raises(KeyboardInterrupt):
        run("again", resume=Resume(folder))
    monkeypatch.setattr(farshore.Learner, "learn_domain", learn)
    resumed = run("again", resume=Resume(folder))
    assert seen(resumed) == seen(whole)
    assert resumed.target.scores == whole.target.scores


@pytest.mark.parametrize(("method", "settings"), OPTIONS[:-1])
def test_a_saved_learner_continues(tmp_path: Path, method: str, settings: dict[str, Any]) -> None:
    frame = table()
    x, y, site = frame[["x", "z"]].to_numpy(), frame[["y", "y2"]].to_numpy(), frame["site"]
    learner = farshore.Learner(method=method, settings=settings, memory=30)
    for name in "abc":
        learner.learn(x[site == name], y[site == name], domain=name, steps=3)
    learner.save(tmp_path / "m")
    again = farshore.load(tmp_path / "m")
    for each in (learner, again):
        if method != "der++":
            each.forget("a")
        each.learn(x[site == "d"], y[site == "d"], domain="d", steps=3)
    assert np.array_equal(again.predict(x), learner.predict(x))
    plain = {name: value for name, value in settings.items() if name not in OPTIONS_ON}
    usual = farshore.Learner(method=method, settings=plain, memory=30)
    for name in "abc":
        usual.learn(x[site == name], y[site == name], domain=name, steps=3)
    assert not np.array_equal(usual.predict(x), farshore.load(tmp_path / "m").predict(x))


OPTIONS_ON = ("risk", "condition", "mixing")


@pytest.mark.soak
@pytest.mark.parametrize("numbers", [True, False])
@pytest.mark.parametrize(("method", "settings"), OPTIONS)
def test_the_battery_runs_with_the_options(
    method: str, settings: dict[str, Any], numbers: bool
) -> None:
    if not numbers and {"mixing", "loss"} & set(settings):
        pytest.skip("for numbers only")
    check_method(method, settings=settings, numbers=numbers)


# ---- every method on a table of numbers ----------------------------------------------------------

REFUSING = {
    *("er-ace", "lode", "star", "cope", "efc", "sarl", "ncm", "slda", "best"),
    *("tent", "cotta", "shot++"),
}


@pytest.mark.parametrize("label", ["y", "y,y2"])
@pytest.mark.parametrize("method", catalog.names())
def test_every_method_learns_numbers_or_names_those_that_do(
    tmp_path: Path, method: str, label: str
) -> None:
    options = {"label": label, "drop": "" if "," in label else "y2"}
    frame = table(20, sites=("a", "b", "d"))
    given: dict[str, Any] = {"options": options, "steps": 2, "memory": 20}
    if method in REFUSING:
        with pytest.raises(FarshoreError, match=r"needs classes.* use one of finetune, .*ridge"):
            executed(tmp_path, frame, method, **given)
        return
    result = executed(tmp_path, frame, method, **given)
    assert result.status == "done"
    assert result.task["labels"] == label.split(",")
    assert np.isfinite(
        [result.target.scores[name] for name in ("mae", "rmse", "r2", "skill")]
    ).all()
