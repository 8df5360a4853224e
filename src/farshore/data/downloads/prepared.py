"""Prepared domains: built once, kept as memory-mapped arrays with a manifest.

A set is built in a temporary folder next to its own, flushed to the disk and renamed at the very
end: a build that is killed or fills the disk leaves nothing that looks complete. Later runs read
the manifest and map the arrays, which takes milliseconds.
"""

import errno
import hashlib
import json
import os
import shutil
import socket
import uuid
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import numpy as np
import torch
from torch import Tensor

from ...base.lock import is_running
from ...errors import FarshoreError
from .public_files import checksum

FORMAT = "farshore-prepared"
VERSION = 1
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Prepared:
    """A complete set; `domains` maps names to rows, in build order; every n-th row is read."""

    folder: Path
    manifest: Mapping[str, Any]
    every: int = 1

    @property
    def domains(self) -> dict[str, int]:
        """Number of rows by domain."""
        return {domain["name"]: domain["rows"] for domain in self.manifest["domains"]}

    @property
    def about(self) -> Mapping[str, Any]:
        """Facts recorded during the build: origin, classes, what was left out."""
        return self.manifest.get("about", {})

    @property
    def bytes(self) -> int:
        """Total size of all arrays in bytes."""
        return sum(facts["bytes"] for facts in self.manifest["files"].values())

    def read(self, name: str) -> tuple[np.ndarray, Tensor]:
        """Return the memory-mapped inputs of a domain, and its labels."""
        number = list(self.domains).index(name)
        files = (self.folder / f"{number:02d}-{kind}.npy" for kind in ("inputs", "labels"))
        inputs, labels = (np.load(file, mmap_mode="r", allow_pickle=False) for file in files)
        return inputs[:: self.every], torch.from_numpy(np.array(labels[:: self.every])).long()

    def verify(self) -> bool:
        """Whether every array still has the checksum in the manifest."""
        files = self.manifest["files"].items()
        return all(checksum(self.folder / name) == facts["sha256"] for name, facts in files)


def find(folder: Path, settings: Mapping[str, Any]) -> Prepared | None:
    """Return the set in `folder` if it is complete and was built with these settings, else None."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        expected = {"format": FORMAT, "version": VERSION, "settings": dict(settings)}
        same = all(manifest[name] == value for name, value in expected.items())
        sizes = {folder / name: facts["bytes"] for name, facts in manifest["files"].items()}
        complete = all(file.stat().st_size == size for file, size in sizes.items())
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return Prepared(folder, manifest) if same and complete else None


def build(
    folder: Path,
    settings: Mapping[str, Any],
    domains: Iterable[tuple[str, np.ndarray, np.ndarray]],
    about: Mapping[str, Any] | None = None,
) -> Prepared:
    """Write each domain, then rename the set; `about` is read last, it may be filled meanwhile."""
    own = f"{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    building = folder.parent / f".building-{folder.name}-{own}"
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _remove_stale_builds(folder)
        building.mkdir()
        manifest = _write_arrays(building, settings, domains)
        manifest |= {"about": dict(about)} if about else {}
        with open(building / MANIFEST, "wb") as file:
            file.write(json.dumps(manifest, indent=1).encode())
            _flush_to_disk(file)
        _move_into_place(building, folder, settings)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
        reason = "the disk is full" if full else error.strerror or str(error)
        raise FarshoreError(
            f"could not prepare {folder}: {reason}; nothing incomplete was left: free some "
            "space or choose another --root"
        ) from None
    finally:
        shutil.rmtree(building, ignore_errors=True)
    prepared = find(folder, settings)
    if prepared is None:
        raise FarshoreError(f"{folder} changed while it was prepared: prepare it again")
    return prepared


def _write_arrays(
    folder: Path, settings: Mapping[str, Any], domains: Iterable[tuple[str, np.ndarray, np.ndarray]]
) -> dict[str, Any]:
    files: dict[str, dict[str, Any]] = {}
    domain_facts: list[dict[str, Any]] = []
    for number, (name, inputs, labels) in enumerate(domains):
        for kind, array in (("inputs", inputs), ("labels", labels)):
            path = folder / f"{number:02d}-{kind}.npy"
            with open(path, "wb") as raw:
                hashed = _Hashed(raw)
                np.lib.format.write_array(hashed, np.ascontiguousarray(array), allow_pickle=False)
                _flush_to_disk(raw)
            files[path.name] = {"sha256": hashed.digest.hexdigest(), "bytes": hashed.bytes}
        classes, counts = np.unique(labels, return_counts=True)
        of_class = {str(int(c)): int(n) for c, n in zip(classes, counts, strict=True)}
        form = {"shape": list(inputs.shape[1:]), "dtype": str(inputs.dtype)}
        domain_facts.append({"name": name, "rows": len(labels), **form, "classes": of_class})
    head = {"format": FORMAT, "version": VERSION, "settings": dict(settings)}
    return {**head, "domains": domain_facts, "files": files}


def _move_into_place(building: Path, folder: Path, settings: Mapping[str, Any]) -> None:
    """Rename the finished build; another process may have been faster, or left a damaged set."""
    if folder.exists() and find(folder, settings) is None:
        old = building.with_name(building.name + "-old")
        os.rename(folder, old)
        shutil.rmtree(old, ignore_errors=True)
    try:
        os.rename(building, folder)
    except OSError:
        if find(folder, settings) is None:
            raise


def _remove_stale_builds(folder: Path) -> None:
    """Remove the folders of killed builds on this machine; running builds are left alone."""
    prefix = f".building-{folder.name}-{socket.gethostname()}-"
    for stale in folder.parent.glob(f"{prefix}*"):
        owner = stale.name.removeprefix(prefix).split("-")[0]
        if owner.isdigit() and not is_running(int(owner)):
            shutil.rmtree(stale, ignore_errors=True)


def _flush_to_disk(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


class _Hashed:
    """A file that is hashed while it is written."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.digest = hashlib.sha256()
        self.bytes = 0

    def write(self, data: bytes) -> int:
        """Write `data`, and add it to the checksum and the byte count."""
        self.digest.update(data)
        self.bytes += len(data)
        return self.file.write(data)
