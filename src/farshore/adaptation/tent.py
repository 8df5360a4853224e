"""TENT: adapt the normalisation layers to minimise the entropy of target predictions."""

from typing import Literal

import torch
from torch import Tensor, nn
from torch.optim import Adam, Optimizer

from ..data.inputs import Inputs
from ..networks.network import Network
from ..settings import setting
from . import adaptation

NORMALISATIONS = (
    *(nn.modules.batchnorm._BatchNorm, nn.modules.instancenorm._InstanceNorm),
    *(nn.GroupNorm, nn.LayerNorm),
)


class TENTSettings(adaptation.AdaptationSettings):
    """The official repository's values for CIFAR-10-C; not searched."""

    adaptation_rate: float = setting(1e-3, ge=0, help="learning rate of Adam at the target")
    adaptation_batch: int = setting(200, ge=1, help="target rows per step")
    adapted: Literal["normalisation", "features", "all"] = setting(
        "normalisation",
        help="trained parameters: scale and shift of the normalisation layers, all feature layers, "
        "or all layers",
    )


class TENT(adaptation.Adaptation):
    """Minimise the prediction entropy on each target batch, over the normalisation layers only.

    Equation: for each batch, z = h(x) is the prediction; then one Adam step on mean_i
    H(softmax(z_i)), H = -Σ_c p_c log p_c, over the scale and shift of the normalisation layers.
    BatchNorm normalises by the current batch.
    Paper: Wang, Shelhamer, Liu, Olshausen, Darrell, "Tent: Fully Test-Time Adaptation by Entropy
    Minimization", ICLR 2021.

    Online: each row is predicted once, by a model adapted to the earlier batches. Readings: in
    networks with GroupNorm or LayerNorm, which have no batch statistics, the scale and shift of
    these layers adapt (a common extension; the official code raises an error). A network without
    normalisation layers is not adapted, and a note reports it (`adapted=features` or `all` adapts
    other layers). Batch sizes differ by at most one row, so that the last batch is not a single
    row, for which BatchNorm has no statistics; a single row is normalised by the stored statistics.
    Dropout is off.
    """

    name = "tent"
    reference = "Wang et al., ICLR 2021, arXiv:2006.10726"
    measure = adaptation.ONLINE
    Settings = TENTSettings
    settings: TENTSettings

    def adapt(self, network: Network, target: Inputs, generator: torch.Generator) -> Tensor:
        """Adapt in one pass over the target."""
        parameters = self.parameters(network)
        if not parameters:
            self.notes.append(
                "not adapted: the network has no normalisation layer, so the predictions are the "
                "source model's"
            )
            return adaptation.predict(network, target)
        network.eval().requires_grad_(False)
        for parameter in parameters:
            parameter.requires_grad_(True)
        optimizer = Adam(parameters, lr=self.settings.adaptation_rate, fused=True)
        batches = target.batches(self.settings.adaptation_batch)
        logits = torch.cat([self.step(network, optimizer, inputs) for inputs in batches])
        self.notes += adaptation.note_collapse(logits)
        return logits

    def parameters(self, network: Network) -> list[nn.Parameter]:
        """The parameters to adapt."""
        if self.settings.adapted != "normalisation":
            adapted = network if self.settings.adapted == "all" else network.features
            return list(adapted.parameters())
        layers = [each for each in network.modules() if isinstance(each, NORMALISATIONS)]
        return [p for layer in layers for p in layer.parameters(recurse=False)]

    def step(self, network: Network, optimizer: Optimizer, inputs: Tensor) -> Tensor:
        """Predict this batch, then take one step on the entropy of the predictions."""
        with adaptation.batch_statistics(network, len(inputs)):
            logits: Tensor = network(inputs)
        optimizer.zero_grad(set_to_none=True)
        adaptation.entropy(logits).mean().backward()
        optimizer.step()
        return logits.detach().float()
