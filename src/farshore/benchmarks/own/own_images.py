"""Users' own images as a benchmark: what a folder, a table of paths and a data set share."""

import re
import unicodedata
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar, Literal

import numpy as np
import pandas as pd
from pydantic import BaseModel, Field

from ...data.downloads.weights import usual_image_network
from ...data.images.image_folder import ImageSource, broken_notes, find_broken
from ...data.tables.cells import parse_numbers
from ...data.tables.columns import is_quantity
from ...errors import FarshoreError
from ...networks.build import settle_network
from .own import OwnBenchmark
from .own_rows import ImageRows

# At most this many classes or domains are named in one line.
LISTED = 5


class OwnImageOptions(BaseModel):
    """Options for reading images."""

    channels: Literal[1, 3] | None = Field(
        None, description="1 (grey) or 3 (colour) [default: colour if the first domain has any]"
    )
    size: int | None = Field(
        None,
        ge=1,
        le=4096,
        description="pixels per side that images are resized to [default: as the network expects]",
    )
    interpolation: Literal["nearest", "bilinear", "bicubic", "lanczos"] | None = Field(
        None, description="how images are resized [default: as the network expects]"
    )
    skip_broken: bool = Field(
        False, description="leave out images that cannot be read, instead of refusing them"
    )


class OwnImages(OwnBenchmark):
    """Base class of users' own images; a subclass lists them."""

    results_version = 5
    # The network that is used without ImageNet weights; see `usual_network`.
    network = "histogram"
    profile = "frozen-features"
    profile_follows_network = True
    options: Any
    # Broken images by the checksum of all of them: found once per process.
    _broken: ClassVar[dict[str, dict[str, str]]] = {}

    @classmethod
    def usual_network(cls) -> str:
        """Return resnet18 if its ImageNet weights are available, otherwise `histogram`."""
        return usual_image_network()

    @classmethod
    def normal_network(
        cls, network: str | None, settings: Mapping[str, Any], options: Mapping[str, Any]
    ) -> tuple[str | None, dict[str, Any], dict[str, Any]]:
        """Return all of it, nothing left open.

        The usual network depends on the weights that are available, and the size of the images on
        the network.
        """
        if network is None:
            network = "resnet18" if "weights" in settings else cls.usual_network()
        network, plain, given = super().normal_network(network, settings, options)
        assert network is not None
        wanted = cls.Options.build(given, cls.name)
        if wanted.size is None or wanted.interpolation is None:  # type: ignore[attr-defined]
            form = settle_network(network, plain).form
            given = {"size": form.size, "interpolation": form.interpolation} | {
                name: value for name, value in given.items() if value is not None
            }
        return network, plain, given

    @abstractmethod
    def list_all(self) -> tuple[pd.DataFrame, list[ImageSource], list[str], list[str]]:
        """Return the facts, the images, their names in messages, and notes."""

    def read_facts(self) -> pd.DataFrame:
        """Return domain and label of every image that is used."""
        return self._listed()[0]

    def read(self) -> ImageRows:
        """List the images; they are decoded once it is known which domain is the first."""
        facts, sources, names, notes = self._listed()
        numbers = parse_numbers(facts["label"].dropna().to_numpy(dtype=object))
        if not (np.isfinite(numbers).all() and is_quantity(numbers, len(numbers))):
            notes = [*notes, *spelling_notes(facts), *absent_notes(facts)]
        size, interpolation = self.options.size, self.options.interpolation
        return ImageRows(
            facts,
            notes,
            sources,
            names,
            title=self.title,
            contents=self.data_digest(),
            size=size or 32,
            interpolation=interpolation or "bilinear",
            channels=self.options.channels,
        )

    def _listed(self) -> tuple[pd.DataFrame, list[ImageSource], list[str], list[str]]:
        """Return all images; without the broken ones if the options say so."""
        facts, sources, names, notes = self.list_all()
        if not self.options.skip_broken:
            return facts, sources, names, notes
        digest = self.data_digest()
        if digest not in self._broken:
            self._broken[digest] = find_broken(sources, names)
        broken = self._broken[digest]
        kept = [row for row, name in enumerate(names) if name not in broken]
        if not kept:
            raise FarshoreError(f"{self.title}: none of {len(names)} images can be read")
        notes = [*notes, *broken_notes(broken, len(names))]
        facts = facts.iloc[kept].reset_index(drop=True)
        return facts, [sources[row] for row in kept], [names[row] for row in kept], notes


def spelling_notes(facts: pd.DataFrame) -> list[str]:
    """Name classes whose names differ only in case, spaces or signs: probably one class."""
    by_letters: dict[str, list[str]] = {}
    for label in sorted(set(map(str, facts["label"]))):
        letters = unicodedata.normalize("NFKD", label).casefold()
        by_letters.setdefault(re.sub(r"[\W_]+", "", letters) or letters, []).append(label)
    counts = facts["label"].value_counts()
    alike = [names for names in by_letters.values() if len(names) > 1]
    shown = [" and ".join(f"{name!r} ({counts[name]} images)" for name in of) for of in alike]
    why = "count as different classes, and their names differ only in spelling"
    return [f"warning: {names} {why}: rename one if they are the same" for names in shown]


def absent_notes(facts: pd.DataFrame) -> list[str]:
    """Name the classes that a domain lacks."""
    if "domain" not in facts:
        return []
    classes = set(facts["label"])
    notes = []
    for domain, labels in facts.groupby("domain", sort=False)["label"]:
        absent = sorted(map(str, classes - set(labels)))
        if absent:
            more = f" and {len(absent) - LISTED} more" if len(absent) > LISTED else ""
            listed = ", ".join(map(repr, absent[:LISTED]))
            notes.append(f"note: domain {domain!r} has no image of class {listed}{more}")
    hidden = len(notes) - LISTED
    return notes[:LISTED] + ([f"note: {hidden} more domains lack classes"] if hidden > 0 else [])
