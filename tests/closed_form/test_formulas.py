"""The formulas of the closed-form learners, against slower computations on the rows themselves."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.linear_model import Ridge as SklearnRidge
from torch import Tensor
from torch.nn.functional import cross_entropy, one_hot

import farshore
from farshore.data.domain import Domain
from farshore.deployment.export import export_model
from farshore.errors import FarshoreError
from farshore.learner.learner import Learner
from farshore.learner.loading import from_state_dict, load
from farshore.results.frame import frame_of_results
from farshore.results.select import select
from farshore.results.summary import rank
from farshore.systems.closed_form import head
from farshore.systems.closed_form.head import Head, folds, score, solve, temperature
from farshore.systems.closed_form.predictor import squares
from farshore.systems.closed_form.ridge import STRENGTHS, Ridge, RidgeSettings, Solver
from farshore.systems.closed_form.slda import SLDA, SLDASettings
from farshore.systems.closed_form.sums import (
    FEW_DOMAINS,
    MOST_FOLDS,
    Adder,
    DomainSums,
    SumsOfDomain,
    fold,
    unfold,
    unpack,
)
from farshore.testing import differences, toy_images, toy_rows

CLASSES, WIDTH = 3, 6


def rows(number: int, count: int = 90) -> tuple[Tensor, Tensor]:
    """Overlapping classes, so that no head is perfect; another number is another domain."""
    generator = torch.Generator().manual_seed(number)
    labels = torch.randint(CLASSES, (count,), generator=generator)
    centres = torch.eye(CLASSES, WIDTH) * 1.5
    noise = torch.randn(count, WIDTH, generator=generator)
    return centres[labels] + noise + 0.3 * number, labels


def summed(
    inputs: Tensor, labels: Tensor, *, batch: int = 32, weight: Tensor | None = None
) -> SumsOfDomain:
    cpu = torch.device("cpu")
    adder = Adder(inputs.shape[1], CLASSES, "products", torch.float64, cpu)
    for part, classes in zip(inputs.split(batch), labels.split(batch), strict=True):
        adder.add(part, one_hot(classes, CLASSES), weight)
    return adder.packed()


def domains(count: int = 3) -> DomainSums:
    return DomainSums({f"{number:02}": summed(*rows(number)) for number in range(count)})


def scores_of(head: Head, inputs: Tensor) -> Tensor:
    return inputs.double() @ head.weight + head.bias


@pytest.mark.parametrize("width", [1, 2, 3, 8, 129, 300])
def test_a_triangle_is_folded_and_unfolded_exactly(width: int) -> None:
    square = torch.randn(width, width, generator=torch.Generator().manual_seed(0))
    square = square + square.T
    folded = fold(square)
    assert folded.numel() == (width + 1) // 2 * (width + 1)
    assert torch.equal(unfold(folded), square)
    assert torch.equal(unfold(fold(square.triu())), square)  # the lower triangle is not read


def test_sums_over_batches_are_those_over_all_rows() -> None:
    inputs, labels = rows(0, 500)
    wide = torch.cat([inputs] * 50, dim=1)[:, :290]  # more features than a block has
    total = unpack(summed(wide, labels))
    exact, members = wide.double(), one_hot(labels, CLASSES).double()
    torch.testing.assert_close(total.products, exact.T @ exact)
    torch.testing.assert_close(total.by_class, exact.T @ members)
    assert total.counts.tolist() == members.sum(dim=0).tolist()


def test_class_weights_count_as_repeated_rows() -> None:
    inputs, labels = rows(1)
    times = torch.tensor([1, 4, 2])
    repeated = times[labels]
    weighted = summed(inputs, labels, weight=times.float())
    more = summed(inputs.repeat_interleave(repeated, 0), labels.repeat_interleave(repeated, 0))
    for name, tensor in more.items():
        torch.testing.assert_close(weighted[name], tensor)


@pytest.mark.parametrize("strength", [1e-3, 0.3, 10.0])
def test_ridge_is_ridge_regression_with_a_free_intercept(strength: float) -> None:
    inputs, labels = rows(0)
    regression = Solver(unpack(summed(inputs, labels)))
    exact = inputs.double().numpy()
    alpha = strength * exact.var(axis=0).mean() * len(exact)
    reference = SklearnRidge(alpha=alpha).fit(exact, np.eye(CLASSES)[labels.numpy()])
    expected = torch.from_numpy(reference.predict(exact))
    torch.testing.assert_close(scores_of(regression.head(strength), inputs), expected)


def test_a_matrix_that_rounding_made_indefinite_is_solved_by_its_bounded_eigenvalues() -> None:
    vectors = torch.linalg.qr(torch.randn(4, 4, generator=torch.Generator().manual_seed(0)))[0]
    vectors, right = vectors.double(), torch.ones(4, 2).double()
    for smallest in (0.1, -1e-9):
        matrix = vectors * torch.tensor([smallest, 1.0, 2.0, 3.0]).double() @ vectors.T
        bounded = vectors * torch.tensor([0.1, 1.0, 2.0, 3.0]).double() @ vectors.T
        torch.testing.assert_close(
            solve(matrix, right, least=0.1), torch.linalg.solve(bounded, right)
        )


def test_the_error_on_a_left_out_domain_follows_from_its_sums() -> None:
    inputs, labels = rows(2)
    head = Solver(unpack(summed(*rows(0)))).head(0.1)
    sums = score(head, unpack(summed(inputs, labels)))
    scores, members = scores_of(head, inputs), one_hot(labels, CLASSES).double()
    torch.testing.assert_close(sums.squared_error, (scores - members).square().sum(1).mean())
    torch.testing.assert_close(sums.products, scores.T @ scores)
    torch.testing.assert_close(sums.by_class, scores.T @ members)


def test_the_strength_is_the_best_on_left_out_sources_and_the_weights_are_those_of_all() -> None:
    errors = []
    for strength in STRENGTHS:
        error = 0.0
        for left_out in range(3):
            rest = domains()
            del rest[f"{left_out:02}"]
            head = Solver(rest.total()).head(strength)
            inputs, labels = rows(left_out)
            members = one_hot(labels, CLASSES).double()
            error += float((scores_of(head, inputs) - members).square().sum(1).mean())
        errors.append(error)
    best = STRENGTHS[int(np.argmin(errors))]
    assert STRENGTHS[0] < best < STRENGTHS[-1]
    fitted = Ridge(RidgeSettings()).fit(domains())
    expected = Solver(domains().total()).head(best)
    factor = float(fitted.bias.norm() / expected.bias.norm())
    torch.testing.assert_close(fitted.weight, factor * expected.weight)
    torch.testing.assert_close(fitted.bias, factor * expected.bias)


def test_one_domain_is_judged_by_generalised_cross_validation() -> None:
    inputs, labels = rows(0, 40)
    regression = Solver(unpack(summed(inputs, labels)))
    centred = inputs.double() - inputs.double().mean(dim=0)
    ridge = 0.3 * float(centred.square().mean(dim=0).mean()) * len(centred)
    inverse = torch.linalg.inv(centred.T @ centred + ridge * torch.eye(WIDTH).double())
    hat = centred @ inverse @ centred.T + 1 / len(centred)
    members = one_hot(labels, CLASSES).double()
    spare = 1 - float(hat.trace()) / len(centred)
    expected = (members - hat @ members).square().sum(1).mean() / spare**2
    assert regression.validated_error(0.3) == pytest.approx(float(expected))
    assert regression.spare(0.3) == pytest.approx(spare)


@pytest.mark.parametrize(
    ("fit", "unscaled"),
    [
        (Ridge(RidgeSettings(strength=0.1)).fit, lambda sums: Solver(sums).head(0.1)),
        (SLDA(SLDASettings()).fit, SLDA(SLDASettings()).discriminant),
    ],
)
def test_the_temperature_is_close_to_the_best_on_the_rows_of_left_out_sources(
    fit: Callable[..., Head], unscaled: Callable[..., Head]
) -> None:
    sources = DomainSums({f"{number}": summed(*rows(number, 800)) for number in range(3)})
    scores, labels = [], []
    for number in range(3):
        rest = DomainSums(sources)
        del rest[str(number)]
        inputs, classes = rows(number, 800)
        scores.append(scores_of(unscaled(rest.total()), inputs))
        labels.append(classes)
    pooled, right = torch.cat(scores), torch.cat(labels)
    factors = torch.logspace(-1, 2, 400, dtype=torch.float64)
    losses = torch.stack([cross_entropy(factor * pooled, right) for factor in factors])
    whole = unscaled(sources.total())
    chosen = fit(sources).weight.norm() / whole.weight.norm()
    assert float(chosen / factors[losses.argmin()]) == pytest.approx(1, abs=0.1)
    assert float(cross_entropy(chosen * pooled, right)) < float(losses.min()) + 0.003


def test_scores_that_say_nothing_get_a_low_temperature_and_perfect_ones_a_high_one() -> None:
    labels = rows(0, 300)[1]
    mixed = labels[torch.randperm(300, generator=torch.Generator().manual_seed(0))]
    perfect = one_hot(labels, CLASSES).float()
    blind, sharp = (
        temperature([score(Head(torch.eye(CLASSES).double(), torch.zeros(CLASSES).double()), sums)])
        for sums in (unpack(summed(perfect, mixed)), unpack(summed(perfect, labels)))
    )
    assert blind < 0.5
    assert sharp > 20


def test_many_domains_are_left_out_in_groups() -> None:
    many = domains(23)
    pairs = list(folds(many))
    assert len(pairs) == MOST_FOLDS
    total = many.total()
    assert sum(float(held.rows) for _, held in pairs) == float(total.rows)
    for rest, held in pairs:
        torch.testing.assert_close((rest + held).products, total.products)


def test_among_many_domains_only_the_group_of_a_new_one_is_added_up_again() -> None:
    names = [f"site {number}" for number in range(FEW_DOMAINS + 30)]
    made = {name: summed(*rows(number, 12)) for number, name in enumerate(names)}
    many = DomainSums(made)
    groups = many.groups()
    assert sum(float(group["counts"].sum()) for group in groups) == 12 * len(names)
    many["new"] = summed(*rows(999, 12))
    changed = [old is not new for old, new in zip(groups, many.groups(), strict=True)]
    assert sum(changed) == 1
    assert float(many.total().rows) == 12 * (len(names) + 1)
    # Forgetting is exact, whatever the order in which the domains came, also down to a few.
    del many["new"]
    for name in names[::-1]:
        if len(many) in (len(names), FEW_DOMAINS + 1, FEW_DOMAINS, 3):
            fresh = DomainSums({name: made[name] for name in sorted(many, reverse=True)})
            for sums, others in ((many, fresh), (fresh, many)):
                assert torch.equal(sums.total().products, others.total().products)
                pairs = zip(sums.groups(), others.groups(), strict=True)
                assert all(torch.equal(one["products"], two["products"]) for one, two in pairs)
        del many[name]


def test_with_many_classes_fewer_draws_give_the_same_temperature_within_their_noise(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    classes, width = 48, 12
    generator = torch.Generator().manual_seed(0)
    centres = torch.randn(classes, width, generator=generator)

    def domain(number: int) -> tuple[Tensor, Tensor]:
        """Rows whose classes are of different sizes; some are absent."""
        own = torch.Generator().manual_seed(number)
        labels = (classes * torch.rand(1500, generator=own) ** 2).long()
        return centres[labels] + torch.randn(1500, width, generator=own), labels

    parts = [domain(number) for number in range(3)]
    sums = DomainSums()
    for number, (inputs, labels) in enumerate(parts):
        adder = Adder(width, classes, "products", torch.float64, torch.device("cpu"))
        adder.add(inputs, one_hot(labels, classes), None)
        sums[f"{number}"] = adder.packed()
    model = SLDA(SLDASettings())
    bounded = model.fit(sums)
    monkeypatch.setattr(head, "MANY_CLASSES", classes)
    monkeypatch.setattr(head, "DRAWS", 300 * classes)
    exact = model.fit(sums)
    assert float(bounded.weight.norm() / exact.weight.norm()) == pytest.approx(1, abs=0.05)
    inputs, labels = domain(9)
    losses = [float(cross_entropy(scores_of(each, inputs), labels)) for each in (bounded, exact)]
    assert losses[0] == pytest.approx(losses[1], abs=5e-3)
    assert not torch.equal(bounded.weight, exact.weight)


def test_slda_is_linear_discriminant_analysis_with_shrinkage() -> None:
    inputs, labels = rows(0, 300)
    model = SLDA(SLDASettings(shrinkage=0.2, prior="counts"))
    head = model.discriminant(unpack(summed(inputs, labels)))
    exact = inputs.double().numpy()
    reference = LinearDiscriminantAnalysis(solver="lsqr", shrinkage=0.2).fit(exact, labels.numpy())
    expected = torch.from_numpy(reference.decision_function(exact))
    torch.testing.assert_close(scores_of(head, inputs), expected)


def test_ncm_predicts_the_class_of_the_nearest_mean() -> None:
    learner = Learner("mlp", "ncm", classes=[0, 1, 2], preprocess="none")
    parts = [rows(number) for number in range(3)]
    for number, (inputs, labels) in enumerate(parts):
        learner.learn(inputs, labels, domain=f"{number}", validation=0)
    inputs, labels = (torch.cat(tensors) for tensors in zip(*parts, strict=True))
    means = torch.stack([inputs[labels == number].mean(dim=0) for number in range(CLASSES)])
    distances = torch.cdist(inputs.double(), means.double()).square()
    within = distances[torch.arange(len(labels)), labels].mean() / WIDTH
    expected = (-0.5 * distances / within).softmax(dim=1)
    torch.testing.assert_close(
        learner.logits(inputs).softmax(dim=1).double(), expected, rtol=1e-3, atol=1e-5
    )


def test_majority_predicts_the_most_frequent_class_of_all_domains() -> None:
    learner = Learner("mlp", "majority", classes=["x", "y", "z"], preprocess="none")
    inputs = torch.randn(6, 4)
    learner.learn(inputs, ["x", "x", "x", "y", "y", "x"], domain="a", validation=0)
    assert set(learner.predict(inputs)) == {"x"}
    learner.learn(inputs, ["y"] * 6, domain="b", validation=0)
    assert set(learner.predict(inputs)) == {"y"}
    shares = learner.predict_proba(inputs[:1])[0]
    assert shares[:2] == pytest.approx([4 / 12, 8 / 12], rel=1e-4)
    learner.forget("b")
    assert set(learner.predict(inputs)) == {"x"}
    with pytest.raises(FarshoreError, match="no term to weigh"):
        Learner("mlp", "majority", settings={"class_weight": "balanced"}, preprocess="none")


@pytest.mark.parametrize("method", ["ridge", "ncm", "slda", "majority"])
def test_a_class_that_was_never_seen_is_never_predicted(method: str) -> None:
    learner = Learner("mlp", method, classes=[0, 1, 2, 3], preprocess="none")
    inputs, labels = rows(0)
    learner.learn(inputs, labels, domain="a")
    far = 50 * torch.randn(300, WIDTH, generator=torch.Generator().manual_seed(1))
    assert 3 not in learner.predict(far)
    assert float(learner.predict_proba(inputs)[:, 3].max()) < 0.001


# ---- features ------------------------------------------------------------------------------------


def test_the_features_are_the_inputs_or_those_of_the_network() -> None:
    x, y = toy_rows(0)
    images, halves = toy_images(0)
    cases: list[tuple[Any, Any, str, dict[str, Any], int]] = [
        (x, y, "mlp", {}, 4),
        (x, y, "mlp", {"features": "network"}, 16),
        (x, y, "mlp", {"first_domain_tuning": True}, 16),
        (images, halves, "mlp", {}, 64),
        (images, halves, "mlp", {"features": "network"}, 16),
    ]
    for inputs, labels, network, settings, width in cases:
        learner = Learner(
            network, "ncm", settings=settings, network_settings={"width": 16}, preprocess="none"
        )
        learner.learn(inputs, labels, domain="a", steps=2)
        features = learner.system.features(inputs)
        assert features.shape[1] == width, settings
        assert (learner.system.state_dict()["network"] is None) == (width in (4, 64))
        if inputs is images and not settings:
            assert float(features.max()) <= 1


@pytest.mark.parametrize(
    ("shape", "side", "remain"),
    [((1, 32, 32), 1, 1024), ((3, 32, 32), 2, 768), ((3, 18, 21), 2, 297), ((3, 300, 5), 3, 600)],
)
def test_large_images_are_averaged_over_squares(
    shape: tuple[int, int, int], side: int, remain: int, tmp_path: Path
) -> None:
    assert squares(shape) == (side, remain)
    images = torch.rand(6, *shape, generator=torch.Generator().manual_seed(0))
    learner = Learner("mlp", "ncm", network_settings={"width": 4}, preprocess="none")
    learner.learn(images, [0, 1] * 3, domain="a", steps=1)
    features = learner.system.features(images)
    by_hand = [
        images[:, :, top : top + side, left : left + side].mean(dim=(2, 3))
        for top in range(0, shape[1], side)
        for left in range(0, shape[2], side)
    ]
    expected = torch.stack(by_hand, dim=2).flatten(1)
    assert torch.allclose(features, expected, atol=1e-6)
    learner.save(tmp_path)
    assert torch.equal(load(tmp_path).system.features(images), features)


def test_tuned_features_are_those_of_plain_training_and_stay(tmp_path: Path) -> None:
    inputs, labels = toy_rows(0)
    shared: dict[str, Any] = {"network_settings": {"width": 16}}
    tuned = Learner(
        "mlp", "ridge", settings={"first_domain_tuning": True}, **shared, preprocess="none"
    )
    plain = Learner("mlp", "finetune", **shared, preprocess="none")
    for learner in (tuned, plain):
        learner.learn(inputs, labels, domain="a", steps=20)
    features = tuned.system.features(inputs)
    torch.testing.assert_close(features, plain.system.features(inputs))
    tuned.learn(*toy_rows(1), domain="b", steps=20)
    assert torch.equal(tuned.system.features(inputs), features)
    tuned.save(tmp_path)
    loaded = load(tmp_path)
    assert differences(tuned.state_dict(), loaded.state_dict()) == []
    for learner in (tuned, loaded):
        learner.forget("a")
        learner.learn(*toy_rows(2), domain="c", steps=20)
        assert torch.equal(learner.system.features(inputs), features)
    assert differences(tuned.state_dict(), loaded.state_dict()) == []


def test_steps_have_no_influence_without_tuning() -> None:
    first, second = (
        Learner("mlp", "ridge", settings={"random_features": 20}, preprocess="none")
        for _ in range(2)
    )
    first.learn(*toy_rows(0), domain="a", steps=1)
    second.learn(*toy_rows(0), domain="a", steps=900)
    assert torch.equal(first.logits(toy_rows(1)[0]), second.logits(toy_rows(1)[0]))


def test_another_seed_is_another_projection() -> None:
    logits = []
    for seed in (0, 0, 1):
        learner = Learner(
            "mlp", "ridge", settings={"random_features": 20}, seed=seed, preprocess="none"
        )
        learner.learn_domain(Domain.divided("a", *toy_rows(0)), steps=1, classes=[0, 1])
        logits.append(learner.logits(toy_rows(1)[0]))
    assert torch.equal(logits[0], logits[1])
    assert not torch.equal(logits[0], logits[2])


def test_values_too_large_to_add_up_are_refused_and_nothing_is_learned() -> None:
    inputs, labels = toy_rows(0)
    learner = Learner("mlp", "ridge", settings={"random_features": 20}, preprocess="none")
    learner.learn(inputs, labels, domain="a")
    before = learner.logits(inputs)
    with pytest.raises(FarshoreError, match=r"domain 'b'.*scale its inputs"):
        learner.learn(inputs * 1e30, labels, domain="b")
    assert learner.system.domains == ["a"]
    assert torch.equal(learner.logits(inputs), before)


def test_the_width_follows_from_the_columns_and_the_budget_and_never_from_the_rows() -> None:
    def width(rows: int, columns: int, **settings: float) -> int:
        inputs = torch.randn(rows, columns, generator=torch.Generator().manual_seed(rows))
        learner = Learner("mlp", "ridge", settings=settings, preprocess="none")
        learner.learn(inputs, torch.arange(rows) % 3, domain="a", steps=1)
        sums = learner.state_dict()["system"]["sums"][0]["products"]
        assert sums.nbytes <= 1e6 * settings.get("sums_megabytes", 16)
        return len(sums[0]) - 1

    assert width(12, 4) == width(300, 4) == 400
    assert width(12, 60) == width(300, 60) == 8 * 60
    assert width(12, 260) == 1999
    assert width(12, 260, sums_megabytes=0.1) == 157  # 4 * 158² bytes
    assert width(12, 4, sums_megabytes=0.1, random_features=30) == 30


def test_a_folder_keeps_the_width_of_an_older_default() -> None:
    learner = Learner("mlp", "ridge", settings={"random_features": 20}, preprocess="none")
    learner.learn(*toy_rows(0), domain="a")
    state = deepcopy(learner.state_dict())
    state["config"] = {**state["config"], "settings": {}}
    again, grown = (from_state_dict(deepcopy(state), "model") for _ in range(2))
    for each in (learner, again):
        each.learn(*toy_rows(1), domain="b")
    inputs = toy_rows(2)[0]
    assert torch.equal(learner.logits(inputs), again.logits(inputs))
    grown.learn(*toy_rows(1), domain="b")
    grown.grow([7])
    assert grown.system.state_dict()["projection"].shape[1] == 20


def test_too_wide_a_projection_is_refused_ahead_of_any_work(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(farshore.base.allocation, "usable_bytes", lambda: 1 << 20)
    learner = Learner("mlp", "ridge", settings={"random_features": 9000}, preprocess="none")
    with pytest.raises(FarshoreError, match="set random_features to a lower number"):
        learner.learn(*toy_rows(0), domain="a")


# ---- files and results ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "edit",
    [
        lambda system: system["sums"].pop(),
        lambda system: system["sums"][0].pop("counts"),
        lambda system: system["sums"][0].update(products=torch.zeros(3, 3).double()),
        lambda system: system["sums"][0].update(by_class=torch.zeros(20, 2)),
        lambda system: system["sums"][0]["counts"].fill_(torch.nan),
        lambda system: system.update(projection=None),
        lambda system: system.update(projection=torch.zeros(5, 20).half()),
        lambda system: system.update(network={"weight": torch.zeros(2)}),
        lambda system: system.update(tuned="yes"),
        lambda system: system.update(more=1),
        lambda system: system["head"].update(weight=torch.zeros(20, 3)),
        lambda system: system["head"].update(bias=None),
        lambda system: system["domains"].append("b"),
        lambda system: system.pop("head"),
    ],
)
def test_a_state_that_does_not_fit_is_refused(edit: Callable[[Any], Any]) -> None:
    learner = Learner("mlp", "ridge", settings={"random_features": 20}, preprocess="none")
    learner.learn(*toy_rows(0), domain="a")
    state = learner.state_dict()
    state["system"] = {
        **state["system"],
        "sums": [dict(sums) for sums in state["system"]["sums"]],
        "head": dict(state["system"]["head"]),
    }
    edit(state["system"])
    with pytest.raises(FarshoreError, match="does not contain a complete learner"):
        from_state_dict(state, "model")


@pytest.mark.parametrize(
    ("method", "name"), [("ridge", "m.onnx"), ("slda", "m.pt2"), ("majority", "m.onnx")]
)
def test_an_exported_model_predicts_like_the_learner(
    method: str, name: str, tmp_path: Path
) -> None:
    pytest.importorskip("onnxruntime")
    learner = Learner("mlp", method, preprocess="none")
    learner.learn(*toy_rows(0), domain="a")
    learner.learn(*toy_rows(1), domain="b")
    facts = export_model(learner, tmp_path / name)  # it compares the outputs itself
    assert facts["domains"] == ["a", "b"]
    assert (tmp_path / name).stat().st_size > 0


def test_references_are_measured_but_not_ranked() -> None:
    results = [
        farshore.execute(farshore.Run(benchmark="heart-hospitals", method=method, steps=5))
        for method in ("majority", "joint", "ridge")
    ]
    frame = select(frame_of_results([(each.run.method, each, {}) for each in results]))
    assert [(each.method, each.kind, each.rank) for each in rank(frame).standings] == [
        ("ridge", "continual", 1),
        ("joint", "offline", None),
        ("majority", "reference", None),
    ]
    assert len(results[0].matrices["validation"]) == 3
    assert len(results[1].matrices["validation"]) == 1
    # All rows of va get one class: that of most rows in the other hospitals.
    confusion = np.array(results[0].target.confusion)
    assert sorted(confusion.sum(axis=0)) == [0, 200]


def test_joint_learns_all_domains_and_refuses_them_in_turn() -> None:
    parts = [Domain.divided(f"{number}", *toy_rows(number)) for number in range(3)]
    learner = Learner("mlp", "joint", classes=[0, 1], preprocess="none")
    assert learner.learn_jointly(parts, steps=40) == 120
    assert min(learner.score(part.split("validation")) for part in parts) > 0.9
    with pytest.raises(FarshoreError, match="learns all its domains at once"):
        Learner("mlp", "joint", preprocess="none").learn(*toy_rows(0))


def test_one_row_per_class_gives_a_finite_discriminant() -> None:
    learner = farshore.Learner(method="slda", preprocess="none")
    x = np.array([[1.0, 2.0], [3.0, 4.0]])
    learner.learn(x, ["p", "q"], domain="a", validation=0)
    head = learner.state_dict()["system"]["head"]
    assert bool(torch.isfinite(head["weight"]).all())
    assert list(learner.predict(x)) == ["p", "q"]
