"""Toy data and toy models: small enough that a whole battery runs in about a second."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn

from ..base.randomness import derive
from ..benchmarks import BENCHMARKS, Benchmark
from ..benchmarks.benchmark import Made
from ..data.domain import Domain
from ..learner.learner import Learner
from ..methods import METHODS
from ..networks.network import ImageInputs, Network
from ..observer import Observer
from ..tasks.classification import Classification
from ..tasks.regression import Regression
from ..tasks.task import Task
from .battery import registered

_NUMBERS: ContextVar[bool] = ContextVar("labels are numbers", default=False)
# Under these every term of a method is at work within a few steps.
TOY_SETTINGS = {"batch_size": 8, "learning_rate": 0.005}
EARLY_SETTINGS = {"anneal_steps": 2, "warmup_steps": 2}
# Fewer random features than by default, which take longer than all else in a battery.
SMALL_SETTINGS = {"random_features": 24}


@contextmanager
def toy_numbers() -> Iterator[None]:
    """Inside, the labels of all toys are numbers: 100 and 120 and a little noise."""
    token = _NUMBERS.set(True)
    try:
        yield
    finally:
        _NUMBERS.reset(token)


def _labelled(labels: Tensor, generator: torch.Generator) -> Tensor:
    if not _NUMBERS.get():
        return labels
    return 100 + 20 * labels + torch.randn(len(labels), generator=generator)


def toy_rows(
    domain: int, rows: int = 48, classes: int = 2, width: int = 4
) -> tuple[Tensor, Tensor]:
    """The domain of this number: a cloud of points per class, moved a little each time."""
    generator = torch.Generator().manual_seed(1000 + domain)
    labels = torch.arange(rows) % classes
    centres = torch.eye(classes, width) * 3
    inputs = centres[labels] + 0.4 * torch.randn(rows, width, generator=generator)
    return inputs + 0.5 * domain, _labelled(labels, generator)


def toy_task() -> Task:
    """What the labels of toys with two classes are."""
    return Regression(("y",), (110.0,), (10.0,)) if _NUMBERS.get() else Classification((0, 1))


def toy_domain(number: int, *, name: str = "", seed: int = 0) -> Domain:
    """The rows of this number as a domain, with labels as the network sees them."""
    inputs, labels = toy_rows(number)
    encoded = toy_task().encoded(labels.tolist(), domain=name)
    return Domain.divided(name or f"d{number}", inputs, encoded, seed=seed)


def toy_images(domain: int, rows: int = 24) -> tuple[Tensor, Tensor]:
    """The domain of this number: 8x8 uint8 images, a bright half left or right, ever darker."""
    generator = torch.Generator().manual_seed(2000 + domain)
    labels = torch.arange(rows) % 2
    images = torch.randint(0, 60, (rows, 1, 8, 8), generator=generator)
    for half in (0, 1):
        images[labels == half, :, :, 4 * half : 4 * half + 4] += 150 - 30 * domain
    return images.to(torch.uint8), _labelled(labels, generator)


def toy_image_network() -> Network:
    """A convolution with BatchNorm for `toy_images`."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        convolution = (nn.Conv2d(1, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU())
        features = nn.Sequential(*convolution, nn.AdaptiveAvgPool2d(2), nn.Flatten())
        return Network(features, nn.Linear(32, 1 if _NUMBERS.get() else 2), inputs=ImageInputs())


def toy_settings(method: str) -> dict[str, Any]:
    """Settings under which every term of the method is at work within a few steps."""
    fields = METHODS.get(method).Settings.model_fields
    own = {**EARLY_SETTINGS, **SMALL_SETTINGS}
    return {**TOY_SETTINGS, **{name: value for name, value in own.items() if name in fields}}


def toy_learner(method: str, *, settings: dict[str, Any] | None = None, **options: Any) -> Learner:
    """A small learner with this method; `options` are the learner's."""
    usual: dict[str, Any] = {"network": "mlp", "memory": 18, "preprocess": "none"}
    usual["network_settings"] = {"width": 16}
    if _NUMBERS.get():
        usual["task"], options = "regression", {**options, "classes": None}
    chosen = {"replay_budget": "per-domain", **toy_settings(method), **(settings or {})}
    return Learner(**{**usual, "method": method, "settings": chosen, **options})


def toy_learned(method: str, *, domains: int = 3, steps: int = 8, **options: Any) -> Learner:
    """A small learner that has learned toy domains, which are called d0, d1 and so on."""
    learner = toy_learner(method, **options)
    for number in range(domains):
        learner.learn(*toy_rows(number), domain=f"d{number}", steps=steps)
    return learner


class ToyShift(Benchmark):
    """Three toy domains and a target that records when it is made; or a target of noise."""

    name = "toy-shift"
    summary = "clouds of points that move from domain to domain"
    reference = "made by farshore.testing"
    licence = "Apache-2.0"
    domains = ("d0", "d1", "d2", "d3")
    default_target = "d3"
    classes = ("0", "1")
    network = "mlp"
    network_settings = {"width": 16}
    steps = 4
    memory = 18
    settings = {"batch_size": 8}

    def task(self) -> Task:
        """Two classes, or numbers."""
        return toy_task() if _NUMBERS.get() else super().task()

    noise = False
    # Called when the target is made.
    target_made: Callable[[], None] = staticmethod(lambda: None)

    def make(self, sources: Sequence[str], target: str, seed: int) -> Made:
        """The toy domains."""

        def make_domain(name: str) -> Domain:
            number = self.domains.index(name)
            return toy_domain(number, name=name, seed=derive(seed, number))

        def make_target() -> Domain:
            self.target_made()
            made = make_domain(target)
            if not self.noise:
                return made
            draws = torch.Generator().manual_seed(9)
            inputs = 5 * torch.randn(made.inputs.shape, generator=draws)
            return Domain(target, inputs, made.labels.flip(0), made.train, made.validation)

        return [make_domain(name) for name in sources], make_target, ()


@contextmanager
def toy_shift(*, noise: bool, observer: "DomainCount") -> Iterator[list[int]]:
    """Inside, `toy-shift` is a benchmark; the list says how much was learned at each target."""
    opened: list[int] = []
    target_made = staticmethod(lambda: opened.append(observer.learned))
    shift = type("Shift", (ToyShift,), {"noise": noise, "target_made": target_made})
    with registered(BENCHMARKS, shift):
        yield opened


class DomainCount(Observer):
    """Counts the domains that are learned."""

    learned = 0

    def domain(self, domain: str, scores: Any) -> None:
        """One more; an offline method learns all at once."""
        self.learned += 1
