"""Benchmarks of corrupted images: a clean domain, six pairs of corruptions, and corruptions of other kinds as the target."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np
import torch

from ..data.corruptions.corrupt import FROST, check_severity, corrupt, read_photographs
from ..data.domain import Domain
from ..data.prepared import Prepared, find
from ..data.public_files import Bar, absent, data_root, fetch
from ..data.scenario import Scenario
from ..randomness import derive, generator
from .image import ImageBenchmark

CLEAN = "clean"
PAIRS = (
    "gaussian_noise+shot_noise",
    "impulse_noise+defocus_blur",
    "glass_blur+motion_blur",
    "zoom_blur+snow",
    "frost+fog",
    "brightness+contrast",
)


class CorruptedImages(ImageBenchmark):
    """The test images are divided once by the scenario seed: four fifths for the sources, one fifth for the target.

    A domain holds each of its images under each of its corruptions; the clean domain is the training set. If another domain
    becomes the target, it takes the held-out images, every other corrupted domain keeps the sources' images, and the former
    target takes the freed place in the order. Inside a source, images are divided 80:20 into training and validation, the same
    for all corrupted domains, so that no image stands on both sides.
    """

    size: ClassVar[int]
    published: ClassVar[str]
    severity: int = 5
    # Built beside the default set when another target is asked for: the two domains whose images change.
    exchanged: str | None = None
    origin: Literal["generated", "published"] = "generated"

    @abstractmethod
    def read_train(self, raw: Path) -> tuple[np.ndarray, np.ndarray]:
        """Clean images [n, 3, size, size] as bytes, and labels."""

    @abstractmethod
    def read_test(self, raw: Path) -> tuple[np.ndarray, np.ndarray]:
        """The images that are corrupted, and labels."""

    @abstractmethod
    def read_published(self, raw: Path, corruption: str, labels: np.ndarray) -> np.ndarray:
        """The published form of all test images under this corruption, in the order of `read_test`."""

    @abstractmethod
    def has_clean(self, raw: Path) -> bool:
        """Whether the images are there in a form that can be read."""

    @classmethod
    def listed(cls, target: str) -> list[str]:
        """As listed, the former target in the place of the new one."""
        usual = super().listed(target)
        if target == cls.default_target:
            return usual
        return [cls.default_target if name == target else name for name in cls.domains if name != cls.default_target]

    def scenario(
        self, *, target: str | None = None, order: Sequence[str] | None = None, seed: int = 0, left_out: Sequence[str] = ()
    ) -> Scenario:
        """As any image benchmark's, once the severity is known to be one."""
        check_severity(self.severity)
        return super().scenario(target=target, order=order, seed=seed, left_out=left_out)

    def build_domains(self, raw: Path, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """Divide the test images, corrupt each part by its domain's corruptions one after another."""
        images, labels = self.read_test(raw)
        order = torch.randperm(len(images), generator=generator(seed, self.set_name, "images")).numpy()
        held, kept = np.sort(order[: len(images) // 5]), np.sort(order[len(images) // 5 :])
        generate = self.origin == "generated"
        photographs = read_photographs(raw.parent / "frost", self.size) if generate else []

        def domain(name: str, part: np.ndarray) -> tuple[str, np.ndarray, np.ndarray]:
            corruptions = name.split("+")
            made = np.empty((len(corruptions) * len(part), *images.shape[1:]), np.uint8)
            for place, each in enumerate(corruptions):
                rows = slice(place * len(part), (place + 1) * len(part))
                if generate:
                    key = derive(seed, self.set_name)
                    made[rows] = corrupt(images[part], each, self.severity, seed=key, numbers=part, photographs=photographs)
                else:
                    made[rows] = self.read_published(raw, each, labels)[part]
            return name, made, np.tile(labels[part], len(corruptions))

        if self.exchanged is None:
            yield CLEAN, *self.read_train(raw)
            for name in PAIRS:
                yield domain(name, kept)
            yield domain(self.default_target, held)
        else:
            yield domain(self.default_target, kept)
            if self.exchanged != CLEAN:
                yield domain(self.exchanged, held)

    def make(self, sources: Sequence[str], target: str, seed: int) -> tuple[list[Domain], Callable[[], Domain], tuple[str, ...]]:
        """The domains of the default target, except the two that an exchange changes."""
        prepared = self.open(seed)
        changed = None
        if target != self.default_target:
            other = type(self)()
            other.severity, other.exchanged = self.severity, target
            changed = other.open(seed)

        def make_domain(name: str) -> Domain:
            found = changed if changed is not None and name in changed.domains else prepared
            inputs, labels = found.read(name)
            if name == CLEAN:
                return Domain.divided(name, inputs, labels, seed=derive(seed, self.set_name, CLEAN))
            times = len(name.split("+"))
            count = len(labels) // times
            once = Domain.divided(name, torch.empty(count, 0), labels[:count], seed=derive(seed, self.set_name, "split"))
            train, validation = (torch.cat([rows + k * count for k in range(times)]) for rows in (once.train, once.validation))
            return Domain(name, inputs, labels, train, validation)

        origin = f"corruptions of severity {self.severity} are those of the published {self.published}"
        if self.origin == "generated":
            origin = f"corruptions of severity {self.severity} were generated by holdfast: they are not the published {self.published}"
        return [make_domain(name) for name in sources], lambda: make_domain(target), (origin, *self.notes(prepared))

    def notes(self, prepared: Prepared) -> tuple[str, ...]:
        """What else a result must tell."""
        return ()

    def has_published(self, raw: Path) -> bool:
        """Whether the published corrupted images are there."""
        return all((raw / self.published / name).exists() for name in self.published_parts())

    def published_parts(self) -> list[str]:
        """What the folder of the published images must hold."""
        return [each for name in (*PAIRS, self.default_target) for each in name.split("+")]

    def has_files(self, raw: Path) -> bool:
        """The images, and the frost photographs if corruptions are to be generated."""
        return self.has_clean(raw) and (self.has_published(raw) or not absent(FROST, raw.parent / "frost"))

    def prepare(self, root: str | Path | None = None, *, seed: int = 0, bar: Bar | None = None) -> Prepared:
        """As always; the published corruptions are used where they are."""
        self._choose(root, seed)
        return super().prepare(root, seed=seed, bar=bar)

    def open(self, seed: int) -> Prepared:
        """As always; the published corruptions are used where they are."""
        self._choose(None, seed)
        return super().open(seed)

    def _choose(self, root: str | Path | None, seed: int) -> None:
        self.origin = "published"
        if find(self._folder(root, seed), self._facts(seed)) is None and not self.has_published(data_root(root) / self.raw):
            self.origin = "generated"

    def _fetch(self, raw: Path, root: str | Path | None, bar: Bar | None) -> None:
        if not self.has_clean(raw):
            super()._fetch(raw, root, bar)
        if self.origin == "generated":
            given = f" --root {root}" if root is not None else ""
            fetch(FROST, raw.parent / "frost", again=f"holdfast prepare {self.set_name}{given}", bar=bar)

    def _folder(self, root: str | Path | None, seed: int) -> Path:
        severity = f"-severity-{self.severity}" if self.severity != type(self).severity else ""
        exchanged = f"-target-{self.exchanged}" if self.exchanged is not None else ""
        published = "-published" if self.origin == "published" else ""
        usual = super()._folder(root, seed)
        return usual.with_name(f"{self.set_name}{severity}{exchanged}{published}-seed-{seed}")

    def _facts(self, seed: int) -> dict[str, Any]:
        return {**super()._facts(seed), "severity": self.severity, "exchanged": self.exchanged, "corruptions": self.origin}
