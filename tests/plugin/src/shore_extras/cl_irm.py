"""CL-IRM: the classifier is at rest in every domain."""

from torch import Tensor

from farshore.invariance import Invariance, Statistic
from farshore.methods import Tailored, TailoredSettings
from farshore.settings import Power, setting


class ScaleGradient(Invariance):
    """φ_e = d/dw CE(w · h(x), y) at w = 1; P = 1/s Σ_e φ_e².

    The derivative in closed form is the mean over rows of Σ_c p_c z_c - z_y.
    """

    def statistic(self, features: Tensor, logits: Tensor, labels: Tensor) -> Statistic:
        """The gradient of each domain's risk in a scale of the logits, [E]."""
        expected = (logits.softmax(dim=2) * logits).sum(dim=2)
        of_label = logits.gather(2, labels[:, :, None])[:, :, 0]
        return {"scale_gradient": (expected - of_label).mean(dim=1)}

    def penalty(self, statistics: Statistic) -> Tensor:
        """Not a spread over domains but a distance from rest."""
        return statistics["scale_gradient"].square().mean()


class CLIRMSettings(TailoredSettings):
    """λ 100 and 10^U(-1, 5), as in DomainBed."""

    penalty_weight: float = setting(
        100.0, Power(10, -1, 5), ge=0, help="λ, the weight of the squared gradients"
    )


class CLIRM(Tailored):
    """IRM over replayed domains.

    Equation: L = L_ERM^replay + λ · 1/s Σ_e (d/dw CE(w · h(x), y))² + β · L_align.
    Paper: Arjovsky et al., "Invariant Risk Minimization", 2019.
    """

    name = "cl-irm"
    reference = "Arjovsky et al., 2019, arXiv:1907.02893"
    reduces_to = ("er", {"penalty_weight": 0, "alignment_weight": 0})
    Settings = CLIRMSettings

    def make_invariance(self) -> ScaleGradient:
        """The notion."""
        return ScaleGradient()
