"""CoTTA: student, teacher, restoring, and averaged augmentations."""

from __future__ import annotations

import math
from copy import deepcopy

import pytest
import torch
from adapted import adapt, changed, source_model, target_inputs
from torch.optim import Adam

from farshore.adaptation.adaptation import entropy
from farshore.adaptation.augmentation import as_unit, augment
from farshore.adaptation.cotta import CoTTA, consistency
from farshore.data.inputs import Inputs
from farshore.errors import FarshoreError


def sure(name: str, **options):
    """CoTTA that never averages augmented copies."""
    return adapt(
        "cotta",
        source_model(name),
        target_inputs(name),
        confidence_threshold=0.0,
        adaptation_batch=10,
        **options,
    )


@pytest.mark.parametrize("kind", ["group", "batch", "layer", "none"])
def test_all_parameters_move_and_no_stored_statistic(kind: str) -> None:
    _, student, adaptation = sure(kind)
    parameters = {name for name, _ in student.named_parameters()}
    assert changed(source_model(kind), student) == parameters
    assert changed(source_model(kind), adaptation.teacher) == parameters
    assert changed(source_model(kind), adaptation.anchor) == set()


def test_with_restore_probability_one_the_student_is_the_source_model() -> None:
    _, student, adaptation = sure("group", restore_probability=1.0, adaptation_rate=0.1)
    assert changed(source_model("group"), student) == set()
    assert (
        changed(source_model("group"), adaptation.teacher) != set()
    )  # restoring comes after the teacher has followed


def test_with_decay_one_the_teacher_never_moves_and_predicts_like_the_source_model() -> None:
    logits, _, adaptation = sure("group", teacher_decay=1.0)
    assert changed(source_model("group"), adaptation.teacher) == set()
    inputs = target_inputs("group")
    assert torch.equal(
        logits, torch.cat([source_model("group")(part) for part in inputs.split(10)])
    )


def test_without_learning_rate_and_restoring_all_three_are_the_source_model() -> None:
    _, student, adaptation = sure("group", adaptation_rate=0, restore_probability=0)
    for network in (student, adaptation.anchor):
        assert changed(source_model("group"), network) == set()
    for teacher, source in zip(
        adaptation.teacher.parameters(), source_model("group").parameters(), strict=True
    ):
        torch.testing.assert_close(teacher, source, rtol=1e-6, atol=1e-7)  # α θ + (1 - α) θ rounds


@pytest.mark.parametrize(
    ("probability", "steps", "expected"), [(0.01, 100, 0.634), (0.2, 1, 0.2), (0.0, 5, 0.0)]
)
def test_restoring_takes_each_scalar_alone(probability: float, steps: int, expected: float) -> None:
    adaptation = CoTTA(CoTTA.Settings.build({"restore_probability": probability}))
    adaptation.anchor = source_model("group")
    adaptation.student = deepcopy(adaptation.anchor)
    for parameter in adaptation.student.parameters():
        parameter += 1
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        adaptation.restore(generator)
    pairs = zip(adaptation.student.parameters(), adaptation.anchor.parameters(), strict=True)
    restored = torch.cat([(moved == source).flatten() for moved, source in pairs])
    assert float(restored.double().mean()) == pytest.approx(expected, abs=0.015)


def test_the_teacher_halves_its_distance_in_693_steps() -> None:
    adaptation = CoTTA(CoTTA.Settings.build({}))
    adaptation.student, adaptation.teacher = (
        source_model("none").double(),
        source_model("none").double(),
    )
    for parameter in adaptation.student.parameters():
        parameter += 1
    for _ in range(693):
        adaptation.follow()
    for slow, fast in zip(
        adaptation.teacher.parameters(), adaptation.student.parameters(), strict=True
    ):
        assert float((fast - slow).mean()) == pytest.approx(0.5, abs=1e-3)


def test_the_loss_of_a_student_that_is_its_teacher_is_the_entropy() -> None:
    logits = torch.tensor([[2.0, 0.0, 0.0], [0.0, 0.0, 0.0]], dtype=torch.float64)
    assert float(consistency(logits, logits)) == pytest.approx(float(entropy(logits).mean()))
    assert float(consistency(logits, logits)) == pytest.approx(
        (0.66557 + math.log(3)) / 2, abs=1e-5
    )
    other = torch.tensor([[0.0, 5.0, 0.0], [3.0, 0.0, 0.0]], dtype=torch.float64)
    by_hand = -(other.softmax(1) * logits.softmax(1).log()).sum(1).mean()
    assert float(consistency(logits, other)) == pytest.approx(float(by_hand))


