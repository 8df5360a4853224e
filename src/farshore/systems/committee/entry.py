"""best: a network trained with replay and closed forms, averaged."""

from __future__ import annotations

from typing import ClassVar

from pydantic import field_validator

from ...entry import Entry
from ...settings import MethodSettings, setting

# Closed forms keep no rows, so a committee stays within the memory's budget.
CLOSED_FORMS = ("ridge", "slda", "ncm")


class BestSettings(MethodSettings):
    """Step size, weight decay and batch size apply to the member that is trained by steps. All its
    other settings, and those of the closed forms, keep their defaults.
    """

    members: str = setting(
        "cl-mix+ridge+slda",
        help="joined by +: one method that is trained by steps, then ridge, slda or ncm",
    )
    evenness: float = setting(
        0.1,
        ge=0,
        help="λ, how much even weights of the members count against a lower loss; large: the plain "
        "average",
    )

    @field_validator("members")
    @classmethod
    def _known(cls, value: str) -> str:
        names = [name.strip() for name in value.split("+")]
        check_members(names)
        return "+".join(names)


def check_members(names: list[str]) -> None:
    """Raise a ValueError unless these are one trained method and distinct closed forms."""
    from ...methods import METHODS

    trained = [
        name
        for name in METHODS.names()
        if METHODS.get(name).system == "gradient" and METHODS.get(name).kind == "continual"
    ]
    closed = names[1:]
    if (
        names[0] not in trained
        or not closed
        or len(set(closed)) < len(closed)
        or not set(closed) <= set(CLOSED_FORMS)
    ):
        raise ValueError(
            "a method that is trained by steps, then different names from "
            f"{', '.join(CLOSED_FORMS)}, joined by +, such as cl-mix+ridge"
        )


class Best(Entry):
    """Average the probabilities of a network with replay and of two closed forms, weighted by how
    well they did on domains before learning them.

    Equation: p(c | x) = w_1 softmax(h_1(x) / T)_c + Σ_k w_k softmax(h_k(x))_c, with the logits h_k
    of the members, the trained one first; the committee's logits are log p. (w, T) minimise
    Σ_e m_e L_e(w, T) / Σ_e m_e - λ H(w), where L_e is the log loss of p on the training rows of
    domain e, measured before e is learned, m_e the number of domains learned before e, and H the
    entropy of the weights. T is one of 11 temperatures from 0.5 to 16, and w_k a multiple of 1/12.
    Before the second domain nothing is known: the weights are equal and T is 1. Each member learns
    every domain as it would alone, with the same memory, steps and seed.
    Paper: none of its own. Averaging different learners is described in Dietterich, "Ensemble
    Methods in Machine Learning", MCS 2000, and weights by held-out loss in Wolpert, "Stacked
    Generalization", Neural Networks 5, 1992; here a domain that is not learned yet is the held-out
    set. The members are `cl-mix`, `ridge` and `slda`.

    The members fail differently: the network leans towards the newest domain, while the closed
    forms do not depend on the order but use only fixed features. Few domains cannot rank similar
    members reliably: choosing one of them loses to their plain average where they are close, and
    the plain average loses where one is far ahead of the others. λ lies between the two. Later
    measurements count more, because the members have then learned more.
    Readings: closed forms keep no rows, so the committee keeps as many rows as its trained member.
    `forget` is exact for the closed forms; the trained member keeps its weights, as it would alone.
    """

    name = "best"
    group = "committee"
    reference = "weighted average of cl-mix, ridge and slda"
    system = "committee"
    results_version = 3
    weighs_rows = True
    grows = True
    Settings: ClassVar[type[MethodSettings]] = BestSettings
    settings: BestSettings

    @classmethod
    def keeps_rows(cls) -> bool:
        """The trained member keeps rows of past domains."""
        return True
