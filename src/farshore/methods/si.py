"""SI: weights that lowered the loss on past domains are held by springs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import torch
from torch import Tensor

from ..batch import Batch
from ..data.domain import Rows
from ..memory import Memory
from ..networks.network import Network
from ..settings import MethodSettings, Uniform, setting
from .finetune import Finetune
from .gradient import flat, own_gradient, trainable, write_gradients
from .method import MakeOptimizer, Terms


class SISettings(MethodSettings):
    """c 0.1, U(0.001, 0.1); ξ 0.1, U(0.001, 0.1): the paper's table."""

    penalty_weight: float = setting(
        0.1, Uniform(0.001, 0.1), ge=0, help="c, the weight of the springs"
    )
    damping: float = setting(
        0.1,
        Uniform(0.001, 0.1),
        gt=0,
        help="ξ, keeps weights that hardly moved from counting without bound",
    )
    clip: float | None = setting(
        None,
        gt=0,
        help="cut every entry of the gradient to [-clip, clip]; Mammoth has 1, the paper none",
    )


class SI(Finetune):
    """Penalise moving a weight by how much its way through the past domains lowered their loss.

    Equation: L_ERM(D_s) + c Σ_i Ω_i (θ_i - θ̃_i)², θ̃ the weights when the last domain ended.
    During a domain the path integral ω_i += g_i (θ_i before the step - θ_i after it), g the
    gradient of L_ERM alone and the real displacement, whatever made it; at its end Ω_i <- max(0,
    Ω_i + ω_i / ((θ_i - θ̃_i)² + ξ)).
    Paper: Zenke, Poole, Ganguli, "Continual Learning Through Synaptic Intelligence", ICML 2017.

    c and ξ: the paper's table. Readings: no factor 1/2; Ω is cut at 0 as in the official code,
    since under Adam ω may be negative and a negative Ω would push away from θ̃ (Mammoth does not
    cut); no clipping, `clip=1` is Mammoth's. Ω is a sum over
    domains and never decays: no domain can be taken out of it, and many domains make the network
    rigid.
    """

    name = "si"
    group = "regularization"
    reference = "Zenke et al., ICML 2017, arXiv:1703.04200"
    Settings: ClassVar[type[MethodSettings]] = SISettings
    settings: SISettings
    reduces_to = ("finetune", {"penalty_weight": 0})

    def attach(
        self,
        network: Network,
        memory: Memory | None,
        generator: torch.Generator,
        make: MakeOptimizer,
    ) -> None:
        """Nothing is important yet."""
        super().attach(network, memory, generator, make)
        self.parameters = trainable(network)
        self.importance: Tensor | None = None

    def before_domain(self, domain: str) -> None:
        """θ̃: training goes on where the last domain ended. The path begins here."""
        self.anchor = self._position()
        self.path = torch.zeros_like(self.anchor)

    def _position(self) -> Tensor:
        return flat(parameter.detach() for parameter in self.parameters)

    def gradients(self, batch: Batch) -> Terms:
        """∇L_ERM, which the path remembers, then the springs' closed-form gradient 2 c Ω (θ -
        θ̃) on top of it.
        """
        terms = super().gradients(batch)
        self.before = self._position()
        self.gradient = flat(own_gradient(parameter) for parameter in self.parameters)
        if self.importance is not None and self.settings.penalty_weight:
            moved = self.before - self.anchor
            terms["penalty"] = (self.importance * moved.square()).sum()
            spring = 2 * self.settings.penalty_weight * self.importance * moved
            write_gradients(self.parameters, self.gradient + spring)
        if self.settings.clip is not None:
            torch.nn.utils.clip_grad_value_(self.parameters, self.settings.clip)
        return terms

    def after_step(self, batch: Batch) -> None:
        """ω: what this step did for the loss, to first order."""
        self.path += self.gradient * (self.before - self._position())

    def after_domain(self, domain: str, rows: Rows) -> None:
        """Ω takes up the path of the finished domain."""
        gained = self.path / ((self._position() - self.anchor).square() + self.settings.damping)
        self.importance = (
            gained if self.importance is None else self.importance + gained
        ).clamp_min(0)

    def state_dict(self) -> dict[str, Any]:
        """Ω; between two domains θ̃ is where the network stands and ω is 0."""
        return {"importance": self.importance}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        importance = state["importance"]
        self.importance = (
            importance.to(self.parameters[0].device) if importance is not None else None
        )
