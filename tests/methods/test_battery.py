"""One battery for every registered continual method: the checks walk the registry, so a new
method is checked by being there.
"""

from __future__ import annotations

import inspect
import math
import os
from collections.abc import Mapping
from pathlib import Path

import pytest
import torch
from same import differences
from torch import Tensor, nn

import farshore
from farshore.learner import Learner, load
from farshore.methods import METHODS, continual

SETTINGS = {"batch_size": 8, "learning_rate": 0.005}
METHOD = pytest.mark.parametrize("method", continual())
# The battery runs on a GPU too: FARSHORE_TEST_DEVICE=cuda python -m pytest
# tests/methods/test_battery.py
DEVICE = os.environ.get("FARSHORE_TEST_DEVICE", "cpu")


def small(name: str) -> dict:
    """Settings under which every term of the method is at work within a few steps."""
    fields = METHODS.get(name).Settings.model_fields
    early = {key: 2 for key in ("anneal_steps", "warmup_steps") if key in fields}
    return {**SETTINGS, **early}


def learner(method: str, **options: object) -> Learner:
    settings = {**small(method), **options.pop("settings", {})}
    fixed = {"network": "mlp", "memory": 18, "network_settings": {"width": 16}, "device": DEVICE}
    return Learner(**{**fixed, "method": method, "settings": settings, **options})


def tensors(node: object) -> list[Tensor]:
    if isinstance(node, Tensor):
        return [node]
    children = (
        node.values()
        if isinstance(node, Mapping)
        else node
        if isinstance(node, list | tuple)
        else ()
    )
    return [found for child in children for found in tensors(child)]


def learned(method: str, blobs, domains: int = 3, steps: int = 8, **options: object) -> Learner:
    made = learner(method, **options)
    for number in range(domains):
        made.learn(*blobs(number), domain=f"d{number}", steps=steps)
    return made


def finite(made: Learner, inputs: Tensor) -> bool:
    everything = [*tensors(made.state_dict()), made.logits(inputs)]
    return all(
        bool(torch.isfinite(tensor).all()) for tensor in everything if tensor.is_floating_point()
    )


@METHOD
def test_steps_lower_the_loss(method: str, blobs) -> None:
    x, y = blobs(0)
    made = learner(method)
    made.learn(x, y, domain="a", steps=1, validation=0)
    before = nn.functional.cross_entropy(made.logits(x).cpu(), y)
    made = learner(method)
    made.learn(x, y, domain="a", steps=60, validation=0)
    assert float(nn.functional.cross_entropy(made.logits(x).cpu(), y)) < float(before)


@METHOD
def test_deterministic(method: str, blobs) -> None:
    assert (
        differences(learned(method, blobs).state_dict(), learned(method, blobs).state_dict()) == []
    )


@METHOD
def test_resume_equals_uninterrupted(method: str, blobs, tmp_path: Path) -> None:
    straight = learned(method, blobs)
    made = learner(method)
    for number in range(3):
        made.learn(*blobs(number), domain=f"d{number}", steps=8)
        made.save(tmp_path)
        made = load(tmp_path, device=DEVICE)
    assert differences(straight.state_dict(), made.state_dict()) == []


@METHOD
def test_memory_stays_bounded(method: str, blobs) -> None:
    made = learner(method, memory=7)
    sizes = []
    for number in range(4):
        made.learn(*blobs(number), domain=f"d{number}", steps=3)
        sizes.append(made.system.method.bytes)
        if made.system.memory is not None:
            assert made.system.memory.items <= 7
    # What a method remembers beside the memory may grow by a fixed amount a domain, no faster.
    assert sizes[3] - sizes[2] <= max(1, sizes[1] - sizes[0], sizes[2] - sizes[1])


@METHOD
def test_no_gradient_flows_into_stored_things(method: str, blobs) -> None:
    made = learned(method, blobs)
    stored = tensors(made.system.method.state_dict()) + (
        tensors(made.system.memory.state_dict()) if made.system.memory is not None else []
    )
    assert all(not tensor.requires_grad and tensor.grad_fn is None for tensor in stored)


