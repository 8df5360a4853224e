"""Ways to carry out a step: which one is chosen, and that a recorded step is the same step."""

from __future__ import annotations

import numpy as np
import pytest
import taping
import torch
from torch import nn

import farshore.networks.cnn
import farshore.training.execution.execution
import farshore.training.execution.extractor
from farshore import Learner
from farshore.data.domain import Domain, Rows
from farshore.errors import FarshoreError
from farshore.learner.loading import load
from farshore.methods import METHODS, continual
from farshore.methods.method import Method
from farshore.networks.build import build_network
from farshore.networks.network import ImageInputs, Network
from farshore.observer import Observer
from farshore.settings import RunSettings
from farshore.tasks.classification import Classification
from farshore.testing import differences
from farshore.training.execution.cuda_graphs import EAGER_STEPS, CapturedSteps
from farshore.training.execution.execution import Way, choose_way, laid_out
from farshore.training.execution.extractor import evaluation

CPU, CUDA = torch.device("cpu"), torch.device("cuda")
BY_GRADIENTS = [name for name in continual() if METHODS.get(name).system == "gradient"]


# ---- a recorded step is the same step ------------------------------------------------------------


def settings_for(method: str) -> dict[str, int]:
    """Weights and warm-ups that change in the middle of a domain, after the first recording."""
    fields = METHODS.get(method).Settings.model_fields
    return {
        name: 7 for name in ("anneal_steps", "warmup_steps", "threshold_period") if name in fields
    }


def learned(method: str, make, network: str, **settings) -> Learner:
    size = {"width": 8} if network == "cnn" else {"width": 16}
    chosen = {"batch_size": 8, **settings_for(method), **settings}
    learner = Learner(
        network=network, method=method, memory=20, settings=chosen, network_settings=size
    )
    for domain in range(3):
        learner.learn(*make(domain), domain=str(domain), steps=14)
    return learner


VARIANTS = [
    *((name, {}) for name in BY_GRADIENTS),
    ("cl-fishr", {"anneal_scope": "domain"}),
    (
        "cl-vrex",
        {"penalty_weight": 1.0},
    ),  # the weight stays when annealing ends, but the optimiser starts afresh
    ("cl-coral", {"replay_budget": "total", "prior_storage": "float16"}),
    ("er", {"memory_fill": "reservoir", "optimizer": "sgd", "momentum": 0.9}),
    ("star", {"host": "der++"}),
    ("lode", {"split": "domain", "weighting": "classes"}),
    ("cope", {"reading": "avalanche"}),
    ("cl-mix", {"notions": "vrex+fishr+coral+mmd", "average": "ema"}),
    ("er", {"average": "swad"}),
]


