"""Mixture: several notions of invariance at once."""

from collections.abc import Callable, Mapping
from typing import Any

import torch
from torch import Tensor

from .invariance import Invariance, Statistic, sum_of


class Mixture(Invariance):
    """φ_e = (φ_e of every notion); P = Σ_k w_k P_k, with a weight per notion; alignment Σ_k d_k.

    Entries of statistics, priors and fitted states are those of the notions, under their names. All
    notions have scope `batch`.
    """

    def __init__(self, notions: Mapping[str, Invariance], weights: Mapping[str, float]) -> None:
        super().__init__()
        self._notions = dict(notions)
        self.weights = dict(weights)

    def notions(self) -> dict[str, Invariance]:
        """The notions by name."""
        return self._notions

    def statistic(self, features: Tensor, logits: Tensor, labels: Tensor) -> Statistic:
        """The statistics of all notions, each entry under `notion.entry`."""
        return self._each(lambda _, notion: notion.statistic(features, logits, labels))

    def penalty(self, statistics: Statistic) -> Tensor:
        """Σ_k w_k P_k; a notion of weight 0 is left out."""
        parts = self._divided(statistics)
        used = {name: of for name, of in self._notions.items() if self.weights[name]}
        terms = [self.weights[name] * of.penalty(parts[name]) for name, of in used.items()]
        return sum_of(terms) if terms else next(iter(statistics.values())).new_zeros(())

    def deviation(self, statistic: Statistic, prior: Statistic) -> Tensor:
        """Σ_k w_k d_k(φ_s, Φ_e), [E]."""
        now, then = self._divided(statistic), self._divided(prior)
        return sum_of(
            self.weights[name] * notion.deviation(now[name], then[name])
            for name, notion in self._notions.items()
        )

    def kept(self, statistic: Statistic) -> Statistic:
        """What each notion stores as its prior."""
        parts = self._divided(statistic)
        return self._each(lambda name, notion: notion.kept(parts[name]))

    def grown(self, statistic: Statistic, before: int, after: int) -> Statistic:
        """The stored statistics of the notions for additional classes."""
        parts = self._divided(statistic)
        return self._each(lambda name, notion: notion.grown(parts[name], before, after))

    def alignment(
        self, statistic: Statistic, prior: Statistic, logits: Tensor, stored: Mapping[str, Tensor]
    ) -> Tensor:
        """Σ_k of the notions' own alignments, [E]."""
        now, then = self._divided(statistic), self._divided(prior)
        return sum_of(
            notion.alignment(now[name], then[name], logits, stored)
            for name, notion in self._notions.items()
        )

    def fit(self, features: Tensor, generator: torch.Generator) -> None:
        """Fit every notion."""
        for notion in self._notions.values():
            notion.fit(features, generator)

    def fitted_form(self, width: int) -> Any:
        """The forms of the notions that have a fitted state."""
        forms = {name: notion.fitted_form(width) for name, notion in self._notions.items()}
        return {name: form for name, form in forms.items() if form}

    def state_dict(self) -> dict[str, Any]:
        """The fitted states of the notions that have one."""
        states = {name: notion.state_dict() for name, notion in self._notions.items()}
        return {name: state for name, state in states.items() if state}

    def load_state_dict(self, state: Mapping[str, Any], device: torch.device) -> None:
        """Restore the state from `state_dict`."""
        for name, fitted in state.items():
            self._notions[name].load_state_dict(fitted, device)

    def _each(self, of: Callable[[str, Invariance], Statistic]) -> Statistic:
        return self.joined({name: of(name, notion) for name, notion in self._notions.items()})

    def _divided(self, statistic: Statistic) -> dict[str, Statistic]:
        """Divide entries called `notion.entry` by notion."""
        parts: dict[str, Statistic] = {name: {} for name in self._notions}
        for entry, value in statistic.items():
            name, _, own = entry.partition(".")
            parts[name][own] = value
        return parts
