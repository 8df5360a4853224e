"""SI: a quadratic penalty on moving weights that reduced the loss on past domains."""

from typing import Any, ClassVar

import torch
from torch import Tensor

from ..base.forms import Maybe
from ..data.batch import Batch
from ..data.domain import Rows
from ..settings import MethodSettings, Uniform, setting
from .finetune import Finetune
from .gradient import flat, own_gradient, trainable, write_gradients
from .method import Terms


class SISettings(MethodSettings):
    """c 0.1, U(0.001, 0.1); ξ 0.1, U(0.001, 0.1): the paper's table."""

    penalty_weight: float = setting(
        0.1, Uniform(0.001, 0.1), ge=0, help="c, the weight of the penalty"
    )
    damping: float = setting(
        0.1, Uniform(0.001, 0.1), gt=0, help="ξ, bounds the importance of weights that hardly moved"
    )
    clip: float | None = setting(
        None,
        gt=0,
        help="clip entries of the gradient to [-clip, clip]; Mammoth: 1, the paper: none",
    )


class SI(Finetune):
    """Penalise changing a weight, the more its path reduced the loss on past domains.

    Equation: L_ERM(D_s) + c Σ_i Ω_i (θ_i - θ̃_i)², θ̃ the weights when the last domain ended.
    During a domain the path integral is ω_i += g_i (θ_i before the step - θ_i after it), with g the
    gradient of L_ERM only and the actual displacement, whatever caused it; at its end Ω_i <- max(0,
    Ω_i + ω_i / ((θ_i - θ̃_i)² + ξ)).
    Paper: Zenke, Poole, Ganguli, "Continual Learning Through Synaptic Intelligence", ICML 2017.

    c and ξ: the paper's table. Readings: no factor 1/2; Ω is clamped at 0 as in the official code,
    because with Adam ω may be negative and a negative Ω would push away from θ̃ (Mammoth does not
    clamp it); no clipping, `clip=1` is Mammoth's. Ω is a sum over domains and never decays: no
    domain can be removed from it, and many domains make the network rigid.
    """

    name = "si"
    group = "regularization"
    reference = "Zenke et al., ICML 2017, arXiv:1703.04200"
    weighs_rows = False
    grows = False
    Settings: ClassVar[type[MethodSettings]] = SISettings
    settings: SISettings
    # Between two domains θ̃ is the current weights and ω is 0.
    remembers = ("importance",)
    reduces_to = ("finetune", {"penalty_weight": 0})

    def setup(self) -> None:
        """Start without importances."""
        self.parameters = trainable(self.network)
        self.importance: Tensor | None = None

    def before_domain(self, domain: str) -> None:
        """Record θ̃, where the last domain ended; the path starts here."""
        self.anchor = self._position()
        self.path = torch.zeros_like(self.anchor)

    def _position(self) -> Tensor:
        return flat(parameter.detach() for parameter in self.parameters)

    def gradients(self, batch: Batch) -> Terms:
        """∇L_ERM, which the path uses, plus the penalty's closed-form gradient 2 c Ω (θ - θ̃)."""
        terms = super().gradients(batch)
        self.before = self._position()
        self.gradient = flat(own_gradient(parameter) for parameter in self.parameters)
        if self.importance is not None and self.settings.penalty_weight:
            moved = self.before - self.anchor
            terms["penalty"] = (self.importance * moved.square()).sum()
            penalty = 2 * self.settings.penalty_weight * self.importance * moved
            write_gradients(self.parameters, self.gradient + penalty)
        if self.settings.clip is not None:
            torch.nn.utils.clip_grad_value_(self.parameters, self.settings.clip)
        return terms

    def after_step(self, batch: Batch) -> None:
        """Add to ω how much this step reduced the loss, to first order."""
        self.path += self.gradient * (self.before - self._position())

    def after_domain(self, domain: str, rows: Rows) -> None:
        """Add the path of the finished domain to Ω."""
        gained = self.path / ((self._position() - self.anchor).square() + self.settings.damping)
        total = gained if self.importance is None else self.importance + gained
        self.importance = total.clamp_min(0)

    def state_form(self) -> Any:
        """Ω has an entry per trainable weight."""
        return {"importance": Maybe(flat(self.parameters).detach())}