@pytest.mark.parametrize(("method", "settings"), VARIANTS)
def test_a_recorded_step_is_the_same_step_bit_for_bit(
    method: str, settings: dict, blobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = learned(method, blobs, "mlp", **settings)
    taping.recorded.clear()
    monkeypatch.setattr("farshore.training.trainer.steps_of", taping.taped)
    replayed = learned(method, blobs, "mlp", **settings)
    assert len(taping.recorded) == 3
    assert all(steps.graph is not None and not steps.graph.fresh for steps in taping.recorded)
    assert differences(plain.state_dict(), replayed.state_dict()) == []


@pytest.mark.parametrize("method", ["cl-coral", "cl-andmask", "snr"])
def test_a_recorded_step_of_a_convolutional_network_is_the_same_step(
    method: str, pictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    plain = learned(method, pictures, "cnn")
    monkeypatch.setattr("farshore.training.trainer.steps_of", taping.taped)
    assert differences(plain.state_dict(), learned(method, pictures, "cnn").state_dict()) == []


def test_the_tape_finds_a_step_that_depends_on_the_host(
    blobs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The check above can fail: a method that weighs its loss by a number on the host is caught."""

    def weights(self: Method) -> dict[str, float]:
        self.calls = getattr(self, "calls", 0) + 1
        return {"erm": 1.0 / self.calls}

    monkeypatch.setattr(METHODS.get("er"), "weights", weights)
    plain = learned("er", blobs, "mlp", optimizer="sgd")
    monkeypatch.setattr("farshore.training.trainer.steps_of", taping.taped)
    assert (
        differences(
            plain.state_dict()["system"]["network"],
            learned("er", blobs, "mlp", optimizer="sgd").state_dict()["system"]["network"],
        )
        != []
    )


def test_every_phase_begins_with_eager_steps_and_is_recorded_once() -> None:
    done: list[str] = []
    phase = ["a"]

    class Graph:
        def replay(self) -> None:
            done.append("replay")

    class Counted(CapturedSteps):
        def _record(self) -> Graph:  # type: ignore[override]
            done.append("record")
            return Graph()

    steps = Counted(lambda: done.append("eager") or {}, lambda: phase[0], [], print)
    for _ in range(EAGER_STEPS + 2):
        steps()
    phase[0] = "b"
    steps()
    assert done == ["eager"] * EAGER_STEPS + ["record", "replay", "replay", "eager"]


def test_a_step_that_cannot_be_recorded_runs_on_eagerly_and_says_so() -> None:
    notes: list[str] = []

    class Refused(CapturedSteps):
        def _record(self) -> torch.cuda.CUDAGraph:
            raise RuntimeError("operation not permitted when stream is capturing\nand more")

    count = [0]

    def step() -> dict:
        count[0] += 1
        return {}

    steps = Refused(step, lambda: None, [], notes.append)
    for _ in range(EAGER_STEPS + 5):
        steps()
    assert count[0] == EAGER_STEPS + 5
    assert notes == [
        "the step is not captured as a CUDA graph: operation not permitted when stream is capturing"
    ]


def test_notions_with_a_state_per_domain_fall_back_visibly(gpu: None) -> None:
    method = METHODS.get("cl-coral")
    made = Learner(
        method="cl-coral",
        settings={"scope": "domain"},
        network_settings={"width": 8},
        classes=[0, 1],
    )
    made.begin(Domain.divided("a", torch.zeros(4, 4), torch.arange(4) % 2), Classification((0, 1)))
    reason = made.system.method.uncaptured()
    assert reason == "running states of domains are looked up by name"
    way = choose_way(
        RunSettings(),
        CUDA,
        made.system.method.network,
        500,
        uncaptured=reason,
        uncompiled=method.uncompiled,
    )
    assert (way.execution, way.notes) == (
        "eager",
        (f"the step is not captured as a CUDA graph: {reason}",),
    )


def test_inputs_that_stay_on_the_host_are_not_captured(gpu: None) -> None:
    made = Learner("cnn", "er", network_settings={"width": 8}, classes=[0, 1])
    images, labels = np.zeros((4, 1, 8, 8), np.uint8), torch.zeros(4, dtype=torch.long)
    made.begin(Domain.divided("a", torch.from_numpy(images), labels), Classification((0, 1)))
    made.system.device = CUDA
    made.system.choose_way(1000, [Rows(images, labels, torch.arange(4))])
    assert made.system.way.execution == "eager"
    assert made.system.way.notes == (
        "the step is not captured as a CUDA graph: the domain's inputs do not fit into the "
        "memory of the GPU",
    )
    made.system.choose_way(1000, [Rows(torch.from_numpy(images), labels, torch.arange(4))])
    assert made.system.way.execution == "graph"


def test_scores_are_computed_in_the_format_of_the_steps_and_leave_the_model_as_it_was() -> None:
    made = build_network("cnn", (1, 8, 8), 3, {"width": 24}).eval()
    inputs = torch.rand(5, 1, 8, 8, generator=torch.Generator().manual_seed(0))
    plain = made(inputs)
    formats = []
    made.features[4].register_forward_hook(
        lambda module, given, out: formats.append(
            out.is_contiguous(memory_format=torch.channels_last)
        )
    )
    for by_channels in (False, True):
        with evaluation(made, Way("graph", channels_last=by_channels), CPU):
            torch.testing.assert_close(made(inputs), plain)
        assert all(parameter.is_contiguous() for parameter in made.parameters())
        assert made.extractor is None
    assert formats == [False, True]


# ---- the choice ----------------------------------------------------------------------------------


def network(name: str = "cnn"):
    if name == "resnet18":
        return build_network(name, (3, 32, 32), 10, {"weights": "none", "width": 4})
    return build_network(name, (1, 8, 8) if name == "cnn" else (4,), 10, {"width": 8})


@pytest.fixture
def gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    """Simulate a GPU with full support."""
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (9, 0))
    monkeypatch.setattr(farshore.training.execution.execution, "cannot_compile", lambda device: "")
    monkeypatch.setattr(farshore.networks.cnn, "HAS_KERNELS", True)


@pytest.mark.parametrize(
    ("name", "steps", "uncompiled", "expected"),
    [
        ("cnn", 1000, "", ("graph", "bf16", True)),
        ("cnn", 20_000, "", ("compiled", "bf16", True)),
        ("cnn", 5, "", ("eager", "tf32", False)),
        ("cnn without kernels", 1000, "", ("compiled", "bf16", True)),
        ("cnn without kernels", 100, "", ("graph", "tf32", False)),
        ("cnn without kernels", 1000, "why not", ("graph", "tf32", False)),
        ("resnet18", 20_000, "", ("compiled", "bf16", True)),
        ("resnet18", 1000, "", ("graph", "bf16", True)),
        ("mlp", 1000, "", ("graph", "tf32", False)),
    ],
)
def test_on_a_gpu_the_way_is_chosen_by_network_and_steps(
    name: str,
    steps: int,
    uncompiled: str,
    expected: tuple,
    gpu: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    name, _, without = name.partition(" without ")
    if without:
        monkeypatch.setattr(farshore.networks.cnn, "HAS_KERNELS", False)
    way = choose_way(
        RunSettings(), CUDA, network(name), steps, uncaptured="", uncompiled=uncompiled
    )
    assert (way.execution, way.precision, way.channels_last) == expected
    assert way.notes == ((f"the step is not compiled: {uncompiled}",) if uncompiled else ())


@pytest.mark.parametrize("name", ["cnn", "resnet18"])
def test_a_gpu_without_such_matrix_units_keeps_the_channels_first(
    name: str, gpu: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: (7, 5))
    way = choose_way(
        RunSettings(execution="graph"), CUDA, network(name), 1000, uncaptured="", uncompiled=""
    )
    assert (way.precision, way.channels_last) == ("tf32", False)


def test_a_network_inside_another_keeps_its_kernels(gpu: None) -> None:
    wrapped = network()
    wrapped.features = torch.nn.Sequential(wrapped.features, torch.nn.Sigmoid())  # as urm has it
    assert (
        choose_way(RunSettings(), CUDA, wrapped, 1000, uncaptured="", uncompiled="").execution
        == "graph"
    )


def test_on_a_cpu_steps_are_eager_in_float32_unless_asked_otherwise() -> None:
    assert choose_way(RunSettings(), CPU, network(), 10**6, uncaptured="", uncompiled="") == Way()
    asked = choose_way(
        RunSettings(execution="compiled"), CPU, network(), 10, uncaptured="", uncompiled=""
    )
    assert (asked.execution, asked.precision) == (
        "compiled" if not farshore.training.execution.execution.cannot_compile(CPU) else "eager",
        "float32",
    )


def test_what_is_asked_for_is_taken_whatever_the_steps(gpu: None) -> None:
    asked = RunSettings(execution="eager", precision="float32")
    way = choose_way(asked, CUDA, network(), 10**6, uncaptured="", uncompiled="")
    assert (way.execution, way.precision, way.channels_last) == ("eager", "float32", False)


@pytest.mark.parametrize(
    ("precision", "by_channels"), [("float32", False), ("tf32", True), ("bf16", True)]
)
def test_matrix_units_want_the_channels_last_and_float32_does_not_take_them(
    precision: str, by_channels: bool, gpu: None
) -> None:
    way = choose_way(
        RunSettings(execution="graph", precision=precision),
        CUDA,
        network(),
        100,
        uncaptured="",
        uncompiled="",
    )
    assert (way.precision, way.channels_last) == (precision, by_channels)


@pytest.mark.parametrize(
    ("name", "value"), [("execution", "graph"), ("precision", "tf32"), ("precision", "bf16")]
)
def test_a_cpu_refuses_what_only_a_gpu_can(name: str, value: str) -> None:
    with pytest.raises(FarshoreError, match=f"{name} = '{value}' is not allowed on 'cpu'"):
        Learner(settings={name: value})


def test_methods_that_cannot_be_compiled_say_why() -> None:
    assert sorted(name for name in BY_GRADIENTS if METHODS.get(name).uncompiled) == ["snr", "star"]


# ---- numbers and memory --------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of the compiler to itself
def test_the_layers_that_the_compiler_sees_give_the_same_features_and_gradients() -> None:
    for shape in ((1, 9, 8), (3, 8, 8), (5, 8, 8)):
        made = build_network("cnn", shape, 3, {"width": 8})
        seen = torch.compile(made.plain_features, backend="eager")
        images = torch.rand(5, *shape)
        pairs = [(made.plain_features(images), seen(images))]
        parameters = list(made.features.parameters())
        pairs += zip(
            *(torch.autograd.grad(out.square().sum(), parameters) for out in pairs[0]), strict=True
        )
        for plain, compiled in pairs:
            torch.testing.assert_close(compiled, plain, rtol=1e-4, atol=1e-5)
    torch._dynamo.reset()


def test_memory_format_is_the_ways_inside_and_plain_outside_and_moments_follow() -> None:
    def steps(channels_last: bool) -> tuple[dict, list[bool]]:
        torch.manual_seed(0)
        made = network("resnet18").train()
        optimizer = torch.optim.Adam(made.parameters(), lr=0.01, fused=True)
        images, labels = torch.randint(0, 256, (4, 3, 32, 32), dtype=torch.uint8), torch.arange(4)
        formats = []
        for _ in range(2):  # the second time the moments are there already, in plain format
            with laid_out(made, [optimizer], Way(channels_last=channels_last)):
                optimizer.zero_grad()
                nn.functional.cross_entropy(made(images), labels).backward()
                optimizer.step()
                weight = made.features.layer1[0].conv1.weight
                kept = [
                    weight,
                    weight.grad,
                    *(value for value in optimizer.state[weight].values() if value.ndim == 4),
                ]
                formats.append(
                    all(tensor.is_contiguous(memory_format=torch.channels_last) for tensor in kept)
                )
            assert all(parameter.is_contiguous() for parameter in made.parameters())
            assert all(
                value.is_contiguous()
                for state in optimizer.state.values()
                for value in state.values()
            )
        return made.state_dict(), formats

    plain, formats = steps(False)
    other, formats_last = steps(True)
    assert (formats, formats_last) == ([False, False], [True, True])
    for name, value in plain.items():
        torch.testing.assert_close(other[name], value, rtol=2e-3, atol=2e-4)


def test_a_state_saved_on_a_gpu_continues_on_a_cpu(tmp_path, blobs) -> None:
    """Whether a step can be captured depends on the current device, not on the saved one."""
    made = Learner(
        method="er", memory=20, settings={"batch_size": 8}, network_settings={"width": 8}
    )
    made.learn(*blobs(0), domain="a", steps=3)
    for group in made.system.method.opts[0].param_groups:
        group["capturable"] = True
    made.save(tmp_path)
    again = load(tmp_path)
    again.learn(*blobs(1), domain="b", steps=3)
    assert [group["capturable"] for group in again.system.method.opts[0].param_groups] == [False]


def test_a_note_is_made_once() -> None:
    class Notes(Observer):
        def __init__(self) -> None:
            self.made: list[str] = []

        def note(self, text: str) -> None:
            self.made.append(text)

    notes = Notes()
    made = Learner(
        "cnn",
        "snr",
        settings={"execution": "compiled"},
        network_settings={"width": 8},
        classes=[0, 1],
        observer=notes,
    )
    images = torch.zeros(4, 1, 8, 8, dtype=torch.uint8)
    made.begin(Domain.divided("a", images, torch.arange(4) % 2), Classification((0, 1)))
    made.system.choose_way(10)
    assert made.system.way.execution == "eager"
    assert notes.made == [
        "the step is not compiled: the firing of units is recorded inside the feature extractor"
    ]


class BrokenBackward(torch.autograd.Function):
    """Code that works in the forward pass only."""

    @staticmethod
    def forward(ctx: object, features: torch.Tensor) -> torch.Tensor:
        return features.clone()

    @staticmethod
    def backward(ctx: object, *gradients: torch.Tensor) -> torch.Tensor:
        raise AssertionError("no such operation\nexpected stride 9==1")


@pytest.mark.parametrize("forward", [True, False])
def test_what_cannot_be_compiled_runs_on_plainly_and_says_so(
    forward: bool, pictures, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(network: Network, inputs: torch.Tensor) -> torch.Tensor:
        if forward:
            raise torch._dynamo.exc.Unsupported("no such operation\nand a long story")
        features: torch.Tensor = BrokenBackward.apply(network.plain_features(inputs))
        return features

    monkeypatch.setattr(farshore.training.execution.extractor, "compiled_features", lambda: broken)
    monkeypatch.setattr(farshore.training.execution.execution, "cannot_compile", lambda device: "")
    notes: list[str] = []

    class Notes(Observer):
        def note(self, text: str) -> None:
            notes.append(text)

    def network() -> Network:
        torch.manual_seed(0)
        return Network(
            nn.Sequential(nn.Conv2d(1, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten()),
            nn.Linear(8 * 36, 2),
            inputs=ImageInputs(),
        )

    made, plain = (
        Learner(network(), "er", settings={"batch_size": 8, "execution": way}, observer=Notes())
        for way in ("compiled", "eager")
    )
    for learner in (made, plain):
        learner.learn(*pictures(0), domain="a", steps=4)
    assert notes == made.system.notes == ["the step is not compiled: no such operation"]
    assert (
        differences(made.state_dict()["system"]["network"], plain.state_dict()["system"]["network"])
        == []
    )
