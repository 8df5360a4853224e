"""Benchmarks that build their domains once from public files and then memory-map them."""

import hashlib
import json
from abc import abstractmethod
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from ..base.randomness import derive
from ..data.domain import Domain
from ..data.downloads.prepared import Prepared, build, find
from ..data.downloads.public_files import Bar, PublicFile, absent, data_root, fetch
from ..errors import FarshoreError
from .benchmark import Benchmark, Made


class PreparedBenchmark(Benchmark):
    """A benchmark built from public files.

    `files` are searched in ROOT/`raw`. The domains of a scenario seed are stored in
    ROOT/prepared/`set_name`-seed-N.
    """

    raw: ClassVar[str]
    set_name: ClassVar[str]
    files: ClassVar[tuple[PublicFile, ...]]
    # How to get files that nobody may fetch for the user; empty if they are downloaded.
    by_hand: ClassVar[str] = ""
    # Share of a source's rows that are validation rows.
    held_out: ClassVar[float] = 0.2
    # Increased by hand when the way the domains are built changes.
    set_version: ClassVar[int] = 1
    # Facts that `build_domains` records for the result; stored in the manifest.
    about: dict[str, Any]

    @abstractmethod
    def build_domains(self, raw: Path, seed: int) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
        """Yield name, inputs and labels of every domain, from the official files in `raw`."""

    def make(self, sources: Sequence[str], target: str, seed: int) -> Made:
        """Make the domains; rows and splits do not depend on the order or the target."""
        prepared = self.open(seed)
        numbers = {name: number for number, name in enumerate(prepared.domains)}

        def make_domain(name: str) -> Domain:
            split_seed = derive(seed, self.set_name, numbers[name])
            rows = prepared.read(name)
            return Domain.divided(name, *rows, validation=self.held_out, seed=split_seed)

        domains = [make_domain(name) for name in sources]
        return domains, lambda: make_domain(target), self.notes(prepared)

    def notes(self, prepared: Prepared) -> tuple[str, ...]:
        """Return notes for the result on what was prepared."""
        return ()

    def has_files(self, raw: Path) -> bool:
        """Whether `raw` contains what `build_domains` needs."""
        return not absent(self.files, raw)

    def prepare(
        self, root: str | Path | None = None, *, seed: int = 0, bar: Bar | None = None
    ) -> Prepared:
        """Download missing files, build the set if necessary, and check an existing one."""
        folder = self._folder(root, seed)
        prepared = find(folder, self._facts(seed))
        if prepared is not None and prepared.verify():
            return prepared
        if prepared is not None:
            # The sizes are right but the contents changed: without a manifest it counts as missing.
            (folder / "manifest.json").unlink()
        raw = data_root(root) / self.raw
        self._fetch(raw, root, bar)
        self.about = {}
        return build(folder, self._facts(seed), self.build_domains(raw, seed), self.about)

    def missing(self, seed: int = 0, *, plan_only: bool = False) -> str | None:
        """Return the command to get the data; None if they are prepared or their files exist."""
        if plan_only:
            return None
        built = find(self._folder(None, seed), self._facts(seed)) is not None
        available = built or self.has_files(data_root() / self.raw)
        return None if available else f"type `farshore prepare {self.set_name}` first"

    def open(self, seed: int) -> Prepared:
        """Return the prepared set; build it now from raw files, or name the command to get them."""
        prepared = find(self._folder(None, seed), self._facts(seed))
        if prepared is not None:
            return prepared
        if self.has_files(data_root() / self.raw):
            return self.prepare(seed=seed)
        raise FarshoreError(f"{self.name} is not prepared in {data_root()}: {self.missing(seed)}")

    def data_facts(self, seed: int) -> dict[str, str]:
        """Return the prepared set and a checksum of the file checksums in its manifest."""
        prepared = self.open(seed)
        files = prepared.manifest["files"].items()
        digests = json.dumps({name: facts["sha256"] for name, facts in files}, sort_keys=True)
        digest = hashlib.sha256(digests.encode()).hexdigest()
        return {"set": prepared.folder.name, "version": str(self.set_version), "sha256": digest}

    def _fetch(self, raw: Path, root: str | Path | None, bar: Bar | None) -> None:
        if not self.by_hand:
            fetch(self.files, raw, again=self._again(root), bar=bar)
        elif not self.has_files(raw):
            why = self.by_hand.format(raw=raw)
            raise FarshoreError(f"{why} and type `farshore prepare {self.raw}` again")

    def _again(self, root: str | Path | None) -> str:
        """Return the command that prepares the set."""
        return f"farshore prepare {self.set_name}" + (f" --root {root}" if root is not None else "")

    def _folder(self, root: str | Path | None, seed: int) -> Path:
        return data_root(root) / "prepared" / f"{self.set_name}-seed-{seed}"

    def _facts(self, seed: int) -> dict[str, Any]:
        files = {f.name: f.sha256 for f in self.files}
        return {"set": self.set_name, "version": self.set_version, "seed": seed, "files": files}
