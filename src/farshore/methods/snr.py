"""SNR: reset units that have been silent for longer than their own past makes likely."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

import torch
from torch import Tensor

from ..data.batch import Batch
from ..settings import Choice, MethodSettings, setting
from .finetune import Finetune
from .method import Terms
from .units import firing, resettable, restart

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
        self.clocks = [
            Clocks(
                len(layer.writer.weight),
                settings.initial_threshold,
                LONGEST_SILENCE,
                self.device,
            )
            for layer in self.layers
        ]

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
    """The current silence, the threshold and a histogram of ended silences, per unit of a layer.

    The histogram covers the silences that ended since the last `adapt`.
    """

    def __init__(self, units: int, threshold: int, longest: int, device: torch.device) -> None:
        self.silence = torch.zeros(units, dtype=torch.long, device=device)
        self.threshold = torch.full((units,), threshold, device=device)
        self.ended = torch.zeros(units, longest + 1, dtype=torch.int32, device=device)

    def tick(self, fired: Tensor) -> Tensor:
        """Count a batch and return which units are overdue.

        The silence of an overdue unit is recorded as ended and starts again from 0.
        """
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
        """Set τ to the (1 - η) quantile of the recorded silences, or double it if that is not less.

        Without recorded silences τ does not change.
        """
        counts = self.ended[:, 1:].cumsum(dim=1).double()
        total = counts[:, -1:]
        quantile = 1 + (counts >= (1 - rejection) * total - 1e-9 * total).long().argmax(dim=1)
        moved = torch.where(quantile < self.threshold, quantile, 2 * self.threshold).clamp(
            1, self.ended.shape[1] - 1
        )
        self.threshold.copy_(torch.where(total[:, 0] > 0, moved, self.threshold))
        self.ended.zero_()

    def state_dict(self) -> dict[str, Tensor]:
        """Silences, thresholds and histograms."""
        return {"silence": self.silence, "threshold": self.threshold, "ended": self.ended}

    def load_state_dict(self, state: Mapping[str, Tensor]) -> None:
        """Restore the state from `state_dict`."""
        self.silence.copy_(state["silence"])
        self.threshold.copy_(state["threshold"])
        self.ended.copy_(state["ended"])
