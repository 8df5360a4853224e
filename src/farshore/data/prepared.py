"""Prepared domains: built once, kept as memory-mapped arrays with a manifest.

A set is built in a folder beside its own, forced to the disk and renamed as its last act: a killed
or full-disk build leaves nothing that looks whole. Later runs read the manifest and map the arrays,
which takes milliseconds.
"""

from __future__ import annotations

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

from ..errors import FarshoreError
from .public_files import checksum

FORMAT = "farshore-prepared"
VERSION = 1
MANIFEST = "manifest.json"


@dataclass(frozen=True)
class Prepared:
    """A whole prepared set: `domains` maps each name to its row count, in the order in which
    they were built.
    """

    folder: Path
    manifest: Mapping[str, Any]

    @property
    def domains(self) -> dict[str, int]:
        """Rows by domain."""
        return {domain["name"]: domain["rows"] for domain in self.manifest["domains"]}

    @property
    def about(self) -> Mapping[str, Any]:
        """What was found while the set was built: where it came from, its classes, what was left
        out.
        """
        about: Mapping[str, Any] = self.manifest.get("about", {})
        return about

    @property
    def bytes(self) -> int:
        """Bytes of all arrays."""
        return sum(facts["bytes"] for facts in self.manifest["files"].values())

    def read(self, name: str) -> tuple[np.ndarray, Tensor]:
        """The memory-mapped inputs of a domain and its labels."""
        place = list(self.domains).index(name)
        inputs = np.load(self.folder / f"{place:02d}-inputs.npy", mmap_mode="r", allow_pickle=False)
        labels = np.load(self.folder / f"{place:02d}-labels.npy", allow_pickle=False)
        return inputs, torch.from_numpy(labels).long()

    def verify(self) -> bool:
        """Whether every array still has the checksum of the manifest."""
        return all(
            checksum(self.folder / name) == facts["sha256"]
            for name, facts in self.manifest["files"].items()
        )


def find(folder: Path, settings: Mapping[str, Any]) -> Prepared | None:
    """The set in `folder` if it is whole and was built with these settings, else None."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        same = (manifest["format"], manifest["version"], manifest["settings"]) == (
            FORMAT,
            VERSION,
            dict(settings),
        )
        whole = all(
            (folder / name).stat().st_size == facts["bytes"]
            for name, facts in manifest["files"].items()
        )
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return Prepared(folder, manifest) if same and whole else None


def build(
    folder: Path,
    settings: Mapping[str, Any],
    domains: Iterable[tuple[str, np.ndarray, np.ndarray]],
    about: Mapping[str, Any] | None = None,
) -> Prepared:
    """Write (name, inputs, labels) of each domain and, last of all, give the set its name.

    `about` is read when all domains are written: what making them found goes into the manifest with
    them.
    """
    beside = (
        folder.parent
        / f".building-{folder.name}-{socket.gethostname()}-{os.getpid()}-{uuid.uuid4().hex[:8]}"
    )
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        _sweep(folder)
        beside.mkdir()
        manifest = _write_arrays(beside, settings, domains) | (
            {"about": dict(about)} if about else {}
        )
        with open(beside / MANIFEST, "wb") as file:
            file.write(json.dumps(manifest, indent=1).encode())
            _force(file)
        _take_place(beside, folder, settings)
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EFBIG, errno.EDQUOT)
        reason = "the disk is full" if full else error.strerror or str(error)
        raise FarshoreError(
            f"could not prepare {folder}: {reason}; nothing half-made was left: make room or "
            "choose another --root"
        ) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    found = find(folder, settings)
    if found is None:
        raise FarshoreError(f"{folder} changed while it was prepared: prepare it again")
    return found


def _write_arrays(
    folder: Path, settings: Mapping[str, Any], domains: Iterable[tuple[str, np.ndarray, np.ndarray]]
) -> dict[str, Any]:
    files: dict[str, dict[str, Any]] = {}
    listed: list[dict[str, Any]] = []
    for place, (name, inputs, labels) in enumerate(domains):
        for kind, array in (("inputs", inputs), ("labels", labels)):
            path = folder / f"{place:02d}-{kind}.npy"
            with open(path, "wb") as raw:
                hashed = _Hashed(raw)
                np.lib.format.write_array(hashed, np.ascontiguousarray(array), allow_pickle=False)
                _force(raw)
            files[path.name] = {"sha256": hashed.digest.hexdigest(), "bytes": hashed.bytes}
        classes, counts = np.unique(labels, return_counts=True)
        listed.append(
            {
                "name": name,
                "rows": len(labels),
                "shape": list(inputs.shape[1:]),
                "dtype": str(inputs.dtype),
                "classes": {str(int(c)): int(n) for c, n in zip(classes, counts, strict=True)},
            }
        )
    return {
        "format": FORMAT,
        "version": VERSION,
        "settings": dict(settings),
        "domains": listed,
        "files": files,
    }


def _take_place(beside: Path, folder: Path, settings: Mapping[str, Any]) -> None:
    """Rename into place. Another process may have been faster, or a damaged set may stand there."""
    if folder.exists() and find(folder, settings) is None:
        old = beside.with_name(beside.name + "-old")
        os.rename(folder, old)
        shutil.rmtree(old, ignore_errors=True)
    try:
        os.rename(beside, folder)
    except OSError:
        if find(folder, settings) is None:
            raise


def _sweep(folder: Path) -> None:
    """Remove what killed builds of this machine left behind. Builds that still run are left
    alone.
    """
    start = f".building-{folder.name}-{socket.gethostname()}-"
    for left in folder.parent.glob(f"{start}*"):
        owner = left.name.removeprefix(start).split("-")[0]
        if owner.isdigit() and not _alive(int(owner)):
            shutil.rmtree(left, ignore_errors=True)


def _alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _force(file: IO[bytes]) -> None:
    file.flush()
    os.fsync(file.fileno())


class _Hashed:
    """A file that is hashed while it is written."""

    def __init__(self, file: IO[bytes]) -> None:
        self.file = file
        self.digest = hashlib.sha256()
        self.bytes = 0

    def write(self, data: bytes) -> int:
        """Write and remember."""
        self.digest.update(data)
        self.bytes += len(data)
        return self.file.write(data)
