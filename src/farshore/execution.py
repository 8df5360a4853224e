"""How a step is carried out: `eager` (the reference), as one CUDA `graph`, or `compiled`.

A step reads nothing on the host, so a GPU can record it once and replay it as a whole. Launching
hundreds of small kernels takes longer than their arithmetic; a replay launches all of them at once.
A phase identifies what a recording has fixed (the number of domains, shapes, weights that changed
on the host). In each phase the first steps run eagerly, then the step is recorded, and all further
steps are replayed. Every one of them is a real training step; there are no dry runs. Compiled steps
are recorded in the same way.
"""

from __future__ import annotations

import importlib
import os
import shutil
import warnings
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer
from torch.utils.checkpoint import checkpoint

from .errors import FarshoreError
from .methods.method import Terms
from .networks.network import Network
from .settings import RunSettings

Execution = Literal["eager", "compiled", "graph"]
Precision = Literal["float32", "tf32", "bf16"]

# Eager steps ahead of a recording: they create the optimiser's state, and libraries choose their
# kernels.
EAGER_STEPS = 3
# Steps per domain from which recording pays off, and from which compiling does, which takes seconds
# to half a minute. Compiling saves half of a step; where a recorded step already has its images
# with the channels last, a fifth at most.
GRAPH_STEPS = 20
COMPILE_STEPS, COMPILE_STEPS_BY_CHANNELS = 500, 20_000
# Networks with fewer parameters run on one CPU thread.
ONE_THREAD_PARAMETERS = 1_000_000


@dataclass(frozen=True)
class Way:
    """How a learner's steps are carried out. `notes` explain why faster ways are not used."""

    execution: Execution = "eager"
    notes: tuple[str, ...] = ()
    precision: Precision = "float32"
    channels_last: bool = False

    @property
    def captured(self) -> bool:
        """Whether steps are recorded and replayed on a GPU."""
        return self.execution != "eager"


def check_way(run: RunSettings, device: torch.device) -> None:
    """Refuse settings that this device does not support, before any work."""
    if device.type == "cuda":
        return
    if run.execution == "graph":
        raise FarshoreError(
            f"execution = 'graph' is not allowed on {str(device)!r}: it is for CUDA devices; use "
            "'eager' or 'compiled'"
        )
    # Even on CPUs that support bf16, some of its kernels crash the process.
    if run.precision not in ("auto", "float32"):
        raise FarshoreError(
            f"precision = {run.precision!r} is not allowed on {str(device)!r}: it is for CUDA "
            "devices; use 'float32'"
        )


def choose_way(
    run: RunSettings,
    device: torch.device,
    network: Network,
    steps: int,
    *,
    uncaptured: str,
    uncompiled: str,
) -> Way:
    """What the run asks for, or what pays off on this device for this many steps per domain.

    uncaptured: why the method's step cannot be recorded; empty if it can.
    uncompiled: why the method's step cannot be compiled; empty if it can.
    """
    cuda, units = device.type == "cuda", has_matrix_units(device)
    requested, notes = run.execution, []
    execution: Execution
    if requested != "auto":
        execution = requested
    elif not cuda or steps < GRAPH_STEPS:
        execution = "eager"
    else:
        compile_steps = (
            COMPILE_STEPS_BY_CHANNELS if units and _by_channels(network, "graph") else COMPILE_STEPS
        )
        execution = "compiled" if convolves(network) and steps >= compile_steps else "graph"
    if execution == "compiled" and (reason := uncompiled or cannot_compile(device)):
        execution = "graph" if cuda else "eager"
        notes.append(f"the step is not compiled: {reason}")
    if cuda and execution != "eager" and uncaptured:
        execution = "eager"
        notes.append(f"the step is not captured as a CUDA graph: {uncaptured}")
    channels_last = (
        units
        and execution != "eager"
        and run.precision != "float32"
        and _by_channels(network, execution)
    )
    way = Way(execution, tuple(notes), channels_last=channels_last)
    if run.precision != "auto":
        return replace(way, precision=run.precision)
    if not cuda:
        return way
    return replace(way, precision="bf16" if way.channels_last else "tf32")


def has_matrix_units(device: torch.device) -> bool:
    """Whether this is a GPU with matrix units for tf32 and bf16: compute capability 8.0 or more."""
    return device.type == "cuda" and torch.cuda.get_device_capability(device) >= (8, 0)


