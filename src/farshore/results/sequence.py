"""What a few labels of a site say about its accuracy, valid whenever one stops labelling.

Rows are drawn with replacement: first a group b of rows, with the probability q_b, then one of its
rows. The groups have shares p_b of the rows, and w_b = p_b / q_b. To show that the accuracy is more
than m, one bets against it: a right answer in group b multiplies the capital by l_b + λ w_b, a
wrong one by l_b ≥ 0, with Σ q_b l_b = 1 - λ m. If the accuracy is m or less, the capital does not
grow on average whatever the accuracy of each group is, so it ever reaches 1 / risk at most with
this risk (Ville's inequality; Waudby-Smith and Ramdas, "Estimating Means of Bounded Random
Variables by Betting", 2023, have l_b = 1 - λ m). Weighing by w_b makes rows that were drawn more
often count less. The lower bound is the largest m such that it and all smaller ones are refuted;
the upper bound comes from the same bets on errors. Each bound is wrong with the risk at most.

The bets are the best ones if the accuracy of group b is f_b: for a given λ, the l_b with
f_b / (l_b + λ w_b) + (1 - f_b) / l_b equal for all groups. Beliefs f_b may be wrong, so the capital
is divided between bets for several of them, which differ by a shift of log(f / (1 - f)). Wrong
beliefs cost labels, never the validity.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import special

RISK = 0.05
GROUPS = 12
# Shifts of the beliefs, with the shares of the capital.
SHIFTS = np.array([-1.5, -0.75, 0.0, 0.75, 1.5])
STAKES = np.array([0.15, 0.2, 0.3, 0.2, 0.15])
# How much rows are drawn by their doubt, from not at all; the best of them is taken.
TILTS = (0.0, 0.35, 0.7, 0.9)
BETS = np.linspace(0.02, 0.98, 33)
GRID = np.round(np.arange(0.01, 1.0, 0.01), 2)


@dataclass(frozen=True)
class Picks:
    """How rows are drawn: the group of each row, and of the groups p_b, q_b and f_b."""

    group: np.ndarray
    shares: np.ndarray
    chances: np.ndarray
    beliefs: np.ndarray

    @classmethod
    def of(cls, confidence: np.ndarray, bar: float, groups: int = GROUPS) -> "Picks":
        """Groups of rows by confidence; drawn so that a bet against the bar should grow fastest."""
        order = np.argsort(confidence, kind="stable")
        group = np.empty(len(confidence), dtype=int)
        for number, rows in enumerate(np.array_split(order, min(groups, len(confidence)))):
            group[rows] = number
        counts = np.bincount(group)
        shares = counts / counts.sum()
        beliefs = np.clip(np.bincount(group, confidence) / counts, 0.02, 0.98)
        doubt = shares * np.sqrt(beliefs * (1 - beliefs))
        best, fastest = shares, -np.inf
        for tilt in TILTS:
            chances = (1 - tilt) * shares + tilt * doubt / doubt.sum()
            _, growth = _bets(shares, chances, beliefs[None], bar)
            if growth[0] > fastest + 1e-9:
                best, fastest = chances, float(growth[0])
        return cls(group, shares, best, beliefs)

    @cached_property
    def factors(self) -> tuple[np.ndarray, np.ndarray]:
        """[m, beliefs, group, wrong or right]: of bets on right answers, and of bets on errors."""

        def of(beliefs: np.ndarray) -> np.ndarray:
            shifted = special.expit(special.logit(beliefs) + SHIFTS[:, None])
            return np.stack([_bets(self.shares, self.chances, shifted, m)[0] for m in GRID])

        return of(self.beliefs), of(1 - self.beliefs)

    def draw(self, draws: np.random.Generator, count: int) -> np.ndarray:
        """The numbers of this many rows, with replacement."""
        chosen = draws.choice(len(self.shares), count, p=self.chances / self.chances.sum())
        order = np.argsort(self.group, kind="stable")
        sizes = np.bincount(self.group)
        starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        return order[starts[chosen] + (draws.random(count) * sizes[chosen]).astype(int)]


@dataclass(frozen=True)
class Bounds:
    """After each label: the lower and the upper bound of the accuracy."""

    low: np.ndarray
    high: np.ndarray


def bounds(
    design: Picks, rows: Sequence[int] | np.ndarray, right: np.ndarray, risk: float = RISK
) -> Bounds:
    """The bounds from the rows that were drawn, and whether the answer about each is right."""
    groups, correct = design.group[np.asarray(rows, dtype=int)], np.asarray(right, dtype=bool)
    rightly, wrongly = design.factors
    return Bounds(
        _lower(rightly, groups, correct, risk), 1 - _lower(wrongly, groups, ~correct, risk)
    )


def _lower(factors: np.ndarray, groups: np.ndarray, right: np.ndarray, risk: float) -> np.ndarray:
    """The lower bound of the share of right answers after each label."""
    low, refuted = np.zeros(len(groups)), np.ones(len(groups), dtype=bool)
    for m, of_bets in zip(GRID, np.log(factors), strict=True):
        logs = of_bets[:, groups, right.astype(int)].cumsum(axis=1)
        capital = special.logsumexp(logs, axis=0, b=STAKES[:, None])
        refuted &= np.maximum.accumulate(capital) >= -np.log(risk)
        if not refuted.any():
            break
        low[refuted] = m
    return low


def _bets(
    shares: np.ndarray, chances: np.ndarray, beliefs: np.ndarray, m: float
) -> tuple[np.ndarray, np.ndarray]:
    """The factors [beliefs, group, wrong or right] of the best bets, and their growth."""
    bet = (BETS / m)[:, None, None] * (shares / chances)  # λ w_b
    f, rest = beliefs[None], (1 - BETS)[:, None]  # rest: 1 - λ m
    least = np.full((len(BETS), len(beliefs)), 1e-6)
    most = np.full_like(least, 1e6)

    def wrong(price: np.ndarray) -> np.ndarray:
        a = price[..., None]
        half = a * bet - 1
        return np.asarray((np.sqrt(half**2 + 4 * a * (1 - f) * bet) - half) / (2 * a))

    for _ in range(50):
        price = np.sqrt(least * most)
        above = (wrong(price) * chances).sum(axis=-1) > rest
        least, most = np.where(above, price, least), np.where(above, most, price)
    lost = wrong(most)  # Σ q l is at most 1 - λ m
    won = lost + bet
    growth = (chances * (f * np.log(won) + (1 - f) * np.log(np.maximum(lost, 1e-300)))).sum(-1)
    best = growth.argmax(axis=0)
    places = np.arange(len(beliefs))
    return np.stack([lost[best, places], won[best, places]], axis=-1), growth[best, places]


def labels_needed(design: Picks, bar: float, risk: float = RISK) -> int | None:
    """About how many labels show that the accuracy is above the bar; None if it is not believed."""
    if float(design.shares @ design.beliefs) <= bar:
        return None
    _, growth = _bets(design.shares, design.chances, design.beliefs[None], bar)
    needed = -np.log(risk * STAKES.max()) / max(float(growth[0]), 1e-9)
    return int(np.ceil(needed)) if needed < 1e6 else None
