"""CL-MMD and Naive-CL-MMD: equal feature distributions in all domains, by kernel embeddings."""

from typing import Literal

from pydantic import PositiveFloat

from ..invariance.kernel_mean import KernelMean
from ..settings import setting
from .invariant import ConditionSettings, InvariantSettings
from .naive import Naive
from .tailored import Tailored, TailoredSettings


class KernelSettings(InvariantSettings):
    """λ 1, 10^U(-1, 1); 128 random Fourier features, not searched: the paper's table."""

    rff_features: int = setting(
        128, ge=2, le=65536, multiple_of=2, help="R, the number of random Fourier features"
    )
    rff_form: Literal["cos", "paired"] = setting(
        "cos", help="cos(wx + b), or cos and sin of half as many frequencies"
    )
    bandwidth: Literal["median"] | PositiveFloat = setting(
        "median", help="σ: the median distance at the end of the first domain, or a number"
    )

    def kernel_mean(self, condition: Literal["none", "label"] = "none") -> KernelMean:
        """Kernel mean with the chosen map."""
        form, bandwidth = self.rff_form, self.bandwidth
        return KernelMean(self.rff_features, form=form, bandwidth=bandwidth, condition=condition)


class CLMMDSettings(KernelSettings, ConditionSettings, TailoredSettings):
    """β 1, 10^U(-1, 1): the paper's table."""


class CLMMD(Tailored):
    """MMD over replayed domains: L = L_ERM^replay + λ · 1/s Σ_e ||μ^z_e - μ̄^z||² + β · 1/|E| Σ_e
    ||μ^z_e(B_e) - Φ_e||².

    Equation: μ^z_e = E_{x~B_e} z(f(x)), z random Fourier features of an RBF kernel; Φ_e the mean
    embedding stored when e ended.
    Paper: Li et al., CVPR 2018; Rahimi and Recht, 2007; the paper, table 1, row CL-MMD.

    Readings: the paper specifies neither the bandwidth nor the random draw. The map is drawn once;
    σ is the median feature distance at the end of the first domain and then fixed. Both are saved.
    `condition=label` compares the embeddings at equal labels, as in cl-coral: pairs of rows then
    count by a kernel of their labels.
    """

    name = "cl-mmd"
    reduces_to = ("er", {"penalty_weight": 0, "alignment_weight": 0})
    reference = "the paper, after Li et al., CVPR 2018"
    Settings = CLMMDSettings
    settings: CLMMDSettings

    def make_invariance(self) -> KernelMean:
        """Kernel mean with the chosen map."""
        return self.settings.kernel_mean(self.settings.condition)


class NaiveCLMMD(Naive):
    """MMD with stored embeddings: L = L_ERM(D_s) + λ · 1/(s-1) Σ_{e<s} ||μ^z_s - μ̄^z_e||².

    Equation: μ̄^z_e is the mean embedding over D_e at the end of domain e; the paper's appendix,
    Naive-MMD.
    Paper: Li et al., CVPR 2018. Draw and bandwidth as in cl-mmd.
    """

    name = "naive-cl-mmd"
    reduces_to = ("finetune", {"penalty_weight": 0})
    results_version = 2
    reference = "the paper, after Li et al., CVPR 2018"
    Settings = KernelSettings
    settings: KernelSettings

    def make_invariance(self) -> KernelMean:
        """Kernel mean with the chosen map."""
        return self.settings.kernel_mean()