def _by_channels(network: Network, execution: Execution) -> bool:
    """Whether images with the channels last and half precision pay off.

    They speed up matrix units, which do not multiply in float32. But PyTorch's GroupNorm would copy
    such images at every layer.
    """
    grouped = any(isinstance(module, nn.GroupNorm) for module in network.modules())
    has_kernels = any(getattr(module, "by_channels", False) for module in network.modules())
    return convolves(network) and (execution == "compiled" or has_kernels or not grouped)


def warm_up(device: str) -> None:
    """Trigger PyTorch's one-time work per process, so that it does not count as a run's time.

    Optimisers import many modules at their first step. Deterministic cuBLAS kernels need a fixed
    workspace before the GPU is first used, whichever run comes first.
    """
    weight = torch.zeros(1, requires_grad=True)
    weight.grad = torch.zeros(1)
    torch.optim.Adam([weight]).step()
    if device.startswith("cuda"):
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")


def convolves(network: nn.Module) -> bool:
    """Whether the network has convolutions."""
    return any(isinstance(module, nn.Conv2d) for module in network.modules())


def cannot_compile(device: torch.device) -> str:
    """Why torch.compile cannot work here; empty if it can."""
    if device.type == "cuda":
        try:
            import triton  # type: ignore[import-not-found, unused-ignore]  # noqa: F401
        except ImportError:
            return "Triton is not installed"
        return ""
    return (
        ""
        if any(shutil.which(name) for name in ("g++", "clang++", "c++"))
        else "there is no C++ compiler"
    )


# ---- numbers and memory --------------------------------------------------------------------------


@contextmanager
def arithmetic(
    way: Way, run: RunSettings, device: torch.device, network: nn.Module
) -> Iterator[None]:
    """Set the precision of float32 matrix products, and threads and repeatability as requested."""
    if device.type != "cuda":
        with cpu_threads(run.threads or usual_threads(network)):
            yield
        return
    with ExitStack() as stack:
        stack.enter_context(_tf32(way.precision != "float32"))
        stack.enter_context(torch.cuda.device(device))
        if run.deterministic:
            stack.enter_context(_deterministic())
        yield


def usual_threads(network: nn.Module) -> int:
    """One thread for a small network, for which sharing work does not pay off; else one per core.

    It depends only on the run, not on the command, because sums that are divided among threads are
    rounded differently.
    """
    parameters = sum(parameter.numel() for parameter in network.parameters())
    return 1 if parameters < ONE_THREAD_PARAMETERS else os.cpu_count() or 1


@contextmanager
def cpu_threads(count: int) -> Iterator[None]:
    """Let PyTorch compute on this many CPU threads inside."""
    before = torch.get_num_threads()
    if count != before:
        torch.set_num_threads(count)
    try:
        yield
    finally:
        if count != before:
            torch.set_num_threads(before)


@contextmanager
def _tf32(allowed: bool) -> Iterator[None]:
    matmul, convolution = torch.backends.cuda.matmul, torch.backends.cudnn
    before = matmul.allow_tf32, convolution.allow_tf32
    matmul.allow_tf32 = convolution.allow_tf32 = allowed
    try:
        yield
    finally:
        matmul.allow_tf32, convolution.allow_tf32 = before


@contextmanager
def _deterministic() -> Iterator[None]:
    before = (
        torch.are_deterministic_algorithms_enabled(),
        torch.is_deterministic_algorithms_warn_only_enabled(),
    )
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])


@contextmanager
def laid_out(network: Network, optimizers: Sequence[Optimizer], way: Way) -> Iterator[None]:
    """Store images, convolutions and their optimiser state in the memory format of the way.

    Outside of the context the format is contiguous. Fused optimisers iterate over parameter,
    gradient and moments in parallel and ignore strides: moments in another format, for example from
    a file, would be applied to the wrong entries.
    """
    _lay_out(network, optimizers, channels_last=way.channels_last)
    try:
        yield
    finally:
        _lay_out(network, optimizers, channels_last=False)


def _lay_out(network: Network, optimizers: Sequence[Optimizer], *, channels_last: bool) -> None:
    network.channels_last = channels_last
    network.to(memory_format=torch.channels_last if channels_last else torch.contiguous_format)  # type: ignore[call-overload]
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            for parameter in group["params"]:
                match_layout(parameter, optimizer.state.get(parameter, {}))


def match_layout(parameter: Tensor, state: dict[str, Any]) -> None:
    """Give tensors of a parameter's state that have its shape the same strides."""
    for name, value in state.items():
        if (
            isinstance(value, Tensor)
            and value.shape == parameter.shape
            and value.stride() != parameter.stride()
        ):
            state[name] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)


