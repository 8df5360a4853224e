"""coloured-digits: scikit-learn's 8x8 digits in colours that give them away, until the target."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ..base.randomness import generator
from .rotated_digits import Digits

CLASSES = 10
# Every digit has a colour of its own, all equally bright: red, green and blue in shares of 1.
COLOURS = torch.tensor(
    [
        *((1.0, 0.0, 0.0), (0.8, 0.2, 0.0), (0.5, 0.5, 0.0), (0.2, 0.8, 0.0), (0.0, 1.0, 0.0)),
        *((0.0, 0.7, 0.3), (0.0, 0.3, 0.7), (0.0, 0.0, 1.0), (0.3, 0.0, 0.7), (0.7, 0.0, 0.3)),
    ]
)


class ColouredDigits(Digits):
    """1,797 digits in five disjoint parts; in the sources the colour tells the digit, too.

    A source is named by the percentage of its digits that have their own colour; the others have
    that of another digit, drawn at random. In `misleading` every digit has the colour of the next
    one (9 that of 0), so a prediction of the next digit follows the colour.
    """

    name = "coloured-digits"
    summary = "1,797 8x8 digits in five disjoint parts, 99 to 90% in their own colour -> misleading"
    reference = (
        f"{Digits.reference}; coloured after Arjovsky et al., Invariant Risk Minimization, 2019"
    )
    domains = ("99", "97", "94", "90", "misleading")
    default_target = "misleading"

    def changed(self, name: str, images: Tensor, labels: Tensor, seed: int) -> Tensor:
        """The images in the colours that the domain shows."""
        if name == self.default_target:
            return coloured(images, (labels + 1) % CLASSES)
        draws = generator(seed, self.name, "colours", self.domains.index(name))
        return coloured(images, _shown(labels, int(name) / 100, draws))


def coloured(images: Tensor, shown: Tensor) -> Tensor:
    """Grey images [n, 1, h, w] in the colours of the digits `shown`: [n, 3, h, w]."""
    return (images * COLOURS[shown][:, :, None, None]).round().to(torch.uint8)


def following(confusion: Sequence[Sequence[int]]) -> float:
    """The share of decisions on `misleading` that follow the colour, from its confusion matrix.

    Rows are true classes. Without colours, one digit is rarely taken for the next one.
    """
    followed = sum(confusion[digit][(digit + 1) % CLASSES] for digit in range(CLASSES))
    return followed / sum(map(sum, confusion))


def _shown(labels: Tensor, share: float, draws: torch.Generator) -> Tensor:
    """The digit whose colour each row has: its own for about this share, or any other one."""
    others = torch.randint(1, CLASSES, labels.shape, generator=draws)
    own = torch.rand(len(labels), generator=draws) < share
    return torch.where(own, labels, (labels + others) % CLASSES)
