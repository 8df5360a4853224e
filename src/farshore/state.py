"""State on disk: a folder with safetensors and JSON files and a manifest with checksums.

A save writes new files next to the old ones and finally replaces `manifest.json` by an atomic
rename. Until then the folder still contains the complete previous state. Afterwards the previous
files are deleted or, if requested, kept for `undo`; the manifest then lists them too. Nothing is
pickled, and loading a state cannot run code.
"""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from .errors import StateError

FORMAT = "farshore-state"
VERSION = 1
READABLE = (1,)
MANIFEST = "manifest.json"
LARGEST_MANIFEST = 1 << 20
# The manifest's entries for one state: the files of each part, and facts about every file.
STATE = ("parts", "files")

Tree = Mapping[str, Any]


def save_state(
    folder: str | Path,
    state: Tree,
    *,
    kind: str,
    records: Mapping[str, Tree] | None = None,
    keep_previous: bool = False,
) -> None:
    """Write the tree `state` (dictionaries, lists, plain values, tensors) into `folder`,
    atomically.

    records: further trees by name, saved in files of their own together with the state. If None,
        the records already in the folder stay as they are.
    keep_previous: keep the previous state next to the new one, for `undo`.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise StateError(f"{folder} is a file: give a folder to save into")
    current = None
    if (folder / MANIFEST).is_file() and (keep_previous or records is None):
        try:
            current = _read_manifest(folder, kind)
        except StateError:
            if keep_previous:
                raise
            # Nothing readable is replaced: a damaged folder must not prevent a new save.
    previous = {key: current[key] for key in STATE} if keep_previous and current else None
    tag = uuid.uuid4().hex[:12]
    parts: dict[str, dict[str, str]] = {}
    contents: dict[str, bytes] = {}
    for name, tree in {kind: state, **(records or {})}.items():
        parts[name], written = _written(tree, name, tag)
        contents |= written
    files = {name: {"sha256": _digest(data), "bytes": len(data)} for name, data in contents.items()}
    if records is None and current is not None:
        for name, part in current["parts"].items():
            if name != kind:
                parts[name] = part
                files |= {file: current["files"][file] for file in part.values()}
    manifest = {
        "format": FORMAT,
        "version": VERSION,
        "kind": kind,
        "parts": parts,
        "files": files,
        "previous": previous,
    }
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name, data in contents.items():
            write_atomic(folder / name, data)
        write_atomic(folder / MANIFEST, json.dumps(manifest, indent=1).encode())
    except OSError as error:
        for name in contents:
            (folder / name).unlink(missing_ok=True)
        raise StateError(
            f"could not save into {folder}: {error.strerror or error}; what was saved before "
            "is untouched"
        ) from error
    _clear(folder, {*files, *(previous["files"] if previous is not None else ())})


def _written(tree: Tree, name: str, tag: str) -> tuple[dict[str, str], dict[str, bytes]]:
    """The file names of a part, and the contents of these files."""
    tensors: dict[str, torch.Tensor] = {}
    encoded = json.dumps(_encode(tree, "", tensors), allow_nan=True).encode()
    part = {"tree": f"state-{name}-{tag}.json"}
    contents = {part["tree"]: encoded}
    if tensors:
        part["tensors"] = f"tensors-{name}-{tag}.safetensors"
        contents[part["tensors"]] = save_tensors(tensors)
    return part, contents


def current_tag(folder: str | Path, *, kind: str) -> str:
    """A text that identifies the folder's current state. It changes with every save."""
    return str(_read_manifest(Path(folder), kind)["parts"][kind]["tree"])


def undo(folder: str | Path, *, kind: str) -> None:
    """Make the previous state the current one again, atomically; the newer one is deleted."""
    folder = Path(folder)
    manifest = _read_manifest(folder, kind)
    previous = manifest.get("previous")
    if previous is None:
        raise StateError(
            f"{folder} keeps no previous version: only the last save can be undone, once"
        )
    for name, facts in previous["files"].items():
        _read_checked(folder / name, facts)
    restored = json.dumps(manifest | previous | {"previous": None}, indent=1).encode()
    write_atomic(folder / MANIFEST, restored)
    _clear(folder, set(previous["files"]))


def _clear(folder: Path, kept: set[str]) -> None:
    """Delete the files of states that the manifest does not name, and what killed writers left."""
    patterns = (".state-*", ".tensors-*", f".{MANIFEST}.*", "state-*.json", "tensors-*.safetensors")
    for pattern in patterns:
        for old in folder.glob(pattern):
            if old.name not in kept:
                old.unlink(missing_ok=True)


def load_state(folder: str | Path, *, kind: str) -> dict[str, Any]:
    """Read the state that `save_state` wrote."""
    return load_parts(folder, kind=kind)[kind]