# ---- the feature extractor -----------------------------------------------------------------------


@dataclass(frozen=True)
class StepChanges:
    """What differs in the features of a training step from those in evaluation.

    augment: changes images at random, after mean and deviation.
    micro_batch: rows that go through the features at once. What they computed in between is
        computed again for the gradient, so that the memory holds it for these rows only; unlike
        summed gradients of small batches this is exact for every loss. BatchNorm has the statistics
        of these rows.
    """

    augment: Callable[[Tensor], Tensor] | None = None
    micro_batch: int | None = None


NO_CHANGES = StepChanges()


def _in_parts(network: Network, changes: StepChanges) -> Callable[[Tensor], Tensor]:
    """The features of a step: augmented images, and a few rows at a time."""
    # Drawing the same numbers again reads the generator's state, which a recording cannot.
    draws = any(isinstance(module, nn.Dropout) and module.p > 0 for module in network.modules())

    def features(prepared: Tensor) -> Tensor:
        if network.channels_last and prepared.ndim == 4:
            prepared = prepared.contiguous(memory_format=torch.channels_last)
        out: Tensor = network.features(prepared)
        return out

    def extract(inputs: Tensor) -> Tensor:
        prepared = network.inputs(inputs)
        if changes.augment is not None and network.training:
            prepared = changes.augment(prepared)
        size = changes.micro_batch
        if size is None or len(prepared) <= size or not torch.is_grad_enabled():
            return features(prepared)
        parts = [
            checkpoint(
                features,
                part,
                use_reentrant=False,
                preserve_rng_state=draws,
                context_fn=lambda: (nullcontext(), _again(network)),
            )
            for part in prepared.split(size)
        ]
        return torch.cat(parts)

    return extract


@contextmanager
def _again(network: Network) -> Iterator[None]:
    """Inside, BatchNorm computes as before, without counting the batch a second time."""
    layers = [layer for layer in network.batchnorms() if layer.num_batches_tracked is not None]
    before = [(layer.momentum, layer.num_batches_tracked) for layer in layers]
    counts = [None if count is None else count.clone() for _, count in before]
    for layer in layers:
        layer.momentum = 0.0  # the stored statistics stay as they are
    try:
        yield
    finally:
        for layer, (momentum, count), counted in zip(layers, before, counts, strict=True):
            layer.momentum = momentum
            if count is not None and counted is not None:
                count.copy_(counted)


@contextmanager
def extraction(
    network: Network,
    way: Way,
    device: torch.device,
    note: Callable[[str], None],
    changes: StepChanges = NO_CHANGES,
) -> Iterator[None]:
    """Compute features with the compiled extractor and in the way's precision.

    Everything else stays in float32.
    """
    if changes != NO_CHANGES:
        with _changed(network, way, device, changes):
            yield
        return
    half, compiled = way.precision == "bf16", way.execution == "compiled"
    run, verified = compiled_features() if compiled else _features, not compiled

    def extract(inputs: Tensor) -> Tensor:
        nonlocal run, verified
        # No cache of cast weights: a recording would keep reading those of the step it recorded.
        with torch.autocast(device.type, torch.bfloat16, enabled=half, cache_enabled=False):
            if verified:
                return run(network, inputs).float()
            buffers = [buffer.clone() for buffer in network.buffers()]
            try:
                features = run(network, inputs).float()
                verified = _try_backward(features, network)
                return features
            except torch.OutOfMemoryError:
                raise
            # Caused by a user's own network or a broken compiler.
            except (RuntimeError, AssertionError) as error:
                note(
                    "the step is not compiled: "
                    f"{(str(error).strip() or type(error).__name__).splitlines()[0]}"
                )
                run, verified = _features, True
                # BatchNorm must see this batch only once.
                for buffer, before in zip(network.buffers(), buffers, strict=True):
                    buffer.copy_(before)
                return run(network, inputs).float()

    network.extractor = extract if half or compiled else None
    try:
        yield
    finally:
        network.extractor = None


@contextmanager
def _changed(
    network: Network, way: Way, device: torch.device, changes: StepChanges
) -> Iterator[None]:
    """Compute features as in `extraction`, without compiling, with the changes of the step."""
    run = _in_parts(network, changes)

    def extract(inputs: Tensor) -> Tensor:
        half = way.precision == "bf16"
        with torch.autocast(device.type, torch.bfloat16, enabled=half, cache_enabled=False):
            return run(inputs).float()

    network.extractor = extract
    try:
        yield
    finally:
        network.extractor = None


