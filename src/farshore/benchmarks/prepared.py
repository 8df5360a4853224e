"""Benchmarks whose domains are built once from public files and then read as memory-mapped
arrays.
"""

from __future__ import annotations

import hashlib
import json
from abc import abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..data.prepared import Prepared, build, find
from ..data.public_files import Bar, PublicFile, absent, data_root, fetch
from ..errors import FarshoreError
from .benchmark import Benchmark


class PreparedBenchmark(Benchmark):
    """`files` are looked for in ROOT/`raw`; the domains of a scenario seed are kept in
    ROOT/prepared/`set_name`-seed-N.
    """

    raw: ClassVar[str]
    set_name: ClassVar[str]
    files: ClassVar[tuple[PublicFile, ...]]
    # Raised by hand when the way in which the domains are built changes.
    set_version: ClassVar[int] = 1
    # What `build_domains` finds and a result must tell; kept in the manifest.
    about: dict[str, Any]

    @abstractmethod
    def build_domains(self, raw: Path, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """Name, inputs and labels of every domain, from the official files in `raw`."""

    def has_files(self, raw: Path) -> bool:
        """Whether `raw` holds what `build_domains` needs."""
        return not absent(self.files, raw)

    def prepare(
        self, root: str | Path | None = None, *, seed: int = 0, bar: Bar | None = None
    ) -> Prepared:
        """Download what is missing, build what is not built, and check what is."""
        folder = self._folder(root, seed)
        found = find(folder, self._facts(seed))
        if found is not None and found.verify():
            return found
        if (
            found is not None
        ):  # of the right sizes, but changed on the disk: without its manifest it counts as absent
            (folder / "manifest.json").unlink()
        raw = data_root(root) / self.raw
        self._fetch(raw, root, bar)
        self.about = {}
        return build(folder, self._facts(seed), self.build_domains(raw, seed), self.about)

    @classmethod
    def needs_preparation(cls) -> str | None:
        """The set that this benchmark reads."""
        return cls.set_name

    def missing(self, seed: int = 0, *, plan_only: bool = False) -> str | None:
        """The command that gets the data, unless they are prepared or their files lie ready."""
        if plan_only:
            return None
        there = find(self._folder(None, seed), self._facts(seed)) is not None or self.has_files(
            data_root() / self.raw
        )
        return None if there else f"type `farshore prepare {self.set_name}` first"

    def open(self, seed: int) -> Prepared:
        """The prepared set; built now if the files are there, otherwise refused with the command
        that gets them.
        """
        found = find(self._folder(None, seed), self._facts(seed))
        if found is not None:
            return found
        if self.has_files(data_root() / self.raw):
            return self.prepare(seed=seed)
        raise FarshoreError(
            f"{self.name} is not prepared in {data_root()}: type `farshore prepare "
            f"{self.set_name}` first"
        )

    def data_facts(self, seed: int) -> dict[str, str]:
        """The prepared set and a checksum over those of all its files, as the manifest has them."""
        found = self.open(seed)
        digests = json.dumps(
            {name: facts["sha256"] for name, facts in found.manifest["files"].items()},
            sort_keys=True,
        )
        return {
            "set": found.folder.name,
            "version": str(self.set_version),
            "sha256": hashlib.sha256(digests.encode()).hexdigest(),
        }

    def _fetch(self, raw: Path, root: str | Path | None, bar: Bar | None) -> None:
        given = f" --root {root}" if root is not None else ""
        fetch(self.files, raw, again=f"farshore prepare {self.set_name}{given}", bar=bar)

    def _folder(self, root: str | Path | None, seed: int) -> Path:
        return data_root(root) / "prepared" / f"{self.set_name}-seed-{seed}"

    def _facts(self, seed: int) -> dict[str, Any]:
        return {
            "set": self.set_name,
            "version": self.set_version,
            "seed": seed,
            "files": {f.name: f.sha256 for f in self.files},
        }
