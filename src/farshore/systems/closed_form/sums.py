"""Sums of one domain, from which every closed-form head is computed.

They take the place of rows: once a domain is summed, none of its rows is kept. Domains are added up
in the order of their names, whatever the order in which they were learned, so that even the
rounding does not depend on it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import one_hot, pad

# What is summed per domain: the classes' counts; also the features per class and their squared
# norms; also the products of all pairs of features.
Level = Literal["counts", "means", "products"]
SumsOfDomain = dict[str, Tensor]
# Products are computed in blocks of this many features, so that the lower triangle is left out.
BLOCK = 128


@dataclass(frozen=True)
class Sums:
    """Sums over the rows of one or several domains, in float64.

    by_class: Σ h per class, [width, classes]; counts: rows per class, [classes].
    squares: Σ |h|², or None; products: Σ h hᵀ, [width, width], or None.
    """

    by_class: Tensor
    counts: Tensor
    squares: Tensor | None = None
    products: Tensor | None = None

    @property
    def rows(self) -> Tensor:
        """How many rows were summed, or their total weight."""
        return self.counts.sum()

    def __add__(self, other: Sums) -> Sums:
        return self._combined(other, 1)

    def __sub__(self, other: Sums) -> Sums:
        return self._combined(other, -1)

    def _combined(self, other: Sums, sign: int) -> Sums:
        return Sums(
            torch.add(self.by_class, other.by_class, alpha=sign),
            torch.add(self.counts, other.counts, alpha=sign),
            _added(self.squares, other.squares, sign),
            _added(self.products, other.products, sign),
        )


def _added(first: Tensor | None, second: Tensor | None, sign: int) -> Tensor | None:
    if first is None or second is None:
        return None
    return torch.add(first, second, alpha=sign)


class Adder:
    """Sums a domain's rows batch by batch; `dtype` is that of the products in a batch."""

    def __init__(
        self,
        width: int,
        classes: int,
        level: Level,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.classes, self.level, self.dtype = classes, level, dtype
        zeros = partial(torch.zeros, dtype=torch.float64, device=device)
        self.by_class = zeros((width, classes))
        self.counts, self.squares = zeros((classes,)), zeros(())
        self.products = zeros((width, width)) if level == "products" else None

    def add(
        self,
        features: Tensor,
        labels: Tensor,
        class_weight: Tensor | None,
        row_weights: Tensor | None = None,
    ) -> None:
        """Add rows; each counts as much as its class weighs, times its own weight if given."""
        members = one_hot(labels, self.classes).to(self.dtype)
        weighs = class_weight is not None or row_weights is not None
        if class_weight is not None:
            members = members * class_weight.to(self.dtype)
        if row_weights is not None:
            members = members * row_weights[:, None].to(self.dtype)
        self.counts += members.double().sum(dim=0)
        if self.level == "counts":
            return
        features = features.to(self.dtype)
        self.by_class += (features.T @ members).double()
        weighted = features * members.sum(dim=1)[:, None] if weighs else features
        if self.products is None:
            self.squares += (weighted * features).double().sum()
        else:
            for start in range(0, len(self.products), BLOCK):
                block = weighted[:, start : start + BLOCK].T @ features[:, start:]
                self.products[start : start + BLOCK, start:] += block.double()

    def packed(self) -> SumsOfDomain:
        """The sums as they are kept."""
        kept = {"by_class": self.by_class, "counts": self.counts}
        if self.level == "means":
            kept["squares"] = self.squares
        if self.products is not None:
            kept["products"] = fold(self.products)
        return kept


def fold(square: Tensor) -> Tensor:
    """The upper triangle of a symmetric matrix [n, n] as a rectangle [(n + 1) // 2, n + 1].

    Row i of the rectangle begins with the last i + 1 entries of the matrix, its row n - 1 - i, read
    backwards; row i of the triangle follows.
    """
    half = (len(square) + 1) // 2
    last = square.flip(0, 1)[:half].tril()
    return pad(last, (0, 1)) + pad(square[:half].triu(), (1, 0))


def unfold(folded: Tensor) -> Tensor:
    """The symmetric matrix of which `fold` made this rectangle."""
    half, width = len(folded), folded.shape[1] - 1
    upper = folded.new_zeros(width, width)
    upper[width - half :] = folded[:, :-1].tril().flip(0, 1)
    upper[:half] = folded[:, 1:].triu()
    return upper + upper.triu(1).T


def unpack(kept: Mapping[str, Tensor]) -> Sums:
    """The sums of a domain, with whole matrices."""
    products = unfold(kept["products"]) if "products" in kept else None
    return Sums(kept["by_class"], kept["counts"], kept.get("squares"), products)


def add_up(domains: Mapping[str, Mapping[str, Tensor]]) -> Sums:
    """The sums over all these domains, in the order of their names."""
    first, *others = sorted(domains)
    total = unpack(domains[first])
    for name in others:
        total = total + unpack(domains[name])
    return total
