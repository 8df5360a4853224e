"""CL-Mix: several notions of invariance in one tailored method."""

from collections.abc import Callable
from dataclasses import replace

from pydantic import field_validator

from ..invariance.feature_moments import FeatureMoments
from ..invariance.gradient_variance import GradientVariance
from ..invariance.invariance import Invariance
from ..invariance.kernel_mean import KernelMean
from ..invariance.mixture import Mixture
from ..invariance.risk import Risk
from ..settings import Power, Uniform, setting
from .invariant import AnnealedSettings, BatchStatisticSettings
from .tailored import Tailored, TailoredSettings


class CLMixSettings(AnnealedSettings, BatchStatisticSettings, TailoredSettings):
    """Each notion's λ and its range are those of its own method; β 1, 10^U(-1, 1), as in cl-coral;
    α 0.5, U(0.1, 1), as in er-kd.
    """

    notions: str = setting(
        "fishr+coral", help="notions of invariance, joined by +: vrex, fishr, coral, mmd"
    )
    penalty_weight: float = setting(1.0, ge=0, help="a common factor of the notions' weights")
    vrex_weight: float = setting(10.0, Power(10, -1, 5), ge=0, help="λ of the risks, as in cl-vrex")
    fishr_weight: float = setting(
        1000.0, Power(10, 1, 4), ge=0, help="λ of the gradient variances, as in cl-fishr"
    )
    coral_weight: float = setting(
        1.0, Power(10, -1, 1), ge=0, help="λ of the feature moments, as in cl-coral"
    )
    mmd_weight: float = setting(
        1.0, Power(10, -1, 1), ge=0, help="λ of the kernel means, as in cl-mmd"
    )
    distillation_weight: float = setting(
        0.5, Uniform(0.1, 1.0), ge=0, help="α, the weight of the distance to the stored logits"
    )

    @field_validator("notions")
    @classmethod
    def _known(cls, value: str) -> str:
        names = [name.strip() for name in value.split("+")]
        if len(set(names)) < len(names) or not set(names) <= set(NOTIONS):
            why = f"different names out of {', '.join(NOTIONS)}, joined by +, such as fishr+coral"
            raise ValueError(why)
        return "+".join(names)


NOTIONS: dict[str, Callable[[CLMixSettings], Invariance]] = {
    "vrex": lambda settings: Risk(),
    "fishr": lambda settings: GradientVariance(settings.statistic_reduction),
    "coral": lambda settings: FeatureMoments(settings.statistic_reduction),
    "mmd": lambda settings: KernelMean(),
}


class CLMix(Tailored):
    """Several notions over replayed domains, with distillation: L = L_ERM^replay + Σ_k λ_k P_k + β
    Σ_k L_align,k + α · L_distil.

    Equation: P_k and L_align,k are those of cl-vrex, cl-fishr, cl-coral and cl-mmd, for the notions
    k in `notions`; L_distil = 1/|E| Σ_e E_(x,z)~B_e mean_c (h(x)_c - z_c)², as in er-kd.
    Paper: the paper, table 1, for each notion; Buzzega et al., NeurIPS 2020, for the distillation.
    The combination is ours.

    Readings: the notions have the defaults of their own methods and their own priors, all computed
    with the same model. β is common to all. All penalties are annealed together, with λ = 0 before
    `anneal_steps`, as in cl-fishr, even for vrex. With vrex, the alignment itself is a
    distillation. With one notion and `distillation_weight=0` it is that notion's method, bit for
    bit, if that method is annealed in the same way.
    """

    name = "cl-mix"
    group = "mixture"
    reduces_to = (
        "er",
        {"penalty_weight": 0, "alignment_weight": 0, "distillation_weight": 0, "anneal_steps": 0},
    )
    reference = "the paper, and Buzzega et al., NeurIPS 2020"
    Settings = CLMixSettings
    settings: CLMixSettings
    replay = replace(
        Tailored.replay, least_rows=max(GradientVariance.least_rows, FeatureMoments.least_rows)
    )

    def make_invariance(self) -> Mixture:
        """The chosen notions with their weights."""
        names = self.settings.notions.split("+")
        return Mixture(
            {name: NOTIONS[name](self.settings) for name in names},
            {name: getattr(self.settings, f"{name}_weight") for name in names},
        )
