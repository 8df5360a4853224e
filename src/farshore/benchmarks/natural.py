"""What benchmarks of natural sequences share: an order in time, and tables from one public file."""

import hashlib
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, ClassVar

from ..data.downloads.archives import read_gzip, unpack
from ..data.downloads.public_files import Bar
from ..data.scenario import arrange
from ..errors import FarshoreError
from .benchmark import Benchmark
from .prepared import PreparedBenchmark

# The largest public file has 19 MB.
LARGEST = 100_000_000
GZIP = b"\x1f\x8b"


class InTime(Benchmark):
    """Domains in chronological order: a target is predicted from those before it."""

    # Nothing after this domain is ever learned; None: any domain may be.
    last_source: ClassVar[str | None] = None

    @property
    def ordered_by_time(self) -> bool:
        """Yes."""
        return True

    def listed(self, target: str) -> list[str]:
        """Return the domains before the target; refuse a target that has none before it."""
        arrange(self.domains, target, None)
        before = list(self.domains[: self.domains.index(target)])
        if self.last_source is not None:
            before = [name for name in before if name in self._sources()]
        if not before:
            raise FarshoreError(
                f"{target!r} is the first domain of {self.name}, which are learned in "
                f"chronological order: choose a later target, for example {self.default_target}"
            )
        return before

    def each_target(self) -> dict[str, tuple[str, ...]]:
        """Return every domain that is never learned, or all but the first two if there is none."""
        learned = self._sources()
        targets = [name for name in self.domains if name not in learned] or self.domains[2:]
        used = {target: (target, *self.listed(target)) for target in targets}
        return {of: tuple(name for name in self.domains if name not in used[of]) for of in targets}

    def _sources(self) -> Sequence[str]:
        if self.last_source is None:
            return self.domains
        return self.domains[: self.domains.index(self.last_source) + 1]


class OneFile(PreparedBenchmark):
    """A table from one public file, in any of several forms; its contents are checked.

    `forms` are file names, searched in this order in ROOT/`raw`. Rows do not depend on the scenario
    seed, so that all seeds share one prepared set.
    """

    forms: ClassVar[tuple[str, ...]]

    def has_files(self, raw: Path) -> bool:
        """Whether one of the forms is there."""
        return any((raw / form).is_file() for form in self.forms)

    def read_text(self, raw: Path) -> bytes:
        """Return the table as CSV, with one line feed after each line."""
        path = next(raw / form for form in self.forms if (raw / form).is_file())
        if path.suffix == ".zip":
            with TemporaryDirectory(prefix="farshore-", ignore_cleanup_errors=True) as folder:
                written = unpack(path, Path(folder), limit=LARGEST)
                inner = [file for file in written if file.name in self.forms]
                if not inner:
                    raise FarshoreError(f"{path} contains none of {', '.join(self.forms)}")
                text = inner[0].read_bytes()
        else:
            with open(path, "rb") as file:
                packed = file.read(2) == GZIP
            text = read_gzip(path, limit=LARGEST) if packed else path.read_bytes()
        return text.replace(b"\r\n", b"\n")

    def refused(self, raw: Path, why: str) -> FarshoreError:
        """Return the error for a file that does not have the published rows."""
        found = ", ".join(form for form in self.forms if (raw / form).is_file())
        return FarshoreError(
            f"{found} in {raw} is not the published table: {why}; delete it and prepare again"
        )

    def _fetch(self, raw: Path, root: str | Path | None, bar: Bar | None) -> None:
        if not self.has_files(raw):
            super()._fetch(raw, root, bar)

    def _folder(self, root: str | Path | None, seed: int) -> Path:
        return super()._folder(root, 0)

    def _facts(self, seed: int) -> dict[str, Any]:
        return super()._facts(0)


def digest(contents: bytes) -> str:
    """Return the sha256 of these bytes."""
    return hashlib.sha256(contents).hexdigest()
