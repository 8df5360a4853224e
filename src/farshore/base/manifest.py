"""The manifest of a folder of saved state: its files, their checksums, and what is left to delete.

Reading it needs no PyTorch, and neither does the summary that a state may have beside it.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import StateError
from .files import TEMPORARY_END, reason, state_errors

FORMAT = "farshore-state"
VERSION = 1
READABLE = (1,)
MANIFEST = "manifest.json"
LARGEST_MANIFEST = 1 << 20
# The manifest's entries for one state: the files of each part, and facts about every file.
STATE = ("parts", "files")
# The names of our files. Nothing else in a folder is ever deleted.
_WRITTEN = r"(?:state-\w+-[0-9a-f]{12}\.json|tensors-\w+-[0-9a-f]{12}\.safetensors)"
OWN = re.compile(rf"{_WRITTEN}|\.(?:{_WRITTEN}|manifest\.json){TEMPORARY_END}")
# The part that says in plain values what the state is, for those who only want to read that.
SUMMARY = "summary"


def read_manifest(folder: Path, kind: str) -> dict[str, Any]:
    """The checked manifest of a state of this kind."""
    path = folder / MANIFEST
    if not folder.exists():
        raise StateError(f"{folder} does not exist: there is no saved {kind}")
    if not path.is_file():
        raise StateError(f"{folder} contains no saved {kind}: there is no {MANIFEST} in it")
    try:
        if path.stat().st_size > LARGEST_MANIFEST:
            raise ValueError(f"it has {path.stat().st_size} bytes")
        manifest = dict(json.loads(path.read_bytes()))
        form, version, saved_kind = (manifest[key] for key in ("format", "version", "kind"))
        if form == FORMAT and version in READABLE and saved_kind == kind:
            for state in (manifest, manifest.get("previous")):
                _check_files(state, kind)
            if not all(isinstance(name, str) for name in manifest.get("obsolete", ())):
                raise ValueError("its list of obsolete files is wrong")
            return manifest
    except (OSError, KeyError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise StateError(f"{path} is damaged: {error}") from error
    if form != FORMAT or saved_kind != kind:
        raise StateError(f"{folder} contains a {form} of kind {saved_kind!r}, not a saved {kind}")
    raise StateError(
        f"{folder} has state version {version!r}; this farshore reads "
        f"{' and '.join(map(str, READABLE))}: use the farshore that wrote it; to convert it, load "
        "and save it with a version that reads both"
    )


def _check_files(state: Any, kind: str) -> None:
    """Check that a state's entries name plain files in the folder, with checksum and size."""
    if state is None:
        return
    named = state["files"].items()
    files = {str(name): (str(of["sha256"]), int(of["bytes"])) for name, of in named}
    if any(Path(name).name != name for name in files):
        raise ValueError("its list of files is wrong")
    for part in state["parts"].values():
        if "tree" not in part or not {str(name) for name in part.values()} <= set(files):
            raise ValueError("its list of files is wrong")
    if kind not in state["parts"]:
        raise ValueError(f"it names no {kind}")


def read_files(folder: Path, manifest: Mapping[str, Any]) -> dict[str, bytes]:
    """The contents of all files of the current state, their checksums verified."""
    return {name: read_checked(folder / name, facts) for name, facts in manifest["files"].items()}


def read_checked(path: Path, facts: Mapping[str, Any]) -> bytes:
    """The content of a file, if it has the size and the checksum that the manifest says."""
    with state_errors(f"{path} cannot be read"):
        if path.exists() and not path.is_file():
            raise StateError(f"{path} is damaged: it is not a file")
        if (size := path.stat().st_size) != facts["bytes"]:
            why = f"it has {size} bytes, the manifest says {facts['bytes']}"
            raise StateError(f"{path} is damaged: {why}")
        data = path.read_bytes()
    if digest(data) != facts["sha256"]:
        raise StateError(f"{path} is damaged: its checksum is not the one in the manifest")
    return data


def digest(data: bytes) -> str:
    """The checksum of a file."""
    return hashlib.sha256(data).hexdigest()


def listed(manifest: Mapping[str, Any]) -> set[str]:
    """The files of the current and the previous state."""
    return {*manifest["files"], *((manifest.get("previous") or {}).get("files", ()))}


def own_files(folder: Path) -> list[Path]:
    """The files in the folder whose names are ours."""
    return [path for path in folder.iterdir() if OWN.fullmatch(path.name)]


def refuse_link(folder: Path) -> None:
    """Refuse a manifest that is a link."""
    path = folder / MANIFEST
    if path.is_symlink():
        raise StateError(
            f"{path} is a link, and nothing is written through links: replace it by the file "
            "itself, or save into another folder"
        )


def remove_orphans(folder: Path, *, kind: str) -> None:
    """Delete the files of states that the manifest does not name, and what killed writers left.

    Only for the one process that may write into the folder: a save in progress would lose its
    files.
    """
    kept = listed(read_manifest(folder, kind))
    delete(path for path in own_files(folder) if path.name not in kept)


def remove_obsolete(folder: Path, *, kind: str) -> None:
    """Delete what the last save or undo, if it was killed, left as obsolete; safe at any time."""
    delete(obsolete_files(folder, read_manifest(folder, kind)))


def obsolete_files(folder: Path, manifest: Mapping[str, Any]) -> list[Path]:
    """What the last save or undo, if it was killed, left behind."""
    names = set(manifest.get("obsolete", ())) - listed(manifest)
    return [path for path in own_files(folder) if path.name in names]


def delete(files: Iterable[Path]) -> None:
    """Delete these files, as far as they exist."""
    for path in files:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StateError(
                f"the obsolete file {path} could not be deleted: {reason(error)}; delete it by hand"
            ) from error


def is_free(folder: Path) -> bool:
    """Whether a first state may be written here: nothing lies in it but what a killed one left."""
    if not folder.is_dir():
        return not folder.exists() and not folder.is_symlink()
    return not (folder / MANIFEST).exists() and all(
        path.name.startswith(".") or (OWN.fullmatch(path.name) and path.is_file())
        for path in folder.iterdir()
    )


def read_summary(folder: Path, *, kind: str) -> Any:
    """The summary of the state in the folder; None if it has none that was written with it.

    Every checksum is verified, also those of the state itself.
    """
    manifest = read_manifest(folder, kind)
    part = manifest["parts"].get(SUMMARY)
    if part is None:
        return None
    contents = read_files(folder, manifest)
    try:
        saved = json.loads(contents[part["tree"]])
        return saved["summary"] if saved["of"] == digests(manifest) else None
    except (KeyError, TypeError, ValueError, RecursionError):
        return None


def digests(manifest: Mapping[str, Any]) -> list[str]:
    """The checksums of the files of all parts but the summary."""
    parts = manifest["parts"].items()
    files = [file for name, part in parts if name != SUMMARY for file in part.values()]
    return sorted(manifest["files"][file]["sha256"] for file in files)
