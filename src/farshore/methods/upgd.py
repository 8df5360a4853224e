"""UPGD: an optimiser that moves useful weights less and perturbs useless ones."""

from collections.abc import Callable, Iterable
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn
from torch.optim import Optimizer

from ..data.batch import Batch
from ..networks.network import Network
from ..settings import Choice, MethodSettings, Power, setting
from .finetune import Finetune
from .gradient import trainable
from .method import MakeOptimizer, Terms
from .optimization import plain


class UPGDSettings(MethodSettings):
    """Not in the paper's table, apart from the η that it gives all methods, 0.001. That is a rate
    for Adam: with it UPGD scores 48% on the sources' validation rows of rotated-digits, with 0.01
    87%. So η is the value tuned in the official repository on all four data sets; β, σ, k: the
    class in its README.
    """

    learning_rate: float = setting(
        0.01, Power(10, -4.5, -0.5), gt=0, help="η; plain descent needs a larger one than Adam"
    )
    utility_decay: float = setting(
        0.999, Choice((0.9, 0.99, 0.999, 0.9999)), ge=0, lt=1, help="β of the running utility"
    )
    noise: float = setting(
        0.001, Choice((0.001, 0.01, 0.1)), ge=0, help="σ of the noise added to the gradient"
    )
    gate_scale: float = setting(
        2.0,
        gt=0,
        help="k; with 2 a weight of utility 0 steps as in plain gradient descent; the official "
        "experiments use 1",
    )
    gated: Literal["step", "noise"] = setting(
        "step", help="utility gates gradient and noise (protecting), or only the noise"
    )
    normalisation: Literal["global", "local"] = setting(
        "global", help="utility relative to the network's maximum, or to the norm of its row"
    )
    maximum: Literal["corrected", "raw"] = setting(
        "corrected", help="maximum of bias-corrected utilities, or of raw ones (official code)"
    )


class UPGD(Finetune):
    """Gated descent: the step of each weight is scaled down by its utility.

    The utility is the increase of the loss if the weight were set to 0.

    Equation: u <- β u + (1 - β) (-g θ), û = u / (1 - β^t), s = sigmoid(û / max û) over all weights
    of the network; θ <- (1 - η wd) θ - k η (g + ξ) (1 - s), ξ ~ N(0, σ²) drawn for each weight and
    step.
    Paper: Elsayed and Mahmood, "Addressing Loss of Plasticity and Catastrophic Forgetting in
    Continual Learning", ICLR 2024: first-order utility, global, protecting, the variant of the
    official README.

    The paper's table has no defaults; the settings below state where each comes from. Readings: the
    official code divides the corrected û by the maximum of the uncorrected u, which freezes every
    weight of positive utility for hundreds of steps; here both are corrected, and `maximum=raw`
    selects the official version. If the maximum is not positive, s is 1/2 (the official code would
    flip signs or divide by 0).
    The gate is soft: the most useful weight still moves by 1 - sigmoid(1) = 27% of k η g. The run's
    `optimizer` does not apply, and `reset_optimizer=domain` does not reset the utilities, because
    they are the method's memory of the past and not moments. The method does not use domain
    boundaries; with shared labels and few long domains it is close to gradient descent with noise.
    """

    name = "upgd"
    group = "optimization"
    reference = "Elsayed and Mahmood, ICLR 2024, arXiv:2404.00781"
    weighs_rows = False
    grows = False
    Settings: ClassVar[type[MethodSettings]] = UPGDSettings
    settings: UPGDSettings

    def optimizers(self, network: Network, make: MakeOptimizer) -> list[Optimizer]:
        """Create the UPGD optimiser."""
        self.descent = plain(UtilityGatedDescent)(trainable(network), self.settings, self.generator)
        return [self.descent]

    def reset_optimizers(self) -> None:
        """Do nothing: the utilities are kept."""

    def update(self, batch: Batch) -> Terms:
        """Take a step; log `gate`, the mean of 1 - s."""
        return super().update(batch) | {"gate": self.descent.gate}


class UtilityGatedDescent(Optimizer):
    """The update of UPGD; parameters without gradient stay and do not count for the maximum."""

    # What it keeps per parameter, for the check of saved states.
    moments = ("steps", "utility")

    def __init__(
        self, parameters: Iterable[nn.Parameter], settings: UPGDSettings, generator: torch.Generator
    ) -> None:
        defaults = {"lr": settings.learning_rate, "weight_decay": settings.weight_decay}
        super().__init__(parameters, defaults)
        self.settings = settings
        self.generator = generator
        self.gate = torch.tensor(0.5)

    @torch.no_grad()
    def step(self, closure: Callable[[], float] | None = None) -> None:  # type: ignore[override]
        """Move every weight by its gated gradient and noise."""
        settings = self.settings
        moved = [
            (group, p) for group in self.param_groups for p in group["params"] if p.grad is not None
        ]
        if not moved:
            return
        corrected = [self._utility(p) for _, p in moved]
        raw = [self.state[p]["utility"] for _, p in moved]
        maximum_of = raw if settings.maximum == "raw" else corrected
        scaled = scaled_utilities(corrected, settings.normalisation, maximum_of=maximum_of)
        for (group, p), s in zip(moved, scaled, strict=True):
            noise = settings.noise * torch.randn(
                p.shape, generator=self.generator, device=p.device, dtype=p.dtype
            )
            whole = settings.gated == "step"
            change = (p.grad + noise) * (1 - s) if whole else p.grad + noise * (1 - s)
            p.mul_(1 - group["lr"] * group["weight_decay"])
            p.sub_(change, alpha=settings.gate_scale * group["lr"])
        passed = torch.stack([(1 - s).sum() for s in scaled]).sum()
        self.gate = passed / sum(s.numel() for s in scaled)

    def _utility(self, p: nn.Parameter) -> Tensor:
        """û, from the weight and the gradient before the step."""
        assert p.grad is not None
        decay = self.settings.utility_decay
        state: dict[str, Any] = self.state[p]
        if not state:
            state["steps"] = torch.zeros((), device=p.device, dtype=p.dtype)
            state["utility"] = torch.zeros_like(p)
        state["steps"] += 1
        state["utility"].mul_(decay).sub_(p.grad * p, alpha=1 - decay)
        return state["utility"] / (1 - decay ** state["steps"])


def scaled_utilities(
    utilities: list[Tensor], normalisation: Literal["global", "local"], maximum_of: list[Tensor]
) -> list[Tensor]:
    """The sigmoid of each weight's utility, relative to the maximum or to its row's norm."""
    if normalisation == "local":
        return [nn.functional.normalize(utility, dim=-1).sigmoid() for utility in utilities]
    maximum = torch.stack([utility.max() for utility in maximum_of]).max()
    usable = (maximum > 0) & maximum.isfinite()
    return [torch.where(usable, utility / maximum, 0.0).sigmoid() for utility in utilities]
