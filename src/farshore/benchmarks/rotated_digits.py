"""rotated-digits: scikit-learn's 8x8 digits, rotated by a different angle in each domain."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

import torch
from sklearn.datasets import load_digits
from torch import Tensor

from ..base.randomness import derive, generator
from ..data.domain import Domain
from ..data.images.images import rotate
from .benchmark import Benchmark, Made


class Digits(Benchmark):
    """Base of benchmarks of scikit-learn's digits: a disjoint part of them per domain."""

    reference = (
        "Alpaydin and Kaynak, Optical Recognition of Handwritten Digits, UCI 1998 (the "
        "part in scikit-learn)"
    )
    licence = "CC BY 4.0"
    domains: ClassVar[tuple[str, ...]]
    classes = tuple(str(digit) for digit in range(10))
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
            part, own = parts[number], derive(seed, self.name, number)
            made = self.changed(name, images[part], labels[part], seed)
            return Domain.divided(name, made, labels[part], seed=own)

        return [make_domain(name) for name in sources], lambda: make_domain(target), ()

    @abstractmethod
    def changed(self, name: str, images: Tensor, labels: Tensor, seed: int) -> Tensor:
        """The images of this domain."""


class RotatedDigits(Digits):
    """1,797 digits in five disjoint parts, rotated counter-clockwise by 0 to 75 degrees."""

    name = "rotated-digits"
    summary = "1,797 8x8 digits in five disjoint parts, rotated by 0, 15, 30, 45 -> 75 degrees"
    domains: ClassVar[tuple[str, ...]] = ("0", "15", "30", "45", "75")
    default_target = "75"

    def changed(self, name: str, images: Tensor, labels: Tensor, seed: int) -> Tensor:
        """The images, rotated."""
        return rotate(images, float(name))


class RotatedDigitsStream(RotatedDigits):
    """The same digits in twelve disjoint parts, rotated by 10 more degrees in each.

    Each domain has about 150 digits: many small sites that drift, to try what needs many domains.
    """

    name = "rotated-digits-stream"
    summary = "1,797 8x8 digits in twelve disjoint parts, rotated by 0, 10, ..., 100 -> 110 degrees"
    domains = tuple(str(angle) for angle in range(0, 120, 10))
    default_target = "110"


def read_digits() -> tuple[Tensor, Tensor]:
    """The images [n, 1, 8, 8] as bytes, and their labels."""
    loaded = load_digits()
    images = torch.from_numpy(loaded.images).float()  # 0..16
    labels = torch.from_numpy(loaded.target).long()
    return (images * (255 / 16)).round().to(torch.uint8)[:, None], labels
