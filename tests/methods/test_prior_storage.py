"""How priors are kept: one behind the other, in half the bytes, or as diagonals."""

from __future__ import annotations

import pytest
import torch
from attached import priors_by_domain
from hypothesis import given
from hypothesis import strategies as st

from farshore import Learner
from farshore.invariance import invariance
from farshore.invariance.feature_moments import FeatureMoments
from farshore.invariance.invariance import Priors
from farshore.learner.loading import load
from farshore.testing import differences


def prior(seed: int, size: int = 6, scale: float = 1.0) -> dict[str, torch.Tensor]:
    generator = torch.Generator().manual_seed(seed)
    return {
        "mean": scale * torch.randn(size, generator=generator),
        "covariance": scale * torch.randn(size, size, generator=generator),
    }


@given(
    st.lists(st.integers(0, 40), min_size=1, max_size=30),
    st.sets(st.integers(0, 40)),
    st.sampled_from(["float32", "float16"]),
)
def test_priors_are_those_that_were_set_in_the_order_of_learning(
    names: list[int], gone: set[int], storage: str
) -> None:
    kept, plain = Priors(storage), {}
    for place, name in enumerate(names):
        kept.set(str(name), prior(place))
        plain[str(name)] = prior(place)
    for name in gone:
        kept.forget(str(name))
        plain.pop(str(name), None)
    assert list(priors_by_domain(kept)) == list(plain)
    assert len(kept) == len(plain)
    for name, values in plain.items():
        for key, value in values.items():
            largest = float(value.abs().max())
            torch.testing.assert_close(
                priors_by_domain(kept)[name][key],
                value,
                rtol=0,
                atol=0 if storage == "float32" else largest * 2**-11,
            )
    if plain:
        numbers = torch.tensor([len(plain) - 1, 0])
        for key, value in kept.stacked(numbers).items():
            assert torch.equal(
                value,
                torch.stack(
                    [list(priors_by_domain(kept).values())[number][key] for number in numbers]
                ),
            )
            notion = FeatureMoments()
            mean, spread = kept.centre(notion.distance)
            torch.testing.assert_close(mean[key][0], kept.stacked()[key].mean(dim=0))
            torch.testing.assert_close(spread, notion.distance(mean, kept.stacked()).mean())


def test_half_precision_keeps_variances_that_lie_below_its_smallest_number() -> None:
    kept = Priors("float16")
    tiny = {"variance": torch.tensor([3e-9, 1e-8, 2e-6, 0.0])}
    kept.set("a", tiny)
    torch.testing.assert_close(
        priors_by_domain(kept)["a"]["variance"], tiny["variance"], rtol=0, atol=2e-6 * 2**-11
    )
    kept.set("b", {"variance": torch.zeros(4)})
    assert torch.equal(priors_by_domain(kept)["b"]["variance"], torch.zeros(4))


def test_a_diagonal_prior_compares_means_and_variances_alone() -> None:
    generator = torch.Generator().manual_seed(0)
    features = torch.randn(2, 9, 3, generator=generator, dtype=torch.float64)
    notion = FeatureMoments("sum", diagonal=True)
    statistic = notion.statistic(features, features, features[:, :, 0])
    stored = {
        "mean": torch.zeros(2, 3, dtype=torch.float64),
        "variance": torch.ones(2, 3, dtype=torch.float64),
    }
    by_hand = features.mean(dim=1).square().sum(dim=1) + (features.var(dim=1) - 1).square().sum(
        dim=1
    )
    torch.testing.assert_close(notion.deviation(statistic, stored), by_hand)
    assert notion.kept(statistic)["variance"].shape == (2, 3)


def learned(method: str, blobs, storage: str) -> Learner:
    made = Learner(
        method=method,
        memory=20,
        settings={"batch_size": 8, "prior_storage": storage},
        network_settings={"width": 32},
        preprocess="none",
    )
    for domain in range(3):
        made.learn(*blobs(domain), domain=str(domain), steps=6)
    return made