@METHOD
@pytest.mark.parametrize(
    "case",
    [
        "one domain",
        "missing class",
        "one row a batch",
        "unequal domains",
        "one row",
        "total budget",
    ],
)
def test_edge_cases_stay_finite(method: str, case: str, blobs) -> None:
    x, y = blobs(0, classes=3)
    options = {"classes": [0, 1, 2]}
    if case == "one row a batch":
        options["settings"] = {"batch_size": 1}
    if case == "total budget":
        options["settings"] = {"replay_budget": "total", "batch_size": 4}
    made = learner(method, **options)
    made.learn(x, y, domain="a", steps=6)
    for number in range(1, 1 if case == "one domain" else 4):
        more, labels = blobs(number, classes=3)
        if case == "missing class":
            more, labels = more[labels != number % 3], labels[labels != number % 3]
        if case == "unequal domains":
            more, labels = more[: 5 * number], labels[: 5 * number]
        if case == "one row":
            more, labels = more[:1], labels[:1]
        made.learn(more, labels, domain=f"d{number}", steps=6, validation=0)
    assert finite(made, x)


@METHOD
def test_images_and_batchnorm(method: str, pictures, tmp_path: Path) -> None:
    def network() -> farshore.Network:
        torch.manual_seed(0)
        convolutions = [
            nn.Conv2d(1, 8, 3, padding=1),
            nn.BatchNorm2d(8),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(2),
            nn.Flatten(),
        ]
        from farshore.networks.network import ImageInputs

        return farshore.Network(
            nn.Sequential(*convolutions), nn.Linear(32, 2), inputs=ImageInputs()
        )

    def run(resumed: bool) -> Learner:
        made = learner(method, network=network(), network_settings=None)
        for number in range(2):
            made.learn(*pictures(number), domain=f"d{number}", steps=4)
            if resumed:
                made.save(tmp_path)
                made = load(tmp_path, network=network(), device=DEVICE)
        return made

    straight, resumed = run(False), run(True)
    assert finite(straight, pictures(0)[0])
    if DEVICE == "cpu":  # on a GPU convolutions add in any order
        assert differences(straight.state_dict(), resumed.state_dict()) == []
    if straight.system.memory is not None:
        assert all(held.dtype == torch.uint8 for held in stored_inputs(straight))


def stored_inputs(made: Learner) -> list[Tensor]:
    state = made.system.memory.state_dict()
    rows = state["rows"] if isinstance(state["rows"], list) else [state["rows"]]
    return [fields["inputs"] for fields in rows]


@METHOD
def test_weights_of_zero_reduce_it_to_its_simpler_method(method: str, blobs) -> None:
    simpler = METHODS.get(method).reduces_to
    if simpler is None:
        pytest.skip("has no weight whose zero makes it another method")
    name, zeros = simpler
    complex_, plain = (
        learned(method, blobs, settings=dict(zeros)),
        learned(name, blobs, settings={}),
    )
    assert (
        differences(
            complex_.state_dict()["system"]["network"], plain.state_dict()["system"]["network"]
        )
        == []
    )


@METHOD
def test_forgetting_a_domain_leaves_the_others(method: str, blobs) -> None:
    made = learned(method, blobs, domains=2)
    before = made.system.method.bytes
    made.system.method.forget("d0")
    assert made.system.method.bytes <= before
    made.system.method.load_state_dict(made.system.method.state_dict())


@METHOD
def test_docstring_names_paper_and_equation(method: str) -> None:
    text = inspect.getdoc(METHODS.get(method)) or ""
    assert "Equation:" in text
    assert "Paper:" in text
    kind = METHODS.get(method)
    assert kind.name == method
    assert kind.reference
    assert kind.group


@METHOD
def test_the_terms_are_finite_tensors_without_gradient(method: str, blobs) -> None:
    class Watch(farshore.Observer):
        def step(self, domain, step, terms) -> None:
            assert terms
            for name, term in terms.items():
                assert not term.requires_grad, name
                assert math.isfinite(float(term)), name

    learned(method, blobs, domains=2, observer=Watch())
