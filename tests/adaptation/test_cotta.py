"""CoTTA: student, teacher, restoring, and averaged augmentations."""

from __future__ import annotations

import math
import re
from copy import deepcopy

import pytest
import torch
from adapted import adapt, changed, source_model, target_inputs

from farshore.adaptation.adaptation import entropy
from farshore.adaptation.augmentation import as_unit, augment
from farshore.adaptation.cotta import CoTTA, consistency
from farshore.benchmarks import BENCHMARKS
from farshore.benchmarks.benchmark import Benchmark
from farshore.data.inputs import Inputs
from farshore.errors import FarshoreError
from farshore.runs.protocol import execute
from farshore.runs.run import Run


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


class Slow:
    """A second implementation of CoTTA in plain loops: one scalar or one row at a time.

    The models are the only part that it shares with the first one.
    """

    def __init__(self, source, threshold: float, averaged: str, rate: float) -> None:
        self.source = deepcopy(source)
        self.student, self.teacher = deepcopy(source).requires_grad_(True), deepcopy(source)
        for network in (self.source, self.student, self.teacher):
            for layer in network.batchnorms():  # statistics of the batch, none stored
                layer.training, layer.track_running_stats = True, False
        self.threshold, self.averaged, self.rate = threshold, averaged, rate
        self.moments = [([0.0] * p.numel(), [0.0] * p.numel()) for p in self.student.parameters()]
        self.steps = self.averaged_rows = 0

    def lesson(self, batch: torch.Tensor, copies: list[torch.Tensor]) -> list[list[float]]:
        confidence = [max(row.softmax(0).tolist()) for row in self.source(batch)]
        if self.averaged == "batch":
            confidence = [sum(confidence) / len(confidence)] * len(confidence)
        lesson = [row.tolist() for row in self.teacher(batch)]
        outputs = [self.teacher(copy).tolist() for copy in copies]
        for index, sure in enumerate(confidence):
            if sure < self.threshold:
                self.averaged_rows += 1
                for label in range(len(lesson[index])):
                    lesson[index][label] = sum(o[index][label] for o in outputs) / len(outputs)
        return lesson

    def learn(self, batch: torch.Tensor, lesson: list[list[float]]) -> None:
        logits = self.student(batch)
        loss = 0.0
        for row, wanted in zip(logits, lesson, strict=True):
            total = sum(math.exp(value) for value in wanted)
            for value, output in zip(wanted, row, strict=True):
                loss = loss - math.exp(value) / total * (output - row.exp().sum().log())
        self.student.zero_grad()
        (loss / len(lesson)).backward()
        self.steps += 1
        with torch.no_grad():
            for p, (first, second) in zip(self.student.parameters(), self.moments, strict=True):
                flat, gradient = p.view(-1), p.grad.view(-1).tolist()
                for i, g in enumerate(gradient):  # Adam
                    first[i] = 0.9 * first[i] + 0.1 * g
                    second[i] = 0.999 * second[i] + 0.001 * g * g
                    mean, square = (
                        first[i] / (1 - 0.9**self.steps),
                        second[i] / (1 - 0.999**self.steps),
                    )
                    flat[i] -= self.rate * mean / (math.sqrt(square) + 1e-8)

    @torch.no_grad()
    def follow_and_restore(self, decay: float, masks: list[torch.Tensor]) -> None:
        triples = zip(
            self.student.parameters(),
            self.teacher.parameters(),
            self.source.parameters(),
            masks,
            strict=True,
        )
        for student, teacher, source, mask in triples:
            fast, slow, origin = student.view(-1), teacher.view(-1), source.view(-1)
            for i, back in enumerate(mask.view(-1).tolist()):
                slow[i] = decay * slow[i] + (1 - decay) * fast[i]
                if back:
                    fast[i] = origin[i]


def drawn_copies(batch: torch.Tensor, count: int, generator: torch.Generator) -> list[torch.Tensor]:
    if batch.ndim == 4:
        return [augment(as_unit(batch), generator, flips=False) for _ in range(count)]
    spread = torch.stack([column.std(correction=0) for column in batch.T])
    drawn = [torch.randn(batch.shape, generator=generator, dtype=batch.dtype) for _ in range(count)]
    return [batch + 0.1 * spread * noise for noise in drawn]


