"""A step of the tailored methods beside the same method written plainly, as DomainBed writes it.

    python bench/step_formulas.py [--network mlp --columns 54] [--network cnn --size 28]

The plain steps compute DomainBed's formulas, domain by domain, on the same network, with Adam as
PyTorch makes it by default and, in a column of its own, fused as in farshore, from rows that they
draw uniformly. Both have the same rows of every domain and the same terms: no alignment, and for
ANDMask the hard mask with a fixed τ. The last column is farshore's default step with everything
that it adds (the alignment; for ANDMask the soft mask and the distillation). `minimum` is forward
and backward of one batch, which is ready, and no optimiser; beside it is what the fused Adam adds.

Plain and farshore's steps take turns in one process; ratios are medians over turns. Seconds are
those of the process on a CPU.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from contextlib import ExitStack
from itertools import combinations

import record
import torch
from step_cost import (
    DOMAINS,
    add_shape_arguments,
    described,
    in_turn,
    made,
    opened,
    prepared,
    shape_of,
)
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim import Adam

from farshore.networks.build import build_network
from farshore.networks.network import Network

# DomainBed's weights of the penalties do not change the work; these keep training stable.
WEIGHT = 1e-3
# Widths of the Gaussian kernels of DomainBed's MMD.
GAMMAS = (0.001, 0.01, 0.1, 1, 10, 100, 1000)
EQUAL = {
    "er": {},
    "cl-vrex": {"alignment_weight": 0},
    "cl-coral": {"alignment_weight": 0},
    "cl-mmd": {"alignment_weight": 0},
    "cl-fishr": {"alignment_weight": 0},
    "cl-andmask": {"alignment_weight": 0, "mask": "hard", "adaptive_agreement": False},
}
Parts = list[tuple[Tensor, Tensor]]


class Plain:
    """One training step per call, on rows of each domain, given as inputs and labels."""

    def __init__(self, network: Network, domains: Parts, size: int, fused: bool = False) -> None:
        self.network, self.domains, self.size = network, domains, size
        self.optimizer = Adam(network.parameters(), lr=1e-3, fused=fused or None)
        self.parts: Parts = []
        self.draw()

    def draw(self) -> None:
        self.parts = []
        for inputs, labels in self.domains:
            index = torch.randint(len(labels), (self.size,), device=labels.device)
            self.parts.append((inputs[index], labels[index]))

    def __call__(self) -> None:
        self.draw()
        self.optimizer.zero_grad()
        self.backward()
        self.optimizer.step()

    def backward(self) -> None:
        self.loss().backward()

    def loss(self) -> Tensor:
        """ERM: the mean over all rows."""
        inputs, labels = (torch.cat(each) for each in zip(*self.parts, strict=True))
        return cross_entropy(self.network(inputs), labels)

    def features(self) -> list[Tensor]:
        return [self.network.extract(inputs) for inputs, _ in self.parts]

    def risk(self, features: list[Tensor]) -> Tensor:
        """The mean over domains of their risks."""
        pairs = zip(features, self.parts, strict=True)
        risks = [cross_entropy(self.network.classifier(each), y) for each, (_, y) in pairs]
        return torch.stack(risks).mean()


class VREx(Plain):
    def loss(self) -> Tensor:
        logits = self.network(torch.cat([inputs for inputs, _ in self.parts]))
        split = logits.split([len(labels) for _, labels in self.parts])
        pairs = zip(split, self.parts, strict=True)
        risks = torch.stack([cross_entropy(each, labels) for each, (_, labels) in pairs])
        mean = risks.mean()
        return mean + WEIGHT * ((risks - mean) ** 2).mean()


class Pairwise(Plain):
    """A distance of the features of every two domains."""

    def loss(self) -> Tensor:
        features = self.features()
        pairs = list(combinations(features, 2))
        return self.risk(features) + WEIGHT * sum(self.distance(*p) for p in pairs) / len(pairs)

    def distance(self, one: Tensor, other: Tensor) -> Tensor:
        raise NotImplementedError


class CORAL(Pairwise):
    def distance(self, one: Tensor, other: Tensor) -> Tensor:
        means = [each.mean(0, keepdim=True) for each in (one, other)]
        centred = [each - mean for each, mean in zip((one, other), means, strict=True)]
        covariances = [each.t() @ each / (len(each) - 1) for each in centred]
        difference = (means[0] - means[1]).pow(2).mean()
        return difference + (covariances[0] - covariances[1]).pow(2).mean()


class MMD(Pairwise):
    def distance(self, one: Tensor, other: Tensor) -> Tensor:
        within = self.kernel(one, one).mean() + self.kernel(other, other).mean()
        return within - 2 * self.kernel(one, other).mean()

    def kernel(self, one: Tensor, other: Tensor) -> Tensor:
        squares = one.pow(2).sum(1)[:, None] + other.pow(2).sum(1)[None] - 2 * one @ other.t()
        squares = squares.clamp_min(1e-30)
        return torch.stack([squares.mul(-gamma).exp() for gamma in GAMMAS]).sum(0)


class Fishr(Plain):
    """The variance over rows of the classifier's gradients, which are computed row by row."""

    def __init__(self, network: Network, domains: Parts, size: int, fused: bool = False) -> None:
        super().__init__(network, domains, size, fused)
        self.averages: list[Tensor | None] = [None] * len(domains)

    def loss(self) -> Tensor:
        features = self.network.extract(torch.cat([inputs for inputs, _ in self.parts]))
        labels = torch.cat([labels for _, labels in self.parts])
        logits = self.network.classifier(features)
        delta = logits.softmax(1) - nn.functional.one_hot(labels, logits.shape[1])
        rows = torch.cat([(delta[:, :, None] * features[:, None]).flatten(1), delta], 1)
        variances = []
        for index, part in enumerate(rows.split([len(y) for _, y in self.parts])):
            variance = (part - part.mean(0, keepdim=True)).pow(2).mean(0)
            average = self.averages[index]
            if average is not None:
                variance = 0.95 * average + 0.05 * variance
            self.averages[index] = variance.detach()
            variances.append(variance)
        mean = torch.stack(variances).mean(0)
        penalty = torch.stack([(each - mean).pow(2).mean() for each in variances]).mean()
        return cross_entropy(logits, labels) + WEIGHT * penalty