@pytest.mark.parametrize("threshold", [0.0, 1.0])
def test_a_second_implementation(threshold: float) -> None:
    """Prediction by the teacher from before the updates; student steps; teacher follows; student
    is restored. In this order.
    """
    inputs, source = target_inputs("group"), source_model("group")
    settings = {
        "adaptation_batch": 10,
        "adaptation_rate": 0.01,
        "teacher_decay": 0.9,
        "restore_probability": 0.3,
        "augmentations": 3,
    }
    logits, student, adaptation = adapt(
        "cotta", source, inputs, confidence_threshold=threshold, **settings
    )

    pupil, teacher = deepcopy(source).requires_grad_(True), deepcopy(source)
    optimizer, generator, parts = (
        Adam(pupil.parameters(), lr=0.01),
        torch.Generator().manual_seed(0),
        [],
    )
    for batch in inputs.split(10):
        unsure = bool(source(batch).softmax(1).max(1).values.mean() < threshold)
        copies = (
            [augment(as_unit(batch), generator, flips=False) for _ in range(3)]
            if unsure
            else [batch]
        )
        lesson = torch.stack([teacher(copy) for copy in copies]).mean(0)
        parts.append(lesson)
        optimizer.zero_grad()
        torch.nn.functional.cross_entropy(pupil(batch), lesson.softmax(1)).backward()
        optimizer.step()
        with torch.no_grad():
            for slow, fast in zip(teacher.parameters(), pupil.parameters(), strict=True):
                slow.copy_(0.9 * slow + 0.1 * fast)
            for moved, origin in zip(pupil.parameters(), source.parameters(), strict=True):
                back = torch.rand(moved.shape, generator=generator) < 0.3
                moved[back] = origin[back]
    torch.testing.assert_close(logits, torch.cat(parts), rtol=1e-3, atol=1e-4)
    torch.testing.assert_close(
        dict(student.state_dict()), dict(pupil.state_dict()), rtol=1e-3, atol=1e-4
    )
    assert adaptation.unsure == (0 if threshold == 0 else 3)
    assert not torch.allclose(
        logits, torch.cat([source(part) for part in inputs.split(10)]), atol=1e-3
    )


def test_the_threshold_is_a_quantile_of_the_confidence_on_source_rows() -> None:
    network, sources = (
        source_model("group"),
        [target_inputs("group", 40, seed=1), target_inputs("group", 20, seed=2)],
    )
    adaptation = CoTTA(CoTTA.Settings.build({}))
    adaptation.prepare(network, [Inputs(rows) for rows in sources])
    confidence = network(torch.cat(sources)).softmax(1).max(1).values.sort().values
    assert float(confidence[2]) <= adaptation.threshold <= float(confidence[3])  # 5% of 60 rows
    fixed = CoTTA(CoTTA.Settings.build({"confidence_threshold": "0.92"}))
    fixed.prepare(network, [Inputs(rows) for rows in sources])
    assert fixed.threshold == 0.92
    with pytest.raises(FarshoreError, match="confidence_threshold"):
        CoTTA.Settings.build({"confidence_threshold": 1.5})


def test_only_images_in_the_unit_range_are_augmented() -> None:
    _, _, tables = adapt(
        "cotta", source_model("none"), target_inputs("none"), confidence_threshold=1.0
    )
    assert tables.unsure == 0
    for images, expected in (
        (target_inputs("group").float() / 255, 1),
        (target_inputs("group").float() - 128, 0),
    ):
        _, _, adaptation = adapt(
            "cotta", source_model("group"), images, confidence_threshold=1.0, augmentations=2
        )
        assert adaptation.unsure == expected


@pytest.mark.parametrize("rows", [1, 21])
def test_one_row_and_odd_batches(rows: int) -> None:
    inputs = target_inputs("batch", rows)
    logits, _, _ = adapt(
        "cotta",
        source_model("batch"),
        inputs,
        adaptation_batch=10,
        confidence_threshold=1.0,
        augmentations=2,
    )
    assert logits.shape == (rows, 3)
    assert bool(torch.isfinite(logits).all())