@pytest.mark.parametrize("kind", ["batch", "layer", "none"])
@pytest.mark.parametrize("averaged", ["rows", "batch"])
@pytest.mark.parametrize("share", ["some", "all"])
def test_a_second_implementation(kind: str, averaged: str, share: str) -> None:
    """Prediction by the teacher from before the updates; student steps; teacher follows; student
    is restored. In this order.
    """
    inputs, source = target_inputs(kind, 24).double(), source_model(kind).double()
    inputs = inputs / 255 if kind == "batch" else inputs
    # Only the first batch is unsure: a student that equals its teacher would have no gradient but
    # rounding error, which Adam enlarges.
    plain = Slow(source, 0.0, averaged, 0.0).source
    parts = {float(plain(part).softmax(1).amax(1).mean()): part for part in inputs.split(8)}
    least, second, _ = sorted(parts)
    inputs = torch.cat([parts[mean] for mean in sorted(parts)])
    threshold = 1.0 if share == "all" else (least + second) / 2
    logits, student, adaptation = adapt(
        "cotta",
        source,
        inputs,
        confidence_threshold=threshold,
        averaged=averaged,
        adaptation_batch=8,
        adaptation_rate=0.01,
        teacher_decay=0.9,
        restore_probability=0.3,
        augmentations=3,
    )
    slow, generator, parts = Slow(source, threshold, averaged, 0.01), torch.Generator(), []
    generator.manual_seed(0)
    for batch in inputs.split(8):
        with torch.no_grad():
            before, state = slow.averaged_rows, generator.get_state()
            lesson = slow.lesson(batch, drawn_copies(batch, 3, generator))
            if slow.averaged_rows == before:  # copies are only drawn if they are used
                generator.set_state(state)
        parts += lesson
        slow.learn(batch, lesson)
        masks = [torch.rand(p.shape, generator=generator) < 0.3 for p in source.parameters()]
        slow.follow_and_restore(0.9, masks)
    torch.testing.assert_close(logits, torch.tensor(parts), rtol=1e-5, atol=1e-5)
    for fast, plain in ((student, slow.student), (adaptation.teacher, slow.teacher)):
        torch.testing.assert_close(
            dict(fast.named_parameters()), dict(plain.named_parameters()), rtol=1e-4, atol=1e-4
        )
    assert adaptation.averaged_rows == slow.averaged_rows
    if share == "all" or averaged == "batch":
        assert slow.averaged_rows == (24 if share == "all" else 8)
    else:
        assert 0 < slow.averaged_rows < 24
    source_logits = torch.cat([source(part) for part in inputs.split(8)]).float()
    assert not torch.allclose(logits, source_logits, atol=1e-3)


def test_the_threshold_is_a_quantile_of_the_confidence_on_rows_of_the_last_source() -> None:
    network, sources = (
        source_model("group"),
        [target_inputs("group", 40, seed=1), target_inputs("group", 61, seed=2)],
    )
    empty = target_inputs("group", 1)[:0]
    rows = [Inputs(inputs) for inputs in (*sources, empty)]

    def threshold(**settings) -> float:
        adaptation = CoTTA(CoTTA.Settings.build(settings))
        adaptation.prepare(network, rows)
        return adaptation.threshold

    def confidence(inputs: torch.Tensor) -> list[float]:
        return sorted(network(inputs).softmax(1).max(1).values.tolist())

    # 5% of 61 sorted rows: the one with number 0.05 · 60 = 3, counted from 0; less 0.05.
    assert threshold() == pytest.approx(confidence(sources[1])[3] - 0.05, abs=1e-6)
    # Learned jointly, all rows count: 0.05 · 100 = 5.
    joint = confidence(torch.cat(sources))[5] - 0.05
    assert threshold(source="joint") == pytest.approx(joint, abs=1e-6)
    assert threshold(confidence_threshold="0.92") == 0.92
    with pytest.raises(FarshoreError, match="confidence_threshold"):
        CoTTA.Settings.build({"confidence_threshold": 1.5})


def test_images_in_the_unit_range_and_tables_have_augmented_copies() -> None:
    for inputs, kind, noise, expected in (
        (target_inputs("group").float() / 255, "group", 0.1, 30),
        (target_inputs("group").float() - 128, "group", 0.1, 0),
        (target_inputs("none"), "none", 0.1, 30),
        (target_inputs("none"), "none", 0.0, 0),
    ):
        _, _, adaptation = adapt(
            "cotta",
            source_model(kind),
            inputs,
            confidence_threshold=1.0,
            augmentations=2,
            table_noise=noise,
        )
        assert adaptation.averaged_rows == expected


# The stream has the images of rotated-digits, and three times as many domains to train on.
EMBEDDED = [
    name
    for name in BENCHMARKS.names()
    if BENCHMARKS.get(name).missing is Benchmark.missing and name != "rotated-digits-stream"
]


@pytest.mark.parametrize("benchmark", EMBEDDED)
def test_predictions_are_averaged_on_the_embedded_benchmarks(benchmark: str) -> None:
    """With the usual number of steps: the threshold depends on how well the model is trained."""
    assert {"rotated-digits", "heart-hospitals"} <= set(EMBEDDED)
    result = execute(Run.build(benchmark=benchmark, method="cotta", settings={"augmentations": 4}))
    note = next(note for note in result.notes if "augmented copies" in note)
    numbers = re.search(r"in (\d+) of (\d+) batches, (\d+) of (\d+) rows", note)
    batches, all_batches, rows, all_rows = map(int, numbers.groups())
    assert 0 < batches <= all_batches
    assert 0 < rows < all_rows == result.target.rows


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
