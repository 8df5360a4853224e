"""STAR: keep predictions on remembered rows stable under perturbations of the weights."""

from collections.abc import Mapping
from dataclasses import replace
from typing import ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.func import functional_call

from ..data.batch import Batch, Draw
from ..settings import MethodSettings, Uniform, setting
from .method import Method, Replay, Terms

# Avoids 0/0; not smaller, because the square of a smaller slope is 0 in float32.
SMALLEST = 1e-20


class STARSettings(MethodSettings):
    """γ 0.01, U(0.01, 0.05); λ 0.01, U(0.01, 0.05): the paper's table. One ascent step: STAR's
    code. α, β: its tuned DER++.
    """

    gamma: float = setting(
        0.01, Uniform(0.01, 0.05), ge=0, help="γ, perturbation of weight matrices relative to norms"
    )
    stability_weight: float = setting(
        0.01, Uniform(0.01, 0.05), ge=0, help="λ, the weight of the divergence under perturbation"
    )
    ascent_steps: int = setting(1, ge=1, help="K, gradient steps to the worst perturbation")
    noise: float = setting(
        1e-3, ge=0, help="noise from which the ascent starts, relative to each weight matrix's norm"
    )
    host: Literal["er", "der++"] = setting("er", help="the method that STAR is added to")
    logit_weight: float = setting(
        0.2, ge=0, help="α of the host der++: squared distance to the stored logits"
    )
    replay_weight: float = setting(
        0.15, ge=0, help="β of the host der++: cross-entropy on replayed rows"
    )


class STAR(Method):
    """Make predictions on remembered rows robust to the worst weight change in a relative radius.

    Equation: minimise L_host(θ) + λ · KL(p_θ(x) || p_{θ+δ}(x)), mean over the replayed rows that
    p_θ classifies correctly (at least two); p_θ and δ are constants. δ_l = γ ||θ_l|| g_l / ||g_l||
    for each parameter l with two or more axes, 0 for the others (biases, normalisations); g is the
    gradient of the KL at θ plus small noise; with K steps δ is the sum of K such parts of length
    γ/K. Here the network is evaluated at θ + δ as a function of θ, so the weights themselves never
    change.
    Paper: Eskandar, Imtiaz, Hill, Wang, Dy, "STAR: Stability-Inducing Weight Perturbation for
    Continual Learning", ICLR 2025.

    Readings. The host is ER on a reservoir, with one mean over current and replayed rows (ER and
    DER++ are the hosts that the authors mark as suitable for domains; `host="der++"` computes its
    distance and its cross-entropy on one draw). The official initial noise is 1e-20 of the norm,
    which float32 rounds to nothing, so its direction is rounding error; here it is 1e-3, and it is
    not part of δ. BatchNorm's running statistics are not updated in the perturbed passes. In the
    first domain STAR is plain ERM.
    """

    name = "star"
    group = "replay"
    results_version = 2
    reference = "Eskandar et al., ICLR 2025, arXiv:2503.01595"
    uncompiled = "the feature extractor also runs with perturbed weights"
    Settings: ClassVar[type[MethodSettings]] = STARSettings
    settings: STARSettings
    replay = Replay(
        memory="reservoir", joined=False, draws=("replay", "stability"), stores=("logits",)
    )

    def terms(self, batch: Batch) -> Terms:
        """The host's terms, and `stability` on a separate draw."""
        if not batch.draws:
            _, logits = self.forward(batch)
            return {"erm": self.risk(logits, batch.labels)}
        terms = self._host(batch, batch.draws["replay"])
        if self.settings.stability_weight > 0:
            terms["stability"] = self._stability(batch.draws["stability"])
        return terms

    def weights(self) -> Mapping[str, float | Tensor]:
        """λ for the stability; α and β for the host's terms."""
        settings = self.settings
        return {
            "stability": settings.stability_weight,
            "distillation": settings.logit_weight,
            "replay": settings.replay_weight,
        }

    def _host(self, batch: Batch, draw: Draw) -> Terms:
        labels = torch.cat([batch.labels, draw.labels])
        joined = replace(batch, inputs=torch.cat([batch.inputs, draw.inputs]), labels=labels)
        _, logits = self.forward(joined)
        batch.outputs = joined.outputs
        if self.settings.host == "er":
            return {"erm": self.risk(logits, labels)}
        current, replayed = logits[: batch.rows], logits[batch.rows :]
        return {
            "erm": self.risk(current, batch.labels),
            "distillation": nn.functional.mse_loss(replayed, draw.stored["logits"]),
            "replay": self.risk(replayed, draw.labels),
        }

    def _stability(self, draw: Draw) -> Tensor:
        network = self.network
        # Batch statistics as in the other passes, unless the run froze them.
        with network.batchnorm(
            "no_update" if any(layer.training for layer in network.batchnorms()) else "frozen"
        ):
            with torch.no_grad():
                anchor = network(draw.inputs).log_softmax(dim=1)
            correct = anchor.argmax(dim=1) == draw.labels
            delta = self._perturbation(draw.inputs, anchor, correct)
            perturbed = {name: network.get_parameter(name) + part for name, part in delta.items()}
            return divergence(functional_call(network, perturbed, (draw.inputs,)), anchor, correct)

    def _perturbation(self, inputs: Tensor, anchor: Tensor, correct: Tensor) -> dict[str, Tensor]:
        """δ per weight matrix: K normalised ascent steps on the divergence, from noisy weights."""
        parameters = self.network.named_parameters()
        weights = {name: weight.detach() for name, weight in parameters if weight.ndim >= 2}
        norms = {name: weight.norm() for name, weight in weights.items()}
        noisy = {of: weight + self._noise(weight, norms[of]) for of, weight in weights.items()}
        delta = {name: torch.zeros_like(weight) for name, weight in weights.items()}
        for _ in range(self.settings.ascent_steps):
            moved = {name: (noisy[name] + delta[name]).requires_grad_() for name in weights}
            loss = divergence(functional_call(self.network, moved, (inputs,)), anchor, correct)
            slopes = torch.autograd.grad(loss, list(moved.values()), materialize_grads=True)
            for (name, part), slope in zip(delta.items(), slopes, strict=True):
                length = self.settings.gamma / self.settings.ascent_steps * norms[name]
                part += length * slope / (slope.norm() + SMALLEST)
        return delta

    def _noise(self, weight: Tensor, norm: Tensor) -> Tensor:
        drawn = torch.randn(
            weight.shape, generator=self.generator, device=weight.device, dtype=weight.dtype
        )
        return (self.settings.noise / weight.numel() ** 0.5) * norm * drawn


def divergence(logits: Tensor, anchor: Tensor, correct: Tensor) -> Tensor:
    """Mean KL(anchor || softmax(logits)) over `correct` rows; 0 with fewer than two."""
    now = logits.log_softmax(dim=1)
    per_row = nn.functional.kl_div(now, anchor, reduction="none", log_target=True).sum(dim=1)
    count = correct.sum()
    return torch.where(correct & (count >= 2), per_row, 0.0).sum() / count.clamp(min=1)