@contextmanager
def evaluation(model: nn.Module, way: Way, device: torch.device) -> Iterator[None]:
    """Compute the model's outputs in the format and precision of the steps, without compiling."""
    if not (way.channels_last and isinstance(model, Network)):
        yield
        return
    with (
        laid_out(model, (), way),
        extraction(model, replace(way, execution="graph"), device, note=lambda text: None),
    ):
        yield


def _try_backward(features: Tensor, network: Network) -> bool:
    """Try the backward pass, and return whether there was one to try.

    Compiled code may fail only there, by a wrong guess at a gradient's memory format.
    """
    if features.requires_grad:
        parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
        torch.autograd.grad(features.sum(), parameters, retain_graph=True, allow_unused=True)
    return features.requires_grad


def _features(network: Network, inputs: Tensor) -> Tensor:
    return network.plain_features(inputs)


@cache
def compiled_features() -> Callable[[Network, Tensor], Tensor]:
    """The compiled extractor, one per process.

    Networks of the same structure share compiled code, so a worker compiles once for all its runs.
    """
    # CL-ANDMask takes gradients of two losses from one forward pass: the first backward pass must
    # leave the buffers that the second needs.
    config: Any = importlib.import_module("torch._functorch.config")
    config.donated_buffer = False
    compiled: Callable[[Network, Tensor], Tensor] = torch.compile(_features)

    def features(network: Network, inputs: Tensor) -> Tensor:
        # Another domain or batch size changes only the first axis, which must not recompile.
        torch._dynamo.maybe_mark_dynamic(inputs, 0)
        with warnings.catch_warnings():
            # Advice to give up float32, which was requested.
            warnings.filterwarnings("ignore", message="TensorFloat32")
            # PyTorch's warnings about its own code.
            warnings.filterwarnings("ignore", category=DeprecationWarning)
            return compiled(network, inputs)

    return features


# ---- recording and replaying ---------------------------------------------------------------------


class CapturedSteps:
    """Carries out one step per call; after a few eager steps of a phase, as a recorded CUDA graph.

    It returns the same tensors each time, which the next step overwrites: copy them to keep them.
    """

    def __init__(
        self,
        step: Callable[[], Terms],
        phase: Callable[[], Hashable],
        generators: Sequence[torch.Generator],
        note: Callable[[str], None],
    ) -> None:
        self.step = step
        self.phase = phase
        self.generators = generators
        self.note = note
        self.key: Hashable = object()
        self.eager = 0
        self.graph: torch.cuda.CUDAGraph | None = None
        self.terms: Terms = {}

    def __call__(self) -> Terms:
        """Carry out a step: eager, or recorded and replayed, or replayed."""
        key = self.phase()
        if key != self.key:
            self.key, self.graph, self.eager = key, None, EAGER_STEPS
        if self.graph is None:
            if self.eager > 0:
                self.eager -= 1
                return self.step()
            try:
                self.graph = self._record()
            except RuntimeError as error:
                self.note(f"the step is not captured as a CUDA graph: {str(error).splitlines()[0]}")
                self.eager = 2**62
                return self.step()
        self.graph.replay()
        return self.terms

    def _record(self) -> torch.cuda.CUDAGraph:
        """Record one step. Nothing is computed yet, and no random numbers are consumed."""
        graph = torch.cuda.CUDAGraph()
        for generator in self.generators:
            graph.register_generator_state(generator)
        torch.cuda.current_stream().synchronize()
        graph.capture_begin(capture_error_mode="thread_local")
        try:
            self.terms = self.step()
        finally:
            graph.capture_end()
        return graph


@contextmanager
def steps_of(
    way: Way,
    device: torch.device,
    step: Callable[[], Terms],
    phase: Callable[[], Hashable],
    generators: Sequence[torch.Generator],
    note: Callable[[str], None],
) -> Iterator[Callable[[], Terms]]:
    """Yield a function that carries out one step of a domain per call, in this way."""
    if device.type != "cuda" or not way.captured:
        yield step
        return
    # Recording needs a stream of its own. The eager steps run on it too, so that all steps are
    # executed in order.
    stream = _stream(device)
    stream.wait_stream(torch.cuda.current_stream(device))
    with torch.cuda.stream(stream):
        yield CapturedSteps(step, phase, generators, note)
    torch.cuda.current_stream(device).wait_stream(stream)


@cache
def _stream(device: torch.device) -> torch.cuda.Stream:
    """One stream per process: memory freed on a stream is reused only on that stream."""
    return torch.cuda.Stream(device)
