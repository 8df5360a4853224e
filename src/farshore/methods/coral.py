"""CL-CORAL and Naive-CL-CORAL: equal means and covariances of the features in all domains."""

from dataclasses import replace
from typing import Literal

from pydantic import ValidationInfo, field_validator

from ..invariance.feature_moments import FeatureMoments
from ..settings import setting
from .invariant import BatchStatisticSettings, ConditionSettings
from .naive import Naive
from .tailored import Tailored, TailoredSettings


class NaiveCLCORALSettings(BatchStatisticSettings):
    """λ 1, 10^U(-1, 1): the paper's table."""

    prior_storage: Literal["float32", "float16", "diagonal"] = setting(  # type: ignore[assignment]
        "float32",
        help="data type of the stored priors; above 64 MB in all it is float16; diagonal: "
        "variances instead of full covariances",
    )


class CLCORALSettings(NaiveCLCORALSettings, ConditionSettings, TailoredSettings):
    """λ 1, 10^U(-1, 1); β 1, 10^U(-1, 1): the paper's table."""

    scope: Literal["batch", "domain"] = setting(
        "batch", help="batch: moments of one batch; domain: a running state per domain"
    )
    scope_decay: float = setting(
        0.9, gt=0, lt=1, help="decay per batch of a domain's earlier batches, with scope=domain"
    )

    @field_validator("scope")
    @classmethod
    def _known_labels(cls, value: str, info: ValidationInfo) -> str:
        if value == "domain" and info.data.get("condition") == "label":
            raise ValueError("batch with condition=label: running moments have no labels")
        return value


class CLCORAL(Tailored):
    """CORAL over replayed domains: L = L_ERM^replay + λ · P + β · L_align.

    Equation: P = 1/s Σ_e (||μ_e - μ̄||² + ||Σ_e - Σ̄||²_F) over feature means and covariances of
    the same update; L_align = 1/|E| Σ_e (||μ_e(B_e) - μ_e||² + ||Σ_e(B_e) - Σ_e||²_F) against the
    stored moments.
    Paper: Sun and Saenko, 2016 (Deep CORAL); the paper, table 1, row CL-CORAL.

    Readings: squared norms are means over entries, as in DomainBed, whose λ the paper uses
    (`statistic_reduction=sum` is the printed form, 10^4 times larger). With λ = 1 on rotated-mnist,
    the gradient of P is then below 1% of that of L_ERM, and with sums more than ten times as large:
    neither form is balanced there over the paper's whole range of λ. Covariances are unbiased.
    Priors are means of batch statistics ("batch-level" in the table); `prior_level=domain` gives
    exact moments.

    `condition=label` compares domains at equal labels, where other frequencies of labels do not
    count: P = Σ_e,a m_ea (||μ_ea - μ̄_a||² + ||Σ_ea - Σ̄_a||²_F) / Σ m_ea, with moments of the rows
    weighted by the kernel of their label and the label a, m_ea the mean weight, and μ̄_a = Σ_e m_ea
    μ_ea / Σ_e m_ea. The labels a are 2h apart, from -2 to 2 deviations of the first site, and those
    of each output count on their own; for classes the kernel is 1 within a class, 0 otherwise. The
    alignment compares a domain with itself and stays as it is. With h to infinity P is the usual.
    """

    name = "cl-coral"
    reduces_to = ("er", {"penalty_weight": 0, "alignment_weight": 0})
    reference = "the paper, after Sun and Saenko, 2016"
    Settings = CLCORALSettings
    settings: CLCORALSettings
    replay = replace(Tailored.replay, least_rows=FeatureMoments.least_rows)

    def make_invariance(self) -> FeatureMoments:
        """Feature moments over a batch or over a domain's running state."""
        settings = self.settings
        reduction, diagonal = settings.statistic_reduction, settings.prior_storage == "diagonal"
        scope, decay, condition = settings.scope, settings.scope_decay, settings.condition
        return FeatureMoments(
            reduction, scope=scope, decay=decay, diagonal=diagonal, condition=condition
        )


class NaiveCLCORAL(Naive):
    """CORAL with stored moments: L = L_ERM(D_s) + λ · 1/(s-1) Σ_{e<s} (||μ_s - μ̄_e||² + ||Σ_s -
    Σ̄_e||²_F).

    Equation: μ̄_e, Σ̄_e are the moments stored at the end of domain e; the paper's appendix,
    Naive-CORAL.
    Paper: Sun and Saenko, 2016. λ 1, 10^U(-1, 1): the paper's table.
    """

    name = "naive-cl-coral"
    reduces_to = ("finetune", {"penalty_weight": 0})
    results_version = 2
    reference = "the paper, after Sun and Saenko, 2016"
    Settings = NaiveCLCORALSettings
    settings: NaiveCLCORALSettings

    def make_invariance(self) -> FeatureMoments:
        """Feature moments of a batch."""
        return FeatureMoments(
            self.settings.statistic_reduction, diagonal=self.settings.prior_storage == "diagonal"
        )
