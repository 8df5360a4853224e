"""TENT: at the target, move the normalisation layers towards certain predictions."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from ..data.inputs import Inputs
from ..networks.network import Network
from ..settings import setting
from .adaptation import (
    ONLINE,
    Adaptation,
    AdaptationSettings,
    batch_statistics,
    entropy,
    note_collapse,
    predict,
)

NORMALISATIONS = (
    nn.modules.batchnorm._BatchNorm,
    nn.GroupNorm,
    nn.LayerNorm,
    nn.modules.instancenorm._InstanceNorm,
)


class TENTSettings(AdaptationSettings):
    """The official repository's values for CIFAR-10-C; not searched."""

    adaptation_rate: float = setting(1e-3, ge=0, help="learning rate of Adam at the target")
    adaptation_batch: int = setting(200, ge=1, help="target rows a step")
    adapted: Literal["normalisation", "features", "all"] = setting(
        "normalisation",
        help="parameters that move: scale and shift of the normalisation layers, of all feature "
        "layers, or all",
    )


class TENT(Adaptation):
    """Minimise the entropy of the predictions on each target batch, in scale and shift of the
    normalisation layers alone.

    Equation: for each batch, z = h(x) is the prediction; then one Adam step on mean_i
    H(softmax(z_i)), H = -Σ_c p_c log p_c. BatchNorm normalises by the batch at hand.
    Paper: Wang, Shelhamer, Liu, Olshausen, Darrell, "Tent: Fully Test-Time Adaptation by Entropy
    Minimization", ICLR 2021.

    Online: each row is predicted once, by a model that adapted to the batches before. Readings:
    networks with GroupNorm or LayerNorm adapt the scale and shift of these, which have no batch
    statistics (an extension that is in use; the official code refuses); a network without
    normalisation layer predicts unadapted and the result says so (`adapted=features` or `all` moves
    other layers). Batches differ by one row at most, so the last one is not left with a single row,
    for which BatchNorm has no statistics; a lone row is normalised by the stored ones. Dropout
    stays off.
    """

    name = "tent"
    reference = "Wang et al., ICLR 2021, arXiv:2006.10726"
    measure = ONLINE
    Settings = TENTSettings
    settings: TENTSettings

    def adapt(self, network: Network, target: Inputs, generator: torch.Generator) -> Tensor:
        """One pass over the target."""
        parameters = self.parameters(network)
        if not parameters:
            self.notes.append(
                "not adapted: the network has no normalisation layer, so the predictions are the "
                "source model's"
            )
            return predict(network, target)
        network.eval().requires_grad_(False)
        for parameter in parameters:
            parameter.requires_grad_(True)
        optimizer = Adam(parameters, lr=self.settings.adaptation_rate, fused=True)
        parts = []
        for inputs in target.batches(self.settings.adaptation_batch):
            parts.append(self.step(network, optimizer, inputs))
        logits = torch.cat(parts)
        self.notes += note_collapse(logits)
        return logits

    def parameters(self, network: Network) -> list[nn.Parameter]:
        """What moves."""
        if self.settings.adapted != "normalisation":
            return list(
                (network if self.settings.adapted == "all" else network.features).parameters()
            )
        return [
            p
            for module in network.modules()
            if isinstance(module, NORMALISATIONS)
            for p in module.parameters(recurse=False)
        ]

    def step(self, network: Network, optimizer: Optimizer, inputs: Tensor) -> Tensor:
        """Logits of this batch, and what they teach."""
        with batch_statistics(network, len(inputs)):
            logits: Tensor = network(inputs)
        optimizer.zero_grad(set_to_none=True)
        entropy(logits).mean().backward()
        optimizer.step()
        return logits.detach().float()