@pytest.mark.parametrize("method", ["cl-coral", "naive-cl-coral"])
def test_storage_bounds_the_bytes_and_hardly_changes_the_run(method: str, blobs, tmp_path) -> None:
    plain, half, diagonal = (
        learned(method, blobs, storage) for storage in ("float32", "float16", "diagonal")
    )
    assert plain.system.method.bytes == 3 * 4 * (32 + 32 * 32)
    assert half.system.method.bytes == 3 * (2 * (32 + 32 * 32) + 2 * 4)
    assert diagonal.system.method.bytes == 3 * 4 * (32 + 32)
    exact, rough = (
        torch.cat([p.detach().flatten() for p in made.system.method.network.parameters()])
        for made in (plain, half)
    )
    assert 0 < float((exact - rough).norm()) < 1e-3 * float(exact.norm())
    diagonal.save(tmp_path)
    again = load(tmp_path)
    for made in (diagonal, again):
        made.learn(*blobs(3), domain="3", steps=4)
    assert all(
        torch.equal(a, b)
        for a, b in zip(
            diagonal.system.method.network.parameters(),
            again.system.method.network.parameters(),
            strict=True,
        )
    )


def test_half_precision_suits_every_notion(blobs) -> None:
    for method in (
        "cl-vrex",
        "cl-fishr",
        "cl-mmd",
        "naive-cl-vrex",
        "naive-cl-fishr",
        "naive-cl-mmd",
    ):
        assert torch.isfinite(learned(method, blobs, "float16").logits(blobs(0)[0])).all()


def test_the_naive_frames_short_cut_is_the_mean_over_all_priors(blobs) -> None:
    for method in ("naive-cl-vrex", "naive-cl-fishr", "naive-cl-coral", "naive-cl-mmd"):
        made = learned(method, blobs, "float32").system.method
        inputs, labels = blobs(5)
        features = made.network.extract(inputs)
        statistic = made.invariance.statistic(
            features[None], made.network.classifier(features)[None], labels[None]
        )
        slow = made.invariance.deviation(statistic, made.priors.stacked()).mean()
        torch.testing.assert_close(made._deviation(statistic), slow, rtol=1e-4, atol=1e-7)
        parameters = list(made.network.parameters())
        pairs = [
            torch.autograd.grad(loss, parameters, retain_graph=True, allow_unused=True)
            for loss in (made._deviation(statistic), slow)
        ]
        for quick, exact in zip(*pairs, strict=True):
            if exact is not None:
                torch.testing.assert_close(quick, exact, rtol=1e-3, atol=1e-6)


def test_priors_that_become_large_are_kept_in_half_precision_and_the_run_says_so(
    blobs, tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one = 4 * (32 + 32 * 32)
    monkeypatch.setattr(invariance, "MOST_BYTES", 2 * one)
    made = learned("cl-coral", blobs, "float32")
    assert made.system.notes == [
        "the priors of 3 domains take more than 64 MB: they are kept in float16 from here on"
    ]
    assert made.system.method.bytes == 3 * (one // 2 + 2 * 4)
    made.save(tmp_path)
    again = load(tmp_path)
    for learner in (made, again):
        learner.learn(*blobs(3), domain="3", steps=6)
        learner.forget("1")
    assert differences(made.state_dict(), again.state_dict()) == []
    assert again.system.method.bytes == 3 * (one // 2 + 2 * 4)
    assert again.system.notes == []  # said once


@pytest.mark.parametrize("bound", [10**9, 20 * 168])
def test_the_centre_of_many_priors_is_added_to_and_the_same_after_loading(
    bound: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(invariance, "MOST_BYTES", bound)
    kept, notion = Priors(), FeatureMoments()
    for number in range(40):
        kept.set(str(number), prior(number))
        mean, spread = kept.centre(notion.distance)
        exact = {key: value.double() for key, value in kept.stacked().items()}
        expected = {key: value.mean(dim=0, keepdim=True) for key, value in exact.items()}
        for key, value in expected.items():
            torch.testing.assert_close(mean[key].double(), value, rtol=1e-6, atol=1e-6)
        distance = notion.distance(expected, exact).mean()
        torch.testing.assert_close(spread.double(), distance, rtol=1e-6, atol=1e-6)
    assert kept.storage == ("float32" if bound == 10**9 else "float16")
    loaded = Priors()
    loaded.load_state_dict(kept.state_dict(), torch.device("cpu"))
    assert (
        differences(list(kept.centre(notion.distance)), list(loaded.centre(notion.distance))) == []
    )
    kept.forget("7")
    mean, _ = kept.centre(notion.distance)
    torch.testing.assert_close(mean["mean"][0], kept.stacked()["mean"].mean(dim=0))
