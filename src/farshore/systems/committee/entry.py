"""auto: networks with replay, closed forms and trees, weighed by domains before learning them."""

from typing import ClassVar

from pydantic import field_validator

from ...entry import Entry
from ...settings import MethodSettings, setting
from .members import read_members

NETWORKS, CLOSED = "er+er-kd(teacher=ema)", "ridge+slda"
# For features of a frozen network, images, and tables.
USUAL, OF_TABLES = f"{NETWORKS}+{CLOSED}", f"{NETWORKS}+{CLOSED}+trees"


class AutoSettings(MethodSettings):
    """Step size, weight decay and batch size apply to the members that are trained by steps, unless
    `members` sets them. The default of λ: docs/recommended.md.
    """

    members: str | None = setting(
        None,
        help="joined by +, with settings in parentheses: first a method that is trained by steps, "
        f"then others, ridge, slda, ncm or trees; by default {USUAL}, for tables with +trees",
    )
    evenness: float = setting(
        0.3,
        ge=0,
        help="λ, how much even weights of the members count against a lower loss; large: the plain "
        "average",
    )
    drop: bool = setting(True, help="whether a member that has weight 0 learns no further domains")

    @field_validator("members")
    @classmethod
    def _known(cls, value: str | None) -> str | None:
        return None if value is None else "+".join(each.text for each in read_members(value))

    def chosen(self, *, table: bool) -> str:
        """The members for a table, or for other inputs."""
        return self.members or (OF_TABLES if table else USUAL)


class BestSettings(MethodSettings):
    """Step size, weight decay and batch size apply to the member that is trained by steps. All its
    other settings, and those of the closed forms, keep their defaults.
    """

    members: str = setting(
        "cl-mix+ridge+slda",
        help="joined by +: a method that is trained by steps, then ridge, slda or ncm",
    )
    evenness: float = setting(
        0.1,
        ge=0,
        help="λ, how much even weights of the members count against a lower loss; large: the plain "
        "average",
    )

    _known = field_validator("members")(AutoSettings._known.__func__)  # type: ignore[attr-defined]

    @property
    def drop(self) -> bool:
        """Whether members are dropped."""
        return False

    def chosen(self, *, table: bool) -> str:
        """The members, whatever the inputs are."""
        return self.members


class Auto(Entry):
    """Average the probabilities of networks with replay, of closed forms and, for tables, of trees;
    each weighs as much as it did well on domains before learning them, far ones above all.

    Equation: p(c | x) = Σ_k w_k softmax(h_k(x) / T_k)_c, with the logits h_k of the members; the
    committee's logits are log p. T_k = 1 for the closed forms, which are calibrated, and T for all
    others. (w, T) minimise Σ_e c_e L_e(w, T) / Σ_e c_e - λ H(w), where L_e is the log loss of p on
    training rows of domain e, measured before e is learned, and H the entropy of the weights. Every
    row counts the same, or every class where the metric says so (balanced accuracy, macro F1). c_e
    = m_e d_e with the number m_e of domains learned before e, and their distance: d_e = √2 Φ⁻¹(A),
    A the area under the ROC curve of a classifier that tells rows of e from those in the memory. T
    is one of 11 temperatures from 0.5 to 16, and w_k a multiple of 1/12. Before the second domain
    nothing is known: the weights are equal and T is 1. With `drop`, a member other than the first
    whose weight is 0 after three measured domains learns no more of them.
    Of numbers the prediction is Σ_k w_k z_k, without slda, and L_e is the Gaussian log loss log σ +
    (y - Σ_k w_k z_k)² / 2 σ², with the deviation σ = T / 8 in units of the first site's.
    Paper: none of its own. Averaging different learners is described in Dietterich, "Ensemble
    Methods in Machine Learning", MCS 2000, weights by held-out loss in Wolpert, "Stacked
    Generalization", Neural Networks 5, 1992; here a domain that is not learned yet is the held-out
    set. Slow teacher: CLS-ER, see `er-kd`.

    The members fail differently: networks lean towards the newest domain, closed forms do not
    depend on the order but use only fixed features, trees see the kept rows alone. Few domains
    cannot rank similar members reliably: choosing one loses to their plain average where they are
    close, and the plain average loses where one is far ahead. λ lies between the two. Later
    measurements count more, because the members have learned more by then, and far ones because a
    target is often farther than any source.
    Readings: the members keep the rows that the first one keeps, so there are no more of them than
    `memory` allows. The loss is measured on at most 1,000 rows of a domain, and the losses of the
    newest 64 domains are kept. Each member learns every domain as it would alone; only trees get
    the rows of the first member. `forget` is exact for the closed forms; the others keep what they
    learned, as they would alone.
    """

    name = "auto"
    needs_classes = False
    group = "committee"
    reference = "weighted average of er, er-kd, ridge, slda and trees"
    system = "committee"
    weighs_rows = True
    grows = True
    Settings: ClassVar[type[MethodSettings]] = AutoSettings
    settings: AutoSettings | BestSettings
    # Whether the loss follows the metric, and far domains count more.
    weighs_domains: ClassVar[bool] = True

    @classmethod
    def keeps_rows(cls) -> bool:
        """The trained members keep rows of past domains."""
        return True


class Best(Auto):
    """The committee that `auto` replaced: a network with replay and two closed forms.

    Equation: that of `auto` with other members, c_e = m_e and the plain log loss; T is the
    temperature of the network.
    Paper: none of its own, see `auto`.

    It stays for models and experiments that name it. The members are `cl-mix`, `ridge` and `slda`.
    Readings: those of `auto`; all training rows of a domain are measured, and nobody is dropped.
    """

    name = "best"
    needs_classes = True
    reference = "weighted average of cl-mix, ridge and slda"
    results_version = 4
    Settings: ClassVar[type[MethodSettings]] = BestSettings
    settings: BestSettings
    weighs_domains: ClassVar[bool] = False
