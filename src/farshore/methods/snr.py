"""SNR: reset units that have been silent for longer than their own past makes likely."""

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ..data.batch import Batch
from ..networks.network import HiddenUnits
from ..settings import Choice, MethodSettings, setting
from .finetune import Finetune
from .method import Terms

# In batches: longer silences are counted as this one; it is also the largest threshold.
LONGEST_SILENCE = 512


class SNRSettings(MethodSettings):
    """None is in the paper's table. η, its grid and the first threshold are from the authors'
    repositories; the others are ours, see `snr`.
    """

    rejection: float = setting(
        0.01,
        Choice((0.01, 0.02, 0.04, 0.08, 0.16, 0.32)),
        gt=0,
        lt=1,
        help="η: a silence with a lower probability resets a unit",
    )
    initial_threshold: int = setting(
        16, ge=1, le=2**30, help="batches of silence that reset a unit while its past is unknown"
    )
    threshold_period: int = setting(100, ge=1, help="steps between two updates of the thresholds")


class SNR(Finetune):
    """Self-normalized resets: reset each unit that has not fired for unusually many batches.

    Equation: reset unit i when P(A_i >= a_i) <= η; a_i the batches since its pre-activation was
    last positive on any row (and any pixel of the map), A_i its times between firings. In practice:
    reset when a_i >= τ_i. At a reset the incoming weights are redrawn, the bias and the outgoing
    weights become 0, and so do the optimiser's moments of exactly these entries. Every
    `threshold_period` steps q_i, the (1 - η) quantile of the silences of one batch or more, gives
    τ_i <- q_i if q_i < τ_i, else 2 τ_i, and the record of silences is cleared.
    Paper: Farias and Jozefiak, "Self-Normalized Resets for Plasticity in Continual Learning", ICLR
    2025; histogram form.

    The paper's table has no defaults: η 0.01 is from the official constructor, its grid and the
    initial threshold (16 batches) are from the authors' transformer code. The official code updates
    τ every 16 tasks, which is more than the number of domains here, so the period is in steps. Time
    is measured in batches. A unit that was never silent keeps its τ (the official code would reset
    it after one silent batch). Weights are redrawn as PyTorch initialises them. The unit's scale
    and shift in a normalisation become 1 and 0, its running mean and variance 0 and 1. Resetting a
    silent unit does not change the outputs, unless a normalisation that mixes units follows the
    ReLU.

    SNR restores plasticity and does not protect the past: units used by old domains fall silent on
    a new one, so resets can increase forgetting. With large batches and convolutions some row
    nearly always fires and hardly any unit is reset; `resets` is logged. Frozen layers, and
    networks that list no hidden units, are not changed.
    """

    name = "snr"
    group = "regularization"
    reference = "Farias and Jozefiak, ICLR 2025, arXiv:2410.20098"
    weighs_rows = False
    grows = False
    uncompiled = "the firing of units is recorded inside the feature extractor"
    remembers = ("clocks",)
    Settings: ClassVar[type[MethodSettings]] = SNRSettings
    settings: SNRSettings

    def setup(self) -> None:
        """Start the clock of every unit."""
        settings = self.settings
        self.layers = [layer for layer in self.network.hidden_units() if resettable(layer)]
        start = (settings.initial_threshold, LONGEST_SILENCE, self.device)
        self.clocks = [Clocks(len(layer.writer.weight), *start) for layer in self.layers]

    def before_step(self, step: int, domain_step: int) -> None:
        """Periodically adapt the thresholds to the units' own past."""
        if step and step % self.settings.threshold_period == 0:
            for clocks in self.clocks:
                clocks.adapt(self.settings.rejection)

    def update(self, batch: Batch) -> Terms:
        """Take an ordinary step, then reset the overdue units, layer by layer from the input."""
        with firing(self.layers) as fired:
            terms = super().update(batch)
        terms["resets"] = torch.zeros((), dtype=torch.long, device=self.device)
        for index, (layer, clocks) in enumerate(zip(self.layers, self.clocks, strict=True)):
            overdue = clocks.tick(fired[index])
            restart(layer, overdue, self.opts, self.generator)
            terms["resets"] += overdue.sum()
        return terms


