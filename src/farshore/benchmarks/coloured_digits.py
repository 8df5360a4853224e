"""coloured-digits: scikit-learn's 8x8 digits in colours that give them away, until the target."""

from collections.abc import Sequence
from typing import ClassVar

import torch
from torch import Tensor

from ..base.randomness import derive, generator
from ..data.domain import Domain
from .benchmark import Benchmark, Made
from .rotated_digits import read_digits

CLASSES = 10
# Every digit has a colour of its own, all equally bright: red, green and blue in shares of 1.
COLOURS = torch.tensor(
    [
        *((1.0, 0.0, 0.0), (0.8, 0.2, 0.0), (0.5, 0.5, 0.0), (0.2, 0.8, 0.0), (0.0, 1.0, 0.0)),
        *((0.0, 0.7, 0.3), (0.0, 0.3, 0.7), (0.0, 0.0, 1.0), (0.3, 0.0, 0.7), (0.7, 0.0, 0.3)),
    ]
)


class ColouredDigits(Benchmark):
    """1,797 digits in five disjoint parts; in the sources the colour tells the digit, too.

    A source is named by the percentage of its digits that have their own colour; the others have
    that of another digit, drawn at random. In `misleading` every digit has the colour of the next
    one (9 that of 0), so a prediction of the next digit follows the colour.
    """

    name = "coloured-digits"
    summary = "1,797 8x8 digits in five disjoint parts, 99 to 90% in their own colour -> misleading"
    reference = (
        "Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI 1998 (the "
        "part in scikit-learn); coloured after Arjovsky et al., Invariant Risk Minimization, 2019"
    )
    licence = "CC BY 4.0"
    domains: ClassVar[tuple[str, ...]] = ("99", "97", "94", "90", "misleading")
    default_target = "misleading"
    classes = tuple(str(digit) for digit in range(CLASSES))
    network = "cnn"
    network_settings = {"width": 16}
    steps = 100
    memory = 200
    settings = {"batch_size": 32}

    def make(self, sources: Sequence[str], target: str, seed: int) -> Made:
        """Make the domains; the images of each do not depend on the order or the target."""
        images, labels = read_digits()
        order = torch.randperm(len(images), generator=generator(seed, self.name))
        parts = order.tensor_split(len(self.domains))

        def make_domain(name: str) -> Domain:
            number = self.domains.index(name)
            part = parts[number]
            draws = generator(seed, self.name, "colours", number)
            shown = (labels[part] + 1) % CLASSES
            if name != self.default_target:
                shown = _shown(labels[part], int(name) / 100, draws)
            made, own = coloured(images[part], shown), derive(seed, self.name, number)
            return Domain.divided(name, made, labels[part], seed=own)

        return [make_domain(name) for name in sources], lambda: make_domain(target), ()


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