def load_parts(folder: str | Path, *, kind: str) -> dict[str, dict[str, Any]]:
    """The state, under the name of its kind, and the records saved with it.

    Every file is checked against its checksum before it is read.
    """
    folder = Path(folder)
    manifest = _read_manifest(folder, kind)
    try:
        contents = _read_files(folder, manifest)
    except StateError:
        again = _read_manifest(folder, kind)
        if again["parts"] == manifest["parts"]:
            raise
        contents, manifest = (
            _read_files(folder, again),
            again,
        )  # another process has saved in the meantime
    try:
        return {name: _read_part(part, contents) for name, part in manifest["parts"].items()}
    except (
        KeyError,
        IndexError,
        TypeError,
        ValueError,
        RecursionError,
        SafetensorError,
    ) as error:
        raise StateError(f"{folder} is damaged: its files do not fit together ({error})") from error


def _read_part(part: Mapping[str, str], contents: Mapping[str, bytes]) -> dict[str, Any]:
    tensors = load_tensors(contents[part["tensors"]]) if "tensors" in part else {}
    decoded = _decode(json.loads(contents[part["tree"]]), tensors)
    if not isinstance(decoded, dict):
        raise ValueError("a state is a dictionary")
    return decoded


def write_atomic(path: Path, data: bytes) -> None:
    """Write to a temporary file, flush it to disk, then rename it to `path`.

    The file is therefore always either the old or the complete new one.
    """
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex[:8]}")
    try:
        with open(temporary, "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _read_manifest(folder: Path, kind: str) -> dict[str, Any]:
    path = folder / MANIFEST
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
    files = {
        str(name): (str(facts["sha256"]), int(facts["bytes"]))
        for name, facts in state["files"].items()
    }
    if any(Path(name).name != name for name in files):
        raise ValueError("its list of files is wrong")
    for part in state["parts"].values():
        if "tree" not in part or not {str(name) for name in part.values()} <= set(files):
            raise ValueError("its list of files is wrong")
    if kind not in state["parts"]:
        raise ValueError(f"it names no {kind}")


def _read_files(folder: Path, manifest: Mapping[str, Any]) -> dict[str, bytes]:
    return {name: _read_checked(folder / name, facts) for name, facts in manifest["files"].items()}


def _read_checked(path: Path, facts: Mapping[str, Any]) -> bytes:
    try:
        if path.exists() and not path.is_file():
            raise StateError(f"{path} is damaged: it is not a file")
        if path.stat().st_size != facts["bytes"]:
            raise StateError(
                f"{path} is damaged: it has {path.stat().st_size} bytes, the manifest says "
                f"{facts['bytes']}"
            )
        data = path.read_bytes()
    except OSError as error:
        raise StateError(f"{path} cannot be read: {error.strerror or error}") from error
    if _digest(data) != facts["sha256"]:
        raise StateError(f"{path} is damaged: its checksum is not the one in the manifest")
    return data


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _encode(node: Any, path: str, tensors: dict[str, torch.Tensor]) -> Any:
    """A JSON tree in which tensors are references into `tensors`. Keys may be of any plain type."""
    if isinstance(node, torch.Tensor):
        tensors[path] = node.detach().cpu().clone().contiguous()
        return {"$tensor": path}
    if isinstance(node, tuple):
        return {"$tuple": [_encode(item, f"{path}/{i}", tensors) for i, item in enumerate(node)]}
    if isinstance(node, list):
        return [_encode(item, f"{path}/{i}", tensors) for i, item in enumerate(node)]
    if isinstance(node, Mapping):
        if all(isinstance(key, str) and not key.startswith("$") for key in node):
            return {key: _encode(value, f"{path}/{key}", tensors) for key, value in node.items()}
        return {
            "$items": [
                [key, _encode(value, f"{path}/{key}", tensors)] for key, value in node.items()
            ]
        }
    if node is None or isinstance(node, bool | int | float | str):
        return node
    raise TypeError(
        f"state may contain only tensors and plain values, not {type(node).__name__} "
        f"at {path or '/'}"
    )


def _decode(node: Any, tensors: Mapping[str, torch.Tensor]) -> Any:
    if isinstance(node, list):
        return [_decode(item, tensors) for item in node]
    if isinstance(node, dict):
        if set(node) == {"$tensor"}:
            return tensors[node["$tensor"]]
        if set(node) == {"$tuple"}:
            return tuple(_decode(item, tensors) for item in node["$tuple"])
        if set(node) == {"$items"}:
            return {key: _decode(value, tensors) for key, value in node["$items"]}
        return {key: _decode(value, tensors) for key, value in node.items()}
    return node