class Clocks:
    """Silence, threshold and histogram of silences since the last `adapt`, per unit of a layer."""

    def __init__(self, units: int, threshold: int, longest: int, device: torch.device) -> None:
        self.silence = torch.zeros(units, dtype=torch.long, device=device)
        self.threshold = torch.full((units,), threshold, device=device)
        self.ended = torch.zeros(units, longest + 1, dtype=torch.int32, device=device)

    def tick(self, fired: Tensor) -> Tensor:
        """Count a batch and return the overdue units, whose silence ends and starts again."""
        self._record(fired)
        self.silence.add_(1).masked_fill_(fired, 0)
        overdue = self.silence >= self.threshold
        self._record(overdue)
        self.silence.masked_fill_(overdue, 0)
        return overdue

    def _record(self, units: Tensor) -> None:
        length = self.silence.clamp_max(self.ended.shape[1] - 1)
        self.ended.scatter_add_(1, length[:, None], units[:, None].to(self.ended.dtype))

    def adapt(self, rejection: float) -> None:
        """Set τ to the (1 - η) quantile of recorded silences, or double it if that is not less."""
        counts = self.ended[:, 1:].cumsum(dim=1).double()
        total = counts[:, -1:]
        quantile = 1 + (counts >= (1 - rejection) * total - 1e-9 * total).long().argmax(dim=1)
        moved = torch.where(quantile < self.threshold, quantile, 2 * self.threshold)
        moved = moved.clamp(1, self.ended.shape[1] - 1)
        self.threshold.copy_(torch.where(total[:, 0] > 0, moved, self.threshold))
        self.ended.zero_()

    def state_dict(self) -> dict[str, Tensor]:
        """Silences, thresholds and histograms."""
        return dict(vars(self))

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore the state from `state_dict`."""
        for name, value in vars(self).items():
            value.copy_(state[name])


@contextmanager
def firing(layers: list[HiddenUnits]) -> Iterator[list[Tensor]]:
    """Record which units of each layer fire: positive anywhere in the batch before the ReLU."""
    fired = [torch.empty(0)] * len(layers)

    def record(index: int, axis: int, output: Tensor) -> None:
        fired[index] = (output.detach() > 0).movedim(axis, 0).flatten(1).any(dim=1)

    handles = []
    for index, layer in enumerate(layers):
        axis = -1 if isinstance(layer.writer, nn.Linear) else 1
        handle = layer.preactivation.register_forward_hook(
            lambda m, i, out, index=index, axis=axis: record(index, axis, out)
        )
        handles.append(handle)
    try:
        yield fired
    finally:
        for handle in handles:
            handle.remove()


@torch.no_grad()
def restart(
    layer: HiddenUnits, units: Tensor, optimizers: Sequence[Optimizer], generator: torch.Generator
) -> None:
    """Reset the units where `units` is true.

    Incoming weights are redrawn as PyTorch initialises them, bias and outgoing weights become 0,
    and a normalisation's entries get their initial values. The optimisers' moments of exactly these
    entries become 0; all other entries stay unchanged. Nothing waits for the device: numbers are
    drawn for all units, and written in place for the selected ones.
    """

    def overwrite(tensor: Tensor | None, entries: Tensor, value: Tensor | float) -> None:
        if tensor is None:
            return
        tensor.copy_(torch.where(entries, value, tensor))
        for optimizer in optimizers:
            for moment in optimizer.state.get(tensor, {}).values():
                if isinstance(moment, Tensor) and moment.shape == tensor.shape:
                    moment.copy_(torch.where(entries, 0.0, moment))

    weight = layer.writer.weight
    bound = 1 / math.sqrt(weight[0].numel())
    fresh = torch.empty_like(weight).uniform_(-bound, bound, generator=generator)
    overwrite(weight, units.view(-1, *[1] * (weight.ndim - 1)), fresh)
    overwrite(layer.writer.bias, units, 0.0)
    for name, value in {
        "weight": 1.0,
        "bias": 0.0,
        "running_mean": 0.0,
        "running_var": 1.0,
    }.items():
        overwrite(getattr(layer.normalisation, name, None), units, value)
    for reader in layer.readers:
        overwrite(reader.weight, outgoing(reader, units), 0.0)


def outgoing(reader: nn.Linear | nn.Conv2d, units: Tensor) -> Tensor:
    """Which entries of a reader's weight belong to these units.

    A linear layer after a flattened map has a block of several columns per channel; a grouped
    convolution numbers its inputs within each group.
    """
    linear = isinstance(reader, nn.Linear)
    inputs = reader.in_features if isinstance(reader, nn.Linear) else reader.in_channels
    groups = 1 if isinstance(reader, nn.Linear) else reader.groups
    columns = units.repeat_interleave(inputs // len(units)).view(groups, inputs // groups)
    entries = columns.repeat_interleave(len(reader.weight) // groups, dim=0)
    return entries if linear else entries[:, :, None, None]


def resettable(layer: HiddenUnits) -> bool:
    """Whether a layer's units can be reset: it is trained, and its readers see units apart."""
    units = len(layer.writer.weight)
    norm = getattr(layer.normalisation, "weight", None)
    inputs = [
        reader.in_features if isinstance(reader, nn.Linear) else reader.in_channels
        for reader in layer.readers
    ]
    trained = all(module.weight.requires_grad for module in (layer.writer, *layer.readers))
    fitting = all(count % units == 0 for count in inputs)
    return trained and fitting and (norm is None or len(norm) == units)
