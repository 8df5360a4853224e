"""Checkpoints inside a domain: every method resumes bit for bit, and mismatches are detected."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

import farshore
from farshore.base.state import current_tag
from farshore.errors import FarshoreError
from farshore.learner.learner import Learner
from farshore.learner.loading import load
from farshore.methods import METHODS, continual
from farshore.testing import differences
from farshore.training.checkpoints import Checkpoints

BY_GRADIENTS = [name for name in continual() if METHODS.get(name).system == "gradient"]


class Stopped(Exception):
    """The power went off."""


class StopAt(farshore.Observer):
    """Interrupts the training of a domain after some steps, once."""

    def __init__(self, domain: str, step: int) -> None:
        self.place: tuple[str, int] | None = (domain, step)
        self.seen: list[int] = []
        self.notes: list[str] = []

    def note(self, text: str) -> None:
        self.notes.append(text)

    def step(self, domain, step, terms) -> None:
        self.seen.append(step)
        if (domain, step) == self.place:
            self.place = None
            raise Stopped


def learner(method: str, observer: farshore.Observer | None = None, **settings: object) -> Learner:
    fields = METHODS.get(method).Settings.model_fields
    early = {key: 2 for key in ("anneal_steps", "warmup_steps") if key in fields}
    chosen = {"batch_size": 8, "learning_rate": 0.005, **early, **settings}
    return Learner(
        "mlp",
        method,
        18,
        settings=chosen,
        network_settings={"width": 12},
        preprocess="none",
        observer=observer,
    )


def interrupted(method: str, blobs, folder: Path, *, domain: int, **settings: object) -> Learner:
    """Learn three domains with saves between them.

    The given one is stopped after 6 steps and resumed in a fresh learner.
    """
    made = learner(method, **settings)
    made.save(folder)
    for number in range(3):
        stop = StopAt(f"d{domain}", 6)
        for _ in range(2):
            made = load(folder, observer=stop)
            checkpoints = Checkpoints(
                folder / "checkpoint", base=current_tag(folder, kind="learner"), every=4
            )
            try:
                made.learn(*blobs(number), domain=f"d{number}", steps=9, checkpoints=checkpoints)
                break
            except Stopped:
                stop.seen.clear()
        made.save(folder, keep_previous=True)
        if number == domain:
            assert stop.seen == [4, 5, 6, 7, 8]
            assert stop.notes == [f"continuing d{domain} after 4 steps, from its last checkpoint"]
    return load(folder)


@pytest.mark.parametrize("method", BY_GRADIENTS)
def test_every_method_resumes_bit_for_bit_inside_a_domain(
    method: str, blobs, tmp_path: Path
) -> None:
    straight = learner(method)
    for number in range(3):
        straight.learn(*blobs(number), domain=f"d{number}", steps=9)
    again = interrupted(method, blobs, tmp_path, domain=1)
    assert differences(straight.state_dict(), again.state_dict()) == []


@pytest.mark.parametrize("domain", [0, 2])
@pytest.mark.parametrize(
    "settings",
    [
        {"memory_fill": "reservoir"},
        {"class_weight": "balanced"},
        {"reset_optimizer": "domain"},
        {"average": "ema"},
        {"average": "swad"},
    ],
)
def test_other_settings_and_other_domains(
    blobs, tmp_path: Path, domain: int, settings: dict
) -> None:
    straight = learner("cl-coral", **settings)
    for number in range(3):
        straight.learn(*blobs(number), domain=f"d{number}", steps=9)
    assert (
        differences(
            straight.state_dict(),
            interrupted("cl-coral", blobs, tmp_path, domain=domain, **settings).state_dict(),
        )
        == []
    )


def test_the_tuning_of_a_closed_form_learner_resumes_bit_for_bit(blobs, tmp_path: Path) -> None:
    settings = {"first_domain_tuning": True, "random_features": 20}
    straight = learner("ridge", **settings)
    for number in range(3):
        straight.learn(*blobs(number), domain=f"d{number}", steps=9)
    again = interrupted("ridge", blobs, tmp_path, domain=0, **settings)
    assert differences(straight.state_dict(), again.state_dict()) == []


def stopped(blobs, folder: Path) -> tuple[Learner, Checkpoints]:
    made = learner("er", StopAt("a", 6))
    checkpoints = Checkpoints(folder, base="x", every=4)
    with pytest.raises(Stopped):
        made.learn(*blobs(0), domain="a", steps=9, checkpoints=checkpoints)
    return learner("er", StopAt("", 0)), Checkpoints(folder, base="x", every=4)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda x, y: {"x": x + 1e-6, "y": y, "domain": "a", "steps": 9}, "data is different"),
        (lambda x, y: {"x": x, "y": y, "domain": "b", "steps": 9}, "domain is different"),
        (lambda x, y: {"x": x, "y": y, "domain": "a", "steps": 10}, "steps is different"),
    ],
)
def test_something_else_than_what_was_interrupted_is_refused(
    blobs, tmp_path: Path, call, message: str
) -> None:
    made, checkpoints = stopped(blobs, tmp_path)
    with pytest.raises(FarshoreError, match=message):
        made.learn(**call(*blobs(0)), checkpoints=checkpoints)


def test_a_checkpoint_of_another_model_or_a_damaged_one_is_dropped(blobs, tmp_path: Path) -> None:
    made, checkpoints = stopped(blobs, tmp_path / "c")
    checkpoints.base = "y"
    made.learn(*blobs(0), domain="a", steps=9, checkpoints=checkpoints)
    assert made.observer.seen == list(range(9))
    made, checkpoints = stopped(blobs, tmp_path / "d")
    tensors = next((tmp_path / "d").glob("tensors-*"))
    tensors.write_bytes(tensors.read_bytes()[:-1])
    made.learn(*blobs(0), domain="a", steps=9, checkpoints=checkpoints)
    assert made.observer.seen == list(range(9))


def test_a_checkpoint_does_not_change_the_training(blobs, tmp_path: Path) -> None:
    states = []
    for every in (None, 2):
        made = learner("sarl")
        checkpoints = Checkpoints(tmp_path, base="x", every=every) if every else None
        for number in range(2):
            made.learn(*blobs(number), domain=f"d{number}", steps=5, checkpoints=checkpoints)
            if checkpoints is not None:
                checkpoints.clear()
        states.append(made.state_dict())
    assert differences(*states) == []
    assert not tmp_path.exists()


def test_balanced_class_weights_lift_the_rare_class(blobs) -> None:
    x, y = blobs(0, rows=200)
    kept = torch.cat([torch.arange(200)[y == 0], torch.arange(200)[y == 1][:6]])
    noise = 3 * torch.randn(len(kept), 4, generator=torch.Generator().manual_seed(0))
    recall = {}
    for weight in ("none", "balanced"):
        made = learner("er", class_weight=weight)
        made.learn(x[kept] + noise, y[kept], domain="a", steps=60, validation=0)
        recall[weight] = float((made.predict(x[y == 1] + noise.mean()) == 1).mean())
    assert recall["balanced"] > recall["none"]


@pytest.mark.parametrize(
    "method", [name for name in continual() if METHODS.get(name).weighs_classes]
)
def test_equal_classes_weigh_as_without_weights(method: str, blobs) -> None:
    """With equally many rows per class, weights are 1 and training differs by rounding only."""
    states = []
    for weight in ("none", "balanced"):
        made = learner(method, class_weight=weight)
        for number in range(2):
            made.learn(*blobs(number), domain=f"d{number}", steps=4, validation=0)
        states.append(made.logits(blobs(0)[0]))
    torch.testing.assert_close(*states, atol=1e-3, rtol=1e-3)


def test_a_loss_without_a_term_to_weigh_refuses_class_weights() -> None:
    with pytest.raises(FarshoreError, match="no term to weigh"):
        learner("cope", class_weight="balanced")


def test_forgetting_a_domain_deletes_its_rows_and_prior(blobs) -> None:
    made = learner("cl-coral")
    for number in range(2):
        made.learn(*blobs(number), domain=f"d{number}", steps=4)
    made.forget("d0")
    assert list(made.system.memory.kept()) == ["d1"]
    assert made.system.method.priors.names == ["d1"]
    made.learn(*blobs(0), domain="d0", steps=4)
    assert [domain["name"] for domain in made.domains] == ["d1", "d0"]
    with pytest.raises(FarshoreError, match="unknown domain"):
        made.forget("d7")
    mixed = learner("sarl")
    mixed.learn(*blobs(0), domain="d0", steps=4)
    with pytest.raises(FarshoreError, match="cannot be distinguished"):
        mixed.forget("d0")
