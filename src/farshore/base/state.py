"""State on disk: a folder with safetensors and JSON files and a manifest with checksums.

A save writes new files next to the old ones and finally replaces `manifest.json` by an atomic
rename. Until then the folder still contains the complete previous state. Afterwards the previous
files are deleted or, if requested, kept for `undo`; the manifest then lists them too. The manifest
also names the files that it makes obsolete: if the process is killed before it has deleted them,
whoever opens the folder next does. Nothing is pickled, and loading a state cannot run code.
"""

from __future__ import annotations

import hashlib
import json
import re
import uuid
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from ..errors import StateError
from .files import TEMPORARY_END, reason, sync_folder, write_atomic

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
    _refuse_link(folder)
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
    files = _facts(contents)
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
    existed = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_all(folder, contents, manifest)
    except OSError as error:
        if not existed:
            with suppress(OSError):
                folder.rmdir()
        raise StateError(
            f"could not save into {folder}: {reason(error)}; what was saved before is untouched"
        ) from error
    remove_orphans(folder, kind=kind)


def _write_all(folder: Path, contents: Mapping[str, bytes], manifest: dict[str, Any]) -> None:
    """Write these files and make the manifest the current one; after an error nothing is left."""
    try:
        for name, data in contents.items():
            write_atomic(folder / name, data)
        _commit(folder, manifest)
    except OSError:
        for name in contents:
            with suppress(OSError):
                (folder / name).unlink(missing_ok=True)
        raise


def _facts(contents: Mapping[str, bytes]) -> dict[str, dict[str, Any]]:
    """Checksum and size of every file."""
    return {name: {"sha256": _digest(data), "bytes": len(data)} for name, data in contents.items()}


def _commit(folder: Path, manifest: dict[str, Any]) -> None:
    """Replace the manifest, the one step that makes another state the current one."""
    kept = _listed(manifest)
    obsolete = sorted(path.name for path in _own_files(folder) if path.name not in kept)
    sync_folder(folder)
    write_atomic(
        folder / MANIFEST, json.dumps(manifest | {"obsolete": obsolete}, indent=1).encode()
    )
    sync_folder(folder)


def _listed(manifest: Mapping[str, Any]) -> set[str]:
    """The files of the current and the previous state."""
    return {*manifest["files"], *((manifest.get("previous") or {}).get("files", ()))}


def _own_files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if OWN.fullmatch(path.name)]


def _refuse_link(folder: Path) -> None:
    path = folder / MANIFEST
    if path.is_symlink():
        raise StateError(
            f"{path} is a link, and nothing is written through links: replace it by the file "
            "itself, or save into another folder"
        )


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


def undo(folder: str | Path, *, kind: str, records: Mapping[str, Tree] | None = None) -> None:
    """Make the previous state the current one again, atomically; the newer one is deleted.

    records: trees by name that take the place of those of the previous state, or are added to it.
    """
    folder = Path(folder)
    previous = check_undo(folder, kind=kind)
    if previous is not None:
        manifest = _read_manifest(folder, kind)
        parts, files = dict(previous["parts"]), dict(previous["files"])
        contents: dict[str, bytes] = {}
        for name, tree in (records or {}).items():
            for file in parts.get(name, {}).values():
                files.pop(file, None)
            parts[name], written = _written(tree, name, uuid.uuid4().hex[:12])
            contents |= written
            files |= _facts(written)
        restored = {"parts": parts, "files": files, "previous": None, "undone": True}
        try:
            _write_all(folder, contents, manifest | restored)
        except OSError as error:
            raise StateError(
                f"{folder} is unchanged, it cannot be written: {reason(error)}"
            ) from error
    remove_orphans(folder, kind=kind)


def check_undo(folder: str | Path, *, kind: str) -> dict[str, Any] | None:
    """The manifest's entries for the previous state; an error if there is none, or it is damaged.

    None if an undo was killed before it had deleted the newer state: only this is left to do.
    """
    folder = Path(folder)
    manifest = _read_manifest(folder, kind)
    previous: dict[str, Any] | None = manifest.get("previous")
    if previous is None:
        if manifest.get("undone") and _obsolete(folder, manifest):
            return None
        done = " any more: the last undo was carried out" if manifest.get("undone") else ""
        raise StateError(
            f"{folder} keeps no previous version{done}: only the last save can be undone, once"
        )
    _refuse_link(folder)
    for name, facts in previous["files"].items():
        _read_checked(folder / name, facts)
    return previous


def remove_state(folder: Path, *, kind: str) -> None:
    """Delete the files of a state, and the folder unless something else lies in it."""
    if not folder.is_dir():
        return
    try:
        saved_kind = json.loads((folder / MANIFEST).read_bytes())["kind"]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        saved_kind = kind  # no manifest, or a damaged one
    if saved_kind != kind:
        raise StateError(
            f"{folder} contains a saved {saved_kind}, not a {kind}: nothing is deleted"
        )
    _delete([folder / MANIFEST, *_own_files(folder)])
    with suppress(OSError):
        folder.rmdir()


def remove_orphans(folder: Path, *, kind: str) -> None:
    """Delete the files of states that the manifest does not name, and what killed writers left.

    Only for the one process that may write into the folder: a save in progress would lose its
    files.
    """
    kept = _listed(_read_manifest(folder, kind))
    _delete(path for path in _own_files(folder) if path.name not in kept)


def remove_obsolete(folder: Path, *, kind: str) -> None:
    """Delete what the last save or undo, if it was killed, left as obsolete; safe at any time."""
    _delete(_obsolete(folder, _read_manifest(folder, kind)))


def _obsolete(folder: Path, manifest: Mapping[str, Any]) -> list[Path]:
    names = set(manifest.get("obsolete", ())) - _listed(manifest)
    return [path for path in _own_files(folder) if path.name in names]


def _delete(files: Iterable[Path]) -> None:
    for path in files:
        try:
            path.unlink(missing_ok=True)
        except OSError as error:
            raise StateError(
                f"the obsolete file {path} could not be deleted: {reason(error)}; delete it by hand"
            ) from error


def is_unfinished(folder: Path) -> bool:
    """Whether there is no manifest, and nothing but our files of a killed first save."""
    return not (folder / MANIFEST).exists() and all(
        path.name.startswith(".") or (OWN.fullmatch(path.name) and path.is_file())
        for path in folder.iterdir()
    )


def load_state(folder: str | Path, *, kind: str) -> dict[str, Any]:
    """Read the state that `save_state` wrote."""
    return load_parts(folder, kind=kind)[kind]


def load_parts(folder: str | Path, *, kind: str) -> dict[str, dict[str, Any]]:
    """The state, under the name of its kind, and its records; every checksum is verified."""
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
    except (KeyError, IndexError, TypeError, ValueError, RecursionError, SafetensorError) as error:
        raise StateError(f"{folder} is damaged: its files do not fit together ({error})") from error


def _read_part(part: Mapping[str, str], contents: Mapping[str, bytes]) -> dict[str, Any]:
    tensors = load_tensors(contents[part["tensors"]]) if "tensors" in part else {}
    decoded = _decode(json.loads(contents[part["tree"]]), tensors)
    if not isinstance(decoded, dict):
        raise ValueError("a state is a dictionary")
    return decoded


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
