"""best: a network trained with replay and closed forms, averaged."""

from __future__ import annotations

from typing import ClassVar

from pydantic import field_validator

from ..entry import Entry
from ..settings import MethodSettings, setting

# Closed forms keep no rows, so a committee stays within the memory's budget.
CLOSED_FORMS = ("ridge", "slda", "ncm")


class BestSettings(MethodSettings):
    """Step size, weight decay and batch size apply to the member that is trained by steps. All its
    other settings, and those of the closed forms, keep their defaults.
    """

    members: str = setting(
        "er-kd+ridge+slda",
        help="joined by +: one method that is trained by steps, then ridge, slda or ncm",
    )

    @field_validator("members")
    @classmethod
    def _known(cls, value: str) -> str:
        names = [name.strip() for name in value.split("+")]
        check_members(names)
        return "+".join(names)


def check_members(names: list[str]) -> None:
    """Raise a ValueError unless these are one trained method and distinct closed forms."""
    from ..methods import METHODS

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
            f"{', '.join(CLOSED_FORMS)}, joined by +, such as er-kd+ridge"
        )


class Best(Entry):
    """Average the probabilities of replay with distillation and of two closed forms.

    Equation: p(c | x) = 1/K (softmax(h_1(x) / T)_c + Σ_k softmax(h_k(x))_c), with the logits h_k of
    the K members, the trained one first; the committee's logits are log p. Each member learns every
    domain as it would alone, with the same memory, steps and seed. T is one of 11 temperatures from
    0.5 to 16: the one at which the log loss of h_1 is lowest, measured on each domain's training
    rows before the domain is learned and averaged over domains. A network that is confident but
    wrong on domains that it has not seen thus has less influence. The weights are equal: nothing is
    fitted to choose them.
    Paper: none of its own. Averaging different learners is described in Dietterich, "Ensemble
    Methods in Machine Learning", MCS 2000; the members are `er-kd`, `ridge` and `slda`.

    The members fail differently: the network leans towards the newest domain, while the closed
    forms do not depend on the order but use only fixed features. Choosing one of them by its score
    on sources that it had not learned yet was tried and is worse than the average: a few sources
    cannot rank similar methods reliably, and a wrong choice costs more than an equal share. The
    closed forms are already calibrated on left-out sources.
    Readings: closed forms keep no rows, so the committee keeps as many rows as its trained member.
    `forget` is exact for the closed forms; the trained member keeps its weights, as it would alone.
    """

    name = "best"
    group = "committee"
    reference = "average of er-kd, ridge and slda"
    system = "committee"
    weighs_rows = True
    grows = True
    Settings: ClassVar[type[MethodSettings]] = BestSettings
    settings: BestSettings

    @classmethod
    def keeps_rows(cls) -> bool:
        """The trained member keeps rows of past domains."""
        return True
