"""EvoS: worked numbers, a second slower attention, what is kept, and a target that has no say."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
import torch
from attached import small_network
from torch import Tensor, nn
from torch.optim import SGD

from farshore.base.forms import FormError
from farshore.data.batch import Batch
from farshore.data.domain import Rows
from farshore.learner.loading import load
from farshore.methods.evolution import EPS, MOST_PAST, Evolution, Standardised
from farshore.methods.evos import EvoS, distance_from_standard, truncated_normal
from farshore.testing import differences, toy_learned

SMALL = {"heads": 2, "head_dim": 3, "critic_width": 5}


def made(past: int, **settings: object) -> EvoS:
    """The method on a small network after so many domains with random statistics."""
    method = EvoS(EvoS.Settings.build({**SMALL, **settings}))
    torch.manual_seed(0)
    network = method.prepare(small_network().float())
    method.attach(
        network, None, torch.Generator().manual_seed(0), lambda parameters: SGD(parameters, lr=0.1)
    )
    method.statistics = 0.3 * torch.randn(past, 2 * network.feature_dim)
    method.domains = [str(number) for number in range(past)]
    method.before_step(0, 0)
    return method


def batch(rows: int = 6) -> Batch:
    generator = torch.Generator().manual_seed(1)
    inputs = torch.randn(rows, 4, generator=generator)
    return Batch(inputs, torch.randint(3, (rows,), generator=generator), rows=rows)


# ---- worked numbers ------------------------------------------------------------------------------


def test_distance_from_standard() -> None:
    """z = [[0, -0.5], [2, 1.5]]: mean (1, 0.5), unbiased variance (2, 2)."""
    features = torch.tensor([[1.0, 0.0], [3.0, 4.0]])
    statistic = torch.tensor([1.0, 1.0, 0.0, math.log(2)])
    expected = math.sqrt(1.25) + math.sqrt(2)
    assert expected == pytest.approx(2.532248, abs=1e-6)
    assert distance_from_standard(features, statistic).item() == pytest.approx(expected, rel=1e-5)
    assert torch.isfinite(distance_from_standard(features[:1], statistic))


def test_the_adversary_grows_within_a_domain_and_is_even_at_first() -> None:
    method = made(2, warm_steps=100)
    for step, expected in ((0, 0.0), (50, 0.244919), (100, 0.462117), (200, 0.761594)):
        method.before_step(7, step)
        assert method.reversal.item() == pytest.approx(expected, abs=1e-6)
    nn.init.zeros_(method.evolution.critic[-1].weight)
    nn.init.zeros_(method.evolution.critic[-1].bias)
    assert method.terms(batch())["adversary"].item() == pytest.approx(math.log(2))


def test_the_features_get_the_reversed_gradient_and_the_critic_its_own() -> None:
    method = made(2, warm_steps=100)
    features = torch.randn(6, method.network.feature_dim, requires_grad=True)
    state = method.generator.get_state()
    gradients = {}
    for reversal in (0.0, -1.0, 0.4):  # -1: as if nothing were reversed
        method.generator.set_state(state)
        method.reversal.fill_(reversal)
        weight = method.evolution.critic[0].weight
        loss = method._adversary(features)
        gradients[reversal] = torch.autograd.grad(loss, [features, weight])
    assert gradients[0.0][0].abs().max() == 0
    plain, own = gradients[-1.0]
    assert torch.allclose(gradients[0.4][0], -0.4 * plain)
    assert plain.abs().max() > 0
    assert torch.allclose(gradients[0.4][1], own)


def test_truncated_normal_numbers() -> None:
    middle = truncated_normal(torch.tensor([0.0, 0.5]), 2.0)
    assert middle.tolist() == pytest.approx([-2.0, 0.0], abs=1e-4)
    drawn = truncated_normal(torch.rand(200_000, generator=torch.Generator().manual_seed(0)), 2.0)
    assert drawn.abs().max() <= 2.0001
    assert drawn.mean().item() == pytest.approx(0, abs=0.01)
    # 1 - 2 · 2 φ(2) / (Φ(2) - Φ(-2)) = 0.7737
    assert drawn.var().item() == pytest.approx(0.7737, abs=0.01)


def test_drawn_rows_have_the_deviations_of_the_domain() -> None:
    width = small_network().feature_dim
    for noise, same in (("row", True), ("feature", False)):
        method = made(1, noise=noise)
        rows = method._drawn(50)
        assert rows.shape == (50, width)
        mean, log_std = method.statistics[0].chunk(2)
        w = (rows - mean) / log_std.exp()
        assert torch.allclose(w, w[:, :1].expand_as(w), atol=1e-5) == same


# ---- the generator, by loops ---------------------------------------------------------------------


def slow_attention(module: nn.Module, rows: np.ndarray) -> np.ndarray:
    """Mean over rows of multi-head self-attention, head by head."""
    matrix = module.inputs.weight.detach().double().numpy()
    heads, size = module.heads, module.head_dim
    projected = rows @ matrix.T
    inner = heads * size
    attended = np.zeros((len(rows), inner))
    for head in range(heads):
        part = slice(head * size, (head + 1) * size)
        q, k, v = (projected[:, each * inner :][:, part] for each in range(3))
        for row in range(len(rows)):
            scores = np.array([q[row] @ other for other in k]) / math.sqrt(size)
            shares = np.exp(scores) / np.exp(scores).sum()
            attended[row, part] = sum(share * value for share, value in zip(shares, v, strict=True))
    weight = module.outputs.weight.detach().double().numpy()
    return (attended @ weight.T + module.outputs.bias.detach().double().numpy()).mean(axis=0)


@pytest.mark.parametrize(("past", "used"), [(2, 1), (3, 2), (4, 3), (6, 3)])
def test_the_next_statistic_is_that_of_the_slow_form(past: int, used: int) -> None:
    torch.manual_seed(1)
    evolution, width = Evolution(2, 3, 2, 3, 4).double(), 4
    known = torch.randn(past, width, dtype=torch.float64)
    rows = known.numpy()
    parts, distance = [], 0.0
    for length in range(1, used + 1):
        windows = np.stack([rows[i : i + length].ravel() for i in range(past - length + 1)])
        out = slow_attention(evolution.attention[length - 1], windows).reshape(length, width)
        parts.append(out[-1])
        if length > 1:
            gaps = rows[past - length + 1 :] - out[:-1]
            distance += np.mean([math.sqrt((gap**2).sum()) for gap in gaps])
    statistic, consistency = evolution(known)
    assert statistic.detach().numpy() == pytest.approx(np.mean(parts, axis=0))
    assert (consistency is None) == (used == 1)
    if consistency is not None:
        assert consistency.item() == pytest.approx(distance)


def test_of_many_past_domains_the_newest_are_attended_to_and_some_are_drawn() -> None:
    method = made(MOST_PAST + 6)
    own, newest = (method.evolution(each)[0] for each in (method.statistics, method.statistics[6:]))
    assert torch.equal(own, newest)
    assert not torch.equal(own, method.evolution(method.statistics[:-6])[0])
    # Without deviations, a drawn row is the domain's mean, by which it is known.
    width = method.network.feature_dim
    method.statistics[:, width:] = -torch.inf
    means = method.statistics[:, :width]
    for _ in range(2):
        rows = method._drawn(3).view(MOST_PAST, 3, width)
        assert torch.equal(rows, rows[:, :1].expand_as(rows))
        places = [int((means == row).all(dim=1).nonzero()) for row in rows[:, 0]]
        assert len(set(places)) == MOST_PAST
        assert sorted(places) != list(range(6, MOST_PAST + 6))
    method.statistics = method.statistics[:MOST_PAST]
    every = method._drawn(3).view(MOST_PAST, 3, width)[:, 0]
    assert torch.equal(every, means[:MOST_PAST])


def test_the_first_two_statistics_are_trained() -> None:
    evolution = Evolution(2, 1, 1, 1, 4)
    for known in range(2):
        statistic, consistency = evolution(torch.zeros(known, 4))
        assert statistic.tolist() == [0.0] * 4
        assert statistic.requires_grad
        assert consistency is None


# ---- a step --------------------------------------------------------------------------------------


def test_the_terms_and_what_they_train() -> None:
    method = made(3)
    terms = method.terms(batch())
    assert list(terms) == ["erm", "standardisation", "consistency", "adversary"]
    first = method.network.features[0].weight
    generator = method.evolution.attention[0].outputs.weight
    for name, trains_features, trains_generator in (
        ("erm", True, False),  # the statistic is constant in CE
        ("standardisation", False, True),  # and the features are constant here
        ("consistency", False, False),  # of the longer windows only
    ):
        found = torch.autograd.grad(
            terms[name], [first, generator], retain_graph=True, allow_unused=True
        )
        assert [part is not None for part in found] == [trains_features, trains_generator], name
    features = method.network.extract(batch().inputs)
    mean, log_std = method.evolution(method.statistics)[0].chunk(2)
    logits = method.head.classifier((features - mean) / (log_std.exp() + EPS))
    expected = nn.functional.cross_entropy(logits, batch().labels)
    assert terms["erm"].item() == pytest.approx(expected.item(), rel=1e-5)
    assert list(made(0).terms(batch())) == ["erm", "standardisation"]
    assert "adversary" not in made(3, adversarial_weight=0).terms(batch())


def rows_of(inputs: Tensor) -> Rows:
    return Rows(inputs, torch.zeros(len(inputs), dtype=torch.long), torch.arange(len(inputs)))


def test_prediction_uses_the_statistic_of_the_next_domain() -> None:
    method = made(2)
    method.domains.append("2")
    method.after_domain("2", rows_of(batch().inputs))
    assert len(method.statistics) == 3
    ahead, _ = method.evolution(method.statistics)
    assert torch.equal(torch.cat([method.head.mean, method.head.log_std]), ahead)
    further = made(2, horizon=2)
    further.after_domain("2", rows_of(batch().inputs))
    second, _ = further.evolution(torch.cat([further.statistics, ahead.detach()[None]]))
    assert torch.equal(torch.cat([further.head.mean, further.head.log_std]), second)
    single = made(0)
    nn.init.constant_(single.evolution.first[0].data, 0.5)
    single.after_domain("0", rows_of(batch().inputs))
    assert single.head.mean.tolist() == [0.5] * len(single.head.mean)


# ---- what is kept --------------------------------------------------------------------------------


def test_it_keeps_no_rows_and_is_saved_whole(tmp_path: Path) -> None:
    learner = toy_learned("evos", domains=3, settings=SMALL)
    method = learner.system.method
    assert learner.system.memory is None
    assert method.statistics.shape == (3, 2 * method.network.feature_dim)
    assert isinstance(method.network.classifier, Standardised)
    learner.save(tmp_path / "model")
    again = load(tmp_path / "model")
    assert differences(learner.state_dict(), again.state_dict()) == []
    kept = method.statistics[[0, 2]]
    learner.forget("d1")
    assert torch.equal(method.statistics, kept)
    state = again.system.method.state_dict()
    with pytest.raises(FormError, match="a row per domain"):
        again.system.method.load_state_dict({**state, "statistics": kept})
