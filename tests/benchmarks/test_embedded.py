"""The embedded benchmarks: counts, disjoint images, order, target, and data that never
depend on anything else.
"""

from __future__ import annotations

import pytest
import torch

from farshore.benchmarks import BENCHMARKS
from farshore.benchmarks.coloured_digits import COLOURS, ColouredDigits, coloured, following
from farshore.benchmarks.heart_hospitals import HeartHospitals
from farshore.benchmarks.rotated_digits import RotatedDigits, RotatedDigitsStream, read_digits
from farshore.data.domain import Domain
from farshore.data.images.images import rotate
from farshore.data.seal import FrozenModel

BENCHMARKS_HERE = ["rotated-digits", "rotated-digits-stream", "coloured-digits", "heart-hospitals"]


def target_of(scenario) -> Domain:
    return scenario.target.open(FrozenModel(torch.nn.Linear(1, 1)))


def test_rotated_digits_counts_and_defaults() -> None:
    scenario = RotatedDigits().scenario()
    assert [domain.name for domain in scenario.sources] == ["0", "15", "30", "45"]
    assert [len(domain) for domain in scenario.sources] == [360, 360, 359, 359]
    assert len(target_of(scenario)) == 359
    assert (
        scenario.steps,
        scenario.memory,
        scenario.settings["batch_size"],
        scenario.network_settings["width"],
    ) == (100, 200, 32, 16)
    assert all(domain.inputs.dtype == torch.uint8 for domain in scenario.sources)
    assert [len(domain.validation) for domain in scenario.sources] == [72, 72, 72, 72]


@pytest.mark.parametrize("benchmark", [RotatedDigits, RotatedDigitsStream])
def test_each_image_is_in_exactly_one_domain(benchmark: type[RotatedDigits]) -> None:
    """Every image is a rotated original; the parts are disjoint and cover all originals."""
    images, labels = read_digits()
    scenario = benchmark().scenario()
    originals_used: list[int] = []
    for domain in (*scenario.sources, target_of(scenario)):
        turned = rotate(images, float(domain.name)).flatten(1).float()
        distance = torch.cdist(domain.inputs.flatten(1).float(), turned)
        rows = distance.argmin(dim=1)
        assert float(distance.gather(1, rows[:, None]).max()) < 1e-3
        assert torch.equal(labels[rows], domain.labels)
        originals_used += rows.tolist()
    assert sorted(originals_used) == list(range(1797))


def test_the_stream_has_twelve_domains_with_all_classes() -> None:
    scenario = RotatedDigitsStream().scenario()
    domains = [*scenario.sources, target_of(scenario)]
    assert [domain.name for domain in domains] == [str(angle) for angle in range(0, 120, 10)]
    assert {len(domain) for domain in domains} == {149, 150}
    assert all(len(domain.labels.unique()) == 10 for domain in domains)


@pytest.mark.parametrize("name", BENCHMARKS_HERE)
def test_the_seed_decides_the_data_and_the_order_only_the_order(name: str) -> None:
    make = BENCHMARKS.get(name)
    first, same, other = (make().scenario(seed=seed) for seed in (0, 0, 1))
    assert all(
        torch.equal(a.inputs, b.inputs) and torch.equal(a.train, b.train)
        for a, b in zip(first.sources, same.sources, strict=True)
    )
    assert any(
        not torch.equal(a.train, b.train) for a, b in zip(first.sources, other.sources, strict=True)
    )
    turned = make().scenario(order=[domain.name for domain in first.sources][::-1])
    by_name = {domain.name: domain for domain in turned.sources}
    for domain in first.sources:
        assert torch.equal(domain.train, by_name[domain.name].train)
        assert torch.equal(domain.labels, by_name[domain.name].labels)


def colours_of(domain: Domain) -> torch.Tensor:
    """The digit whose colour each image has, by the nearest direction."""
    sums = domain.inputs.float().sum(dim=(2, 3))
    return (
        torch.nn.functional.normalize(sums).mm(torch.nn.functional.normalize(COLOURS).T).argmax(1)
    )


def test_colours_tell_the_digit_in_the_sources_and_the_next_one_at_the_target() -> None:
    scenario = ColouredDigits().scenario()
    assert [domain.name for domain in scenario.sources] == ["99", "97", "94", "90"]
    for domain in scenario.sources:
        own = (colours_of(domain) == domain.labels).float().mean()
        assert abs(float(own) - int(domain.name) / 100) < 0.04
        assert domain.inputs.shape[1:] == (3, 8, 8)
    target = target_of(scenario)
    assert torch.equal(colours_of(target), (target.labels + 1) % 10)


def test_any_domain_of_coloured_digits_can_be_a_source_and_no_image_is_in_two() -> None:
    images, labels = read_digits()
    scenario = ColouredDigits().scenario(target="90")
    assert "misleading" in [domain.name for domain in scenario.sources]
    used: list[int] = []
    for domain in (*scenario.sources, target_of(scenario)):
        shown = coloured(images, torch.zeros(len(images), dtype=torch.long))[:, 0].flatten(1)
        grey = domain.inputs.float().sum(dim=1).flatten(1)
        distance = torch.cdist(grey, shown.float())
        rows = distance.argmin(dim=1)
        assert torch.equal(labels[rows], domain.labels)
        used += rows.tolist()
    assert sorted(used) == list(range(1797))


def test_the_share_of_decisions_that_follow_the_colour() -> None:
    labels = torch.arange(10).repeat(3)
    shape, colour = torch.zeros(10, 10, dtype=int), torch.zeros(10, 10, dtype=int)
    for digit in labels.tolist():
        shape[digit, digit] += 1
        colour[digit, (digit + 1) % 10] += 1
    assert following(shape.tolist()) == 0
    assert following(colour.tolist()) == 1
    assert following((shape + 3 * colour).tolist()) == 0.75


def test_heart_hospitals_counts() -> None:
    scenario = HeartHospitals().scenario()
    assert [(domain.name, len(domain)) for domain in scenario.sources] == [
        ("cleveland", 303),
        ("hungarian", 294),
        ("switzerland", 123),
    ]
    assert [int(domain.labels.sum()) for domain in scenario.sources] == [139, 106, 115]
    assert len(target_of(scenario)) == 200
    assert int(target_of(scenario).labels.sum()) == 149
    assert scenario.sources[0].inputs.shape[1] == 39


@pytest.mark.parametrize("target", HeartHospitals.domains)
def test_any_hospital_can_be_the_target_and_no_value_is_missing(target: str) -> None:
    scenario = HeartHospitals().scenario(target=target)
    assert target not in [domain.name for domain in scenario.sources]
    for domain in (*scenario.sources, target_of(scenario)):
        assert torch.isfinite(domain.inputs).all()
        assert float(domain.inputs.abs().max()) <= 10


def test_preprocessing_is_learned_on_the_first_hospitals_training_rows() -> None:
    for first in ("cleveland", "hungarian"):
        order = [first, *(name for name in HeartHospitals.domains if name not in (first, "va"))]
        domain = HeartHospitals().scenario(order=order).sources[0]
        age = domain.inputs[domain.train, 0]
        assert float(age.median().abs()) < 0.2
        assert float(age.std(correction=0)) == pytest.approx(1, abs=1e-4)
