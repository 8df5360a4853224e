"""How the features of a step are computed: plain, compiled, in half precision, or in parts.

`extraction` and `evaluation` set the network's extractor while they are open.
"""

import importlib
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import cache, partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from ...networks.network import Network
from .execution import Way, laid_out


@dataclass(frozen=True)
class StepChanges:
    """How the features of a training step differ from those in evaluation.

    augment: changes images at random, after they are standardised.
    micro_batch: how many rows go through the feature layers at once. Intermediate values are
        computed again for the gradient, so memory holds them for these rows only. Unlike summing
        the gradients of small batches, this is exact for every loss. BatchNorm uses the statistics
        of these rows.
    """

    augment: Callable[[Tensor], Tensor] | None = None
    micro_batch: int | None = None


NO_CHANGES = StepChanges()


def _in_parts(network: Network, changes: StepChanges) -> Callable[[Network, Tensor], Tensor]:
    """The features of a step: augmented images, and a few rows at a time."""
    # Drawing the same numbers again reads the generator's state, which a recording cannot.
    draws = any(isinstance(module, nn.Dropout) and module.p > 0 for module in network.modules())

    def features(prepared: Tensor) -> Tensor:
        if network.channels_last and prepared.ndim == 4:
            prepared = prepared.contiguous(memory_format=torch.channels_last)
        return network.features(prepared)

    def extract(network: Network, inputs: Tensor) -> Tensor:
        prepared = network.inputs(inputs)
        if changes.augment is not None and network.training:
            prepared = changes.augment(prepared)
        size = changes.micro_batch
        if size is None or len(prepared) <= size or not torch.is_grad_enabled():
            return features(prepared)
        run = partial(
            checkpoint,
            use_reentrant=False,
            preserve_rng_state=draws,
            context_fn=lambda: (nullcontext(), _again(network)),
        )
        return torch.cat([run(features, part) for part in prepared.split(size)])

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
    """Features by the compiled extractor in the way's precision; all else in float32.

    With changes they are not compiled.
    """
    changed, half = changes != NO_CHANGES, way.precision == "bf16"
    compiled = way.execution == "compiled" and not changed
    usual = _in_parts(network, changes) if changed else _features
    run, verified = compiled_features() if compiled else usual, not compiled

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
                why = (str(error).strip() or type(error).__name__).splitlines()[0]
                note(f"the step is not compiled: {why}")
                run, verified = _features, True
                # BatchNorm must see this batch only once.
                for buffer, before in zip(network.buffers(), buffers, strict=True):
                    buffer.copy_(before)
                return run(network, inputs).float()

    network.extractor = extract if half or compiled or changed else None
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
    """Try the backward pass, if there is one: compiled code may fail only there."""
    if features.requires_grad:
        parameters = [parameter for parameter in network.parameters() if parameter.requires_grad]
        torch.autograd.grad(features.sum(), parameters, retain_graph=True, allow_unused=True)
    return features.requires_grad


def _features(network: Network, inputs: Tensor) -> Tensor:
    return network.plain_features(inputs)


@cache
def compiled_features() -> Callable[[Network, Tensor], Tensor]:
    """The compiled extractor, one per process: networks of equal structure share code."""
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
