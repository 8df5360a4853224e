"""What only a GPU can show: `python -m pytest tests/test_cuda.py` on a machine that has one."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from farshore import Learner
from farshore.data.domain import Domain
from farshore.errors import FarshoreError
from farshore.learner.loading import load
from farshore.methods import METHODS, continual
from farshore.testing import differences
from farshore.training.execution.cuda_graphs import EAGER_STEPS
from farshore.training.execution.execution import Way, cannot_compile

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="there is no CUDA GPU here")
RECORDED = [("graph", "float32"), ("graph", "tf32"), ("graph", "bf16")]
WAYS = [("eager", "float32"), *RECORDED, ("compiled", "float32"), ("compiled", "bf16")]
STEPS = 12


def images(seed: int, rows: int = 256) -> Domain:
    """Images with a bright half, which is darker from domain to domain."""
    generator = torch.Generator().manual_seed(seed)
    labels = torch.arange(rows) % 2
    pictures = torch.randint(0, 60, (rows, 1, 12, 12), generator=generator)
    for half in (0, 1):
        pictures[labels == half, :, :, 6 * half : 6 * half + 6] += 120 - 20 * seed
    return Domain.divided(str(seed), pictures.to(torch.uint8), labels)


def learner(method: str, execution: str, precision: str, **settings: object) -> Learner:
    chosen = {"batch_size": 16, "execution": execution, "precision": precision, **settings}
    return Learner(
        "cnn",
        method,
        memory=60,
        settings=chosen,
        network_settings={"width": 16},
        device="cuda",
        profile="default",
    )


def learned(
    method: str, execution: str, precision: str, *, domains: int = 3, **settings: object
) -> Learner:
    made = learner(method, execution, precision, **settings)
    for seed in range(domains):
        made.learn_domain(images(seed), steps=STEPS, classes=[0, 1])
    return made


def weights(made: Learner) -> torch.Tensor:
    return torch.cat(
        [parameter.detach().flatten() for parameter in made.system.method.network.parameters()]
    )


@pytest.mark.parametrize(
    "method", [name for name in continual() if METHODS.get(name).system == "gradient"]
)
def test_a_recorded_step_of_every_method_is_the_eager_one_to_the_last_bit(method: str) -> None:
    """In float32 both ways use PyTorch's own kernels, so all state is the same to the last bit."""
    eager, graph = (
        learned(method, way, "float32", deterministic=True) for way in ("eager", "graph")
    )
    assert (
        eager.system.way.execution,
        graph.system.way.execution,
        graph.system.way.channels_last,
    ) == (
        "eager",
        "graph",
        False,
    )
    assert graph.system.notes == []
    assert graph.system.steps_done == 3 * STEPS > 3 * EAGER_STEPS
    states = [
        {name: part for name, part in made.state_dict().items() if name != "config"}
        for made in (eager, graph)
    ]
    assert differences(*states) == []


@pytest.mark.parametrize(("execution", "precision"), WAYS[1:])
def test_steps_agree_with_eager_float32(execution: str, precision: str, tmp_path: Path) -> None:
    """Step by step from the same state: the first steps run eagerly (or compiled), the last one
    is replayed.
    """
    if execution == "compiled" and cannot_compile(torch.device("cuda")):
        pytest.skip("Triton is not installed")
    learned("cl-coral", "eager", "float32", domains=2, optimizer="sgd", deterministic=True).save(
        tmp_path
    )
    steps = EAGER_STEPS + 2
    ways = []
    for way, numbers in (("eager", "float32"), (execution, precision)):
        made = load(tmp_path, device="cuda")
        made.system.run = made.run.model_copy(update={"execution": way, "precision": numbers})
        before = weights(made)
        made.learn_domain(images(2), steps=steps, classes=[0, 1])
        assert made.system.way.execution == way
        ways.append(weights(made) - before)
    limit = steps * (1e-4 if precision == "float32" else 2e-2)
    assert float((ways[1] - ways[0]).norm()) < limit * float(ways[0].norm())


@pytest.mark.parametrize(("execution", "precision"), WAYS)
@pytest.mark.parametrize("method", ["er", "cl-coral", "cl-andmask", "er-ace"])
def test_a_resumed_run_is_the_same_with_deterministic_kernels(
    method: str, execution: str, precision: str, tmp_path: Path
) -> None:
    whole = learned(method, execution, precision, deterministic=True)
    parts = learner(method, execution, precision, deterministic=True)
    for seed in range(3):
        parts.learn_domain(images(seed), steps=STEPS, classes=[0, 1])
        parts.save(tmp_path)
        parts = load(tmp_path, device="cuda")
    assert parts.domains == whole.domains
    assert differences(whole.state_dict(), parts.state_dict()) == []