class ANDMask(Plain):
    def backward(self) -> None:
        parameters = list(self.network.parameters())
        gradients = []
        for inputs, labels in self.parts:
            risk = cross_entropy(self.network(inputs), labels)
            gradients.append(torch.autograd.grad(risk, parameters))
        for parameter, each in zip(parameters, zip(*gradients, strict=True), strict=True):
            stacked = torch.stack(each)
            mask = (stacked.sign().mean(0).abs() >= 1.0).float()
            parameter.grad = mask * stacked.mean(0) * (1 / (1e-10 + mask.mean()))


PLAIN: dict[str, type[Plain]] = {
    "er": Plain,
    "cl-vrex": VREx,
    "cl-coral": CORAL,
    "cl-mmd": MMD,
    "cl-fishr": Fishr,
    "cl-andmask": ANDMask,
}


def ratio(seconds: dict[str, list[float]], one: str, other: str) -> str:
    """The median over the turns of how many times as long one takes as another."""
    pairs = zip(seconds[one], seconds[other], strict=True)
    return f"{statistics.median(each / of for each, of in pairs):.2f}"


def measure(name: str, args: argparse.Namespace) -> list[str]:
    device, domain = torch.device(args.device), made(args.shape, DOMAINS - 1)
    with ExitStack() as stack:
        learners = {
            "equal": prepared(name, "eager/float32", args, EQUAL[name]),
            "default": prepared(name, "eager/float32", args),
        }
        rows = [made(args.shape, number).split("train") for number in range(DOMAINS)]
        taken = [each.take(torch.arange(len(each))) for each in rows]
        domains = [(inputs.to(device), labels.to(device)) for inputs, labels in taken]
        networks = [
            build_network(args.network, args.shape, 10, {}).to(device).train() for _ in range(3)
        ]
        steppers: dict[str, Callable[[], object]] = {
            key: opened(stack, learner, domain) for key, learner in learners.items()
        }
        steppers["plain"] = PLAIN[name](networks[0], domains, args.batch)
        steppers["fused"] = PLAIN[name](networks[1], domains, args.batch, fused=True)
        smallest = Plain(networks[2], domains, args.batch, fused=True)

        def minimum() -> None:
            for parameter in smallest.network.parameters():
                parameter.grad = None
            smallest.backward()

        def floor() -> None:
            minimum()
            smallest.optimizer.step()

        steppers["minimum"], steppers["floor"] = minimum, floor
        seconds = in_turn(steppers, args.turns, args.steps, device)
    sizes = {key: learner.system.rows_per_step for key, learner in learners.items()}
    assert set(sizes.values()) == {DOMAINS * args.batch}, sizes
    milliseconds = [1000 * statistics.median(seconds[key]) for key in ("equal", "plain")]
    return [
        name,
        *(f"{each:.2f}" for each in milliseconds),
        ratio(seconds, "equal", "plain"),
        ratio(seconds, "equal", "fused"),
        ratio(seconds, "equal", "minimum"),
        ratio(seconds, "floor", "minimum"),
        ratio(seconds, "default", "plain"),
    ]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--methods", default=",".join(PLAIN))
    add_shape_arguments(parser)
    parser.add_argument("--turns", type=int, default=31)
    parser.add_argument("--steps", type=int, default=10, help="steps per turn")
    record.add_save(parser)
    args = parser.parse_args()
    args.shape = shape_of(args)
    record.show(
        args,
        described(args),
        [
            "method",
            "farshore, ms",
            "plain, ms",
            "farshore / plain",
            "farshore / plain, fused",
            "farshore / minimum",
            "minimum with Adam / minimum",
            "with farshore's own terms / plain",
        ],
        (measure(name, args) for name in args.methods.split(",")),
    )


if __name__ == "__main__":
    main()
