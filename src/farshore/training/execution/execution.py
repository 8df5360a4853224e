"""How a step is carried out: `eager` (the reference), as one CUDA `graph`, or `compiled`.

Which way is chosen, and the numbers, threads and memory format that belong to it.
Beside this module, `cuda_graphs` records and replays steps, and `extractor` computes their
features.
"""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from typing import Any, Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ...errors import FarshoreError
from ...networks.network import Network
from ...settings import RunSettings

Execution = Literal["eager", "compiled", "graph"]
Precision = Literal["float32", "tf32", "bf16"]

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
    cuda = device.type == "cuda"
    # Matrix units for tf32 and bf16.
    units = cuda and torch.cuda.get_device_capability(device) >= (8, 0)
    requested, notes = run.execution, []
    execution: Execution
    if requested != "auto":
        execution = requested
    elif not cuda or steps < GRAPH_STEPS:
        execution = "eager"
    else:
        by_channels = units and _by_channels(network, "graph")
        compile_steps = COMPILE_STEPS_BY_CHANNELS if by_channels else COMPILE_STEPS
        execution = "compiled" if convolves(network) and steps >= compile_steps else "graph"
    if execution == "compiled" and (reason := uncompiled or cannot_compile(device)):
        execution = "graph" if cuda else "eager"
        notes.append(f"the step is not compiled: {reason}")
    if cuda and execution != "eager" and uncaptured:
        execution = "eager"
        notes.append(f"the step is not captured as a CUDA graph: {uncaptured}")
    mixed = units and execution != "eager" and run.precision != "float32"
    channels_last = mixed and _by_channels(network, execution)
    way = Way(execution, tuple(notes), channels_last=channels_last)
    if run.precision != "auto":
        return replace(way, precision=run.precision)
    if not cuda:
        return way
    return replace(way, precision="bf16" if way.channels_last else "tf32")


def _by_channels(network: Network, execution: Execution) -> bool:
    """Whether images with the channels last and half precision pay off.

    They speed up matrix units, which do not multiply in float32. But PyTorch's GroupNorm would copy
    such images at every layer.
    """
    grouped = any(isinstance(module, nn.GroupNorm) for module in network.modules())
    has_kernels = any(getattr(module, "by_channels", False) for module in network.modules())
    return convolves(network) and (execution == "compiled" or has_kernels or not grouped)


def fix_workspace(device: str) -> None:
    """Give cuBLAS the fixed workspace that its deterministic kernels need.

    It has to be there before the GPU is first used, whichever run comes first.
    """
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
    found = any(shutil.which(name) for name in ("g++", "clang++", "c++"))
    return "" if found else "there is no C++ compiler"


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
