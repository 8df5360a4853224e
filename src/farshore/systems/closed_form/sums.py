"""Sums of one domain, from which every closed-form head is computed.

They take the place of rows: once a domain is summed, none of its rows is kept. Domains are added up
in an order that their names decide, whatever the order in which they were learned, so that even the
rounding does not depend on it.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from typing import Literal

import torch
from torch import Tensor
from torch.nn.functional import pad

from ...base.randomness import derive

# What is summed per domain: the classes' counts; also the features per class and their squared
# norms; also the products of all pairs of features.
Level = Literal["counts", "means", "products"]
SumsOfDomain = dict[str, Tensor]
# Products are computed in blocks of this many features, so that the lower triangle is left out.
BLOCK = 128
# With more domains than this, several are left out together, so that the cost stays bounded.
MOST_FOLDS = 10
# With more domains than this, their names decide which ones are left out together.
FEW_DOMAINS = 100


@dataclass(frozen=True)
class Sums:
    """Sums over the rows of one or several domains, in float64.

    by_class: Σ h per class, [width, classes]; counts: rows per class, [classes].
    squares: Σ |h|², or None; products: Σ h hᵀ, [width, width], or None.

    Of labels that are numbers, the columns are those of `Task.targets` t instead of one-hot
    classes: by_class is Σ h tᵀ, counts Σ t, which also adds up to the rows, and moments Σ t².
    """

    by_class: Tensor
    counts: Tensor
    squares: Tensor | None = None
    products: Tensor | None = None
    moments: Tensor | None = None

    @property
    def outputs(self) -> int:
        """How many columns are outputs: all classes, and of numbers all but the last column."""
        return len(self.counts) - (self.moments is not None)

    @property
    def target_squares(self) -> Tensor:
        """Σ t² over the rows, for each output; of one-hot classes, these are their counts."""
        return (self.counts if self.moments is None else self.moments)[: self.outputs]

    @property
    def rows(self) -> Tensor:
        """How many rows were summed, or their total weight."""
        return self.counts.sum()

    def __add__(self, other: "Sums") -> "Sums":
        return self._combined(other, 1)

    def __sub__(self, other: "Sums") -> "Sums":
        return self._combined(other, -1)

    def _combined(self, other: "Sums", sign: int) -> "Sums":
        return Sums(
            torch.add(self.by_class, other.by_class, alpha=sign),
            torch.add(self.counts, other.counts, alpha=sign),
            _plus(self.squares, other.squares, sign),
            _plus(self.products, other.products, sign),
            _plus(self.moments, other.moments, sign),
        )


def _plus(first: Tensor | None, second: Tensor | None, sign: int) -> Tensor | None:
    return None if first is None or second is None else torch.add(first, second, alpha=sign)


class Adder:
    """Sums a domain's rows batch by batch; `dtype` is that of the products in a batch."""

    def __init__(
        self, width: int, classes: int, level: Level, dtype: torch.dtype, device: torch.device
    ) -> None:
        self.level, self.dtype = level, dtype
        zeros = partial(torch.zeros, dtype=torch.float64, device=device)
        self.by_class = zeros((width, classes))
        self.counts, self.squares = zeros((classes,)), zeros(())
        self.products = zeros((width, width)) if level == "products" else None
        self.moments: Tensor | None = None

    def add(
        self,
        features: Tensor,
        targets: Tensor,
        class_weight: Tensor | None,
        row_weights: Tensor | None = None,
    ) -> None:
        """Add rows; each counts as much as its class weighs, times its own weight if given."""
        members = targets.to(self.dtype)
        weighs = class_weight is not None or row_weights is not None
        if class_weight is not None:
            members = members * class_weight.to(self.dtype)
        if row_weights is not None:
            members = members * row_weights[:, None].to(self.dtype)
        self.counts += members.double().sum(dim=0)
        if targets.is_floating_point():
            moments = (members.double() * targets).sum(dim=0)
            self.moments = moments if self.moments is None else self.moments + moments
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
        if self.moments is not None:
            kept["moments"] = self.moments
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
    moments = kept.get("moments")
    return Sums(kept["by_class"], kept["counts"], kept.get("squares"), products, moments)


def add_up(domains: Iterable[Mapping[str, Tensor]]) -> Mapping[str, Tensor]:
    """The sums over these domains, one after another, as they are kept."""
    first, *others = domains
    if not others:
        return first
    total = {name: tensor.clone() for name, tensor in first.items()}
    for other in others:
        for name, tensor in total.items():
            tensor += other[name]
    return total


class DomainSums(dict[str, SumsOfDomain]):
    """The sums of each domain by name, with those of the groups that are left out together.

    The groups are every tenth name in the order of the names. In a longer list than FEW_DOMAINS the
    groups follow from a hash of each name: a further domain changes one group and moves no other
    domain, so that learning and forgetting cost the same after any number of domains.
    """

    def __init__(self, domains: Mapping[str, SumsOfDomain] | None = None) -> None:
        super().__init__(domains or {})
        self._groups: dict[int, Mapping[str, Tensor]] = {}
        self._added: Mapping[str, Tensor] | None = None

    def __setitem__(self, name: str, sums: SumsOfDomain) -> None:
        super().__setitem__(name, sums)
        self._changed(name)

    def __delitem__(self, name: str) -> None:
        super().__delitem__(name)
        self._changed(name)

    def _changed(self, name: str) -> None:
        self._added = None
        if len(self) > FEW_DOMAINS + 1:
            self._groups.pop(_hashed(name), None)
        else:
            self._groups.clear()

    def groups(self) -> list[Mapping[str, Tensor]]:
        """The sums of each group, as they are kept."""
        names = sorted(self)
        numbers = [
            _hashed(name) if len(names) > FEW_DOMAINS else position % MOST_FOLDS
            for position, name in enumerate(names)
        ]
        for number in sorted(set(numbers) - set(self._groups)):
            members = (name for name, own in zip(names, numbers, strict=True) if own == number)
            self._groups[number] = add_up(self[name] for name in members)
        return [self._groups[number] for number in sorted(set(numbers))]

    def added(self) -> Mapping[str, Tensor]:
        """The sums over all domains, as they are kept."""
        if self._added is None:
            few = len(self) <= FEW_DOMAINS
            self._added = add_up([self[name] for name in sorted(self)] if few else self.groups())
        return self._added

    def total(self) -> Sums:
        """The sums over all domains."""
        return unpack(self.added())


@cache
def _hashed(name: str) -> int:
    """The group of a domain with this name among many."""
    return derive(0, name) % MOST_FOLDS