@pytest.mark.parametrize(("execution", "precision"), [*RECORDED, ("compiled", "bf16")])
def test_scores_in_the_precision_of_the_steps_are_those_of_the_plain_model(
    execution: str, precision: str
) -> None:
    made = learned("er", execution, precision)
    inputs = images(2).inputs
    quick = made.logits(inputs)
    made.system.way = Way()
    plain = made.logits(inputs)
    assert float((quick - plain).abs().max()) < (1e-4 if precision == "float32" else 2e-2) * float(
        plain.abs().max()
    )
    assert float((quick.argmax(dim=1) == plain.argmax(dim=1)).float().mean()) > 0.99


def test_outside_training_memory_is_contiguous() -> None:
    made = learned("cl-coral", "compiled", "bf16")
    assert all(parameter.is_contiguous() for parameter in made.system.method.network.parameters())
    assert made.system.method.network.extractor is None


def test_the_number_of_compilations_does_not_grow_with_domains_and_batch_sizes() -> None:
    from torch._dynamo.utils import counters

    learned("cl-coral", "compiled", "bf16", domains=2)
    before = counters["stats"]["unique_graphs"]
    for size in (8, 24, 48):
        learned("cl-coral", "compiled", "bf16", domains=4, batch_size=size)
    assert counters["stats"]["unique_graphs"] == before


@pytest.mark.parametrize(("method", "average"), [("er", "ema"), ("cl-mix", "swad")])
def test_a_recorded_average_is_the_eager_one_to_the_last_bit(method: str, average: str) -> None:
    eager, graph = (
        learned(method, way, "float32", deterministic=True, average=average)
        for way in ("eager", "graph")
    )
    assert graph.system.way.execution == "graph"
    assert graph.system.notes == []
    assert differences(eager.system.state_dict(), graph.system.state_dict()) == []


@pytest.mark.parametrize(("execution", "precision"), WAYS)
@pytest.mark.parametrize("average", ["ema", "swad"])
def test_averaging_changes_no_step(average: str, execution: str, precision: str) -> None:
    plain, averaged = (
        learned("er", execution, precision, deterministic=True, average=chosen)
        for chosen in ("none", average)
    )
    raw = averaged.system.average.raw
    network = plain.system.method.network.state_dict()
    assert differences(raw, {name: network[name] for name in raw}) == []


def test_parts_of_a_batch_give_the_same_step_on_a_gpu() -> None:
    for execution in ("eager", "graph"):
        whole = learned("cl-coral", execution, "float32", optimizer="sgd", learning_rate=0.01)
        parts = learned(
            "cl-coral", execution, "float32", optimizer="sgd", learning_rate=0.01, micro_batch=5
        )
        assert torch.allclose(weights(whole), weights(parts), atol=1e-4)


def test_a_recorded_step_augments_anew() -> None:
    eager = learned("er", "eager", "float32", augment="strong")
    recorded = learned("er", "graph", "float32", augment="strong")
    assert recorded.system.way.execution == "graph"
    assert torch.allclose(weights(eager), weights(recorded), atol=1e-4)
    plain = learned("er", "graph", "float32")
    assert not torch.allclose(weights(plain), weights(recorded), atol=1e-4)


@pytest.mark.parametrize("method", ["ncm", "er"])
def test_features_of_a_frozen_backbone_on_a_gpu(method: str, tmp_path: Path) -> None:
    scores = {}
    for device in ("cpu", "cuda"):
        made = Learner("histogram", method, memory=60, device=device)
        for seed in range(2):
            domain = made.backbone.prepared(images(seed))
            made.learn_domain(domain, steps=STEPS, classes=[0, 1])
        scores[device] = made.predict_proba(images(2).inputs)
        made.save(tmp_path / device)
        again = load(tmp_path / device, device=device)
        assert (again.predict(images(2).inputs) == made.predict(images(2).inputs)).all()
    if method == "ncm":  # er draws other batches on another device
        assert abs(scores["cpu"] - scores["cuda"]).max() < 1e-3


def test_a_step_that_does_not_fit_names_micro_batch() -> None:
    made = Learner(
        "cnn",
        settings={"batch_size": 2**20, "execution": "eager", "precision": "float32"},
        network_settings={"width": 64},
        device="cuda",
        memory=10,
    )
    with pytest.raises(FarshoreError, match=r"set micro_batch=\d+ \(the same gradient"):
        made.learn_domain(images(0), steps=1, classes=[0, 1])
