"""State on disk: a folder with safetensors and JSON files and a manifest with checksums.

A save writes new files next to the old ones and finally replaces `manifest.json` by an atomic
rename. Until then the folder still contains the complete previous state. Afterwards the previous
files are deleted or, if requested, kept for `undo`; the manifest then lists them too. The manifest
also names the files that it makes obsolete: if the process is killed before it has deleted them,
whoever opens the folder next does. Nothing is pickled, and loading a state cannot run code.
"""

import json
import uuid
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as save_tensors

from ..errors import StateError
from .files import reason, state_errors, sync_folder, write_atomic
from .manifest import (
    FORMAT,
    MANIFEST,
    STATE,
    SUMMARY,
    VERSION,
    delete,
    digest,
    digests,
    listed,
    obsolete_files,
    own_files,
    read_checked,
    read_files,
    read_manifest,
    refuse_link,
    remove_orphans,
)

Tree = Mapping[str, Any]


def save_state(
    folder: str | Path,
    state: Tree,
    *,
    kind: str,
    records: Mapping[str, Tree] | None = None,
    summary: Tree | None = None,
    keep_previous: bool = False,
) -> None:
    """Write the tree `state` (dictionaries, lists, plain values, tensors) into `folder`,
    atomically.

    records: further trees by name, saved in files of their own together with the state. If None,
        the records already in the folder stay as they are.
    summary: plain values that say what the state is (`manifest.read_summary`).
    keep_previous: keep the previous state next to the new one, for `undo`.
    """
    folder = Path(folder)
    if folder.exists() and not folder.is_dir():
        raise StateError(f"{folder} is a file: give a folder to save into")
    refuse_link(folder)
    current = None
    if (folder / MANIFEST).is_file() and (keep_previous or records is None):
        try:
            current = read_manifest(folder, kind)
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
            if name not in (kind, SUMMARY):
                parts[name] = part
                files |= {file: current["files"][file] for file in part.values()}
    if summary is not None:
        of = digests({"parts": parts, "files": files})
        parts[SUMMARY], written = _written({"of": of, "summary": summary}, SUMMARY, tag)
        contents |= written
        files |= _facts(written)
    manifest = {"format": FORMAT, "version": VERSION, "kind": kind, "parts": parts}
    manifest |= {"files": files, "previous": previous}
    existed = folder.exists()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        _write_all(folder, contents, manifest)
    except OSError as error:
        if not existed:
            with suppress(OSError):
                folder.rmdir()
        why = f"could not save into {folder}: {reason(error)}; what was saved before is untouched"
        raise StateError(why) from error
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
    return {name: {"sha256": digest(data), "bytes": len(data)} for name, data in contents.items()}


def _commit(folder: Path, manifest: dict[str, Any]) -> None:
    """Replace the manifest, the one step that makes another state the current one."""
    kept = listed(manifest)
    obsolete = sorted(path.name for path in own_files(folder) if path.name not in kept)
    sync_folder(folder)
    text = json.dumps(manifest | {"obsolete": obsolete}, indent=1)
    write_atomic(folder / MANIFEST, text.encode())
    sync_folder(folder)


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
    return str(read_manifest(Path(folder), kind)["parts"][kind]["tree"])


def undo(folder: str | Path, *, kind: str, records: Mapping[str, Tree] | None = None) -> None:
    """Make the previous state the current one again, atomically; the newer one is deleted.

    records: trees by name that take the place of those of the previous state, or are added to it.
    """
    folder = Path(folder)
    previous = check_undo(folder, kind=kind)
    if previous is not None:
        manifest = read_manifest(folder, kind)
        parts, files = dict(previous["parts"]), dict(previous["files"])
        contents: dict[str, bytes] = {}
        for name, tree in (records or {}).items():
            for file in parts.get(name, {}).values():
                files.pop(file, None)
            parts[name], written = _written(tree, name, uuid.uuid4().hex[:12])
            contents |= written
            files |= _facts(written)
        restored = {"parts": parts, "files": files, "previous": None, "undone": True}
        with state_errors(f"{folder} is unchanged, it cannot be written"):
            _write_all(folder, contents, manifest | restored)
    remove_orphans(folder, kind=kind)


def check_undo(folder: str | Path, *, kind: str) -> dict[str, Any] | None:
    """The manifest's entries for the previous state; an error if there is none, or it is damaged.

    None if an undo was killed before it had deleted the newer state: only this is left to do.
    """
    folder = Path(folder)
    manifest = read_manifest(folder, kind)
    previous: dict[str, Any] | None = manifest.get("previous")
    if previous is None:
        if manifest.get("undone") and obsolete_files(folder, manifest):
            return None
        done = " any more: the last undo was carried out" if manifest.get("undone") else ""
        why = f"{folder} keeps no previous version{done}: only the last save can be undone, once"
        raise StateError(why)
    refuse_link(folder)
    for name, facts in previous["files"].items():
        read_checked(folder / name, facts)
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
        why = f"{folder} contains a saved {saved_kind}, not a {kind}: nothing is deleted"
        raise StateError(why)
    delete([folder / MANIFEST, *own_files(folder)])
    with suppress(OSError):
        folder.rmdir()


def load_state(folder: str | Path, *, kind: str) -> dict[str, Any]:
    """Read the state that `save_state` wrote."""
    return load_parts(folder, kind=kind)[kind]


def load_parts(folder: str | Path, *, kind: str) -> dict[str, dict[str, Any]]:
    """The state, under the name of its kind, and its records; every checksum is verified."""
    folder = Path(folder)
    manifest = read_manifest(folder, kind)
    try:
        contents = read_files(folder, manifest)
    except StateError:
        again = read_manifest(folder, kind)
        if again["parts"] == manifest["parts"]:
            raise
        contents, manifest = read_files(folder, again), again  # another process has saved
    try:
        parts = manifest["parts"].items()
        return {name: _read_part(part, contents) for name, part in parts if name != SUMMARY}
    except (KeyError, IndexError, TypeError, ValueError, RecursionError, SafetensorError) as error:
        raise StateError(f"{folder} is damaged: its files do not fit together ({error})") from error


def _read_part(part: Mapping[str, str], contents: Mapping[str, bytes]) -> dict[str, Any]:
    tensors = load_tensors(contents[part["tensors"]]) if "tensors" in part else {}
    decoded = _decode(json.loads(contents[part["tree"]]), tensors)
    if not isinstance(decoded, dict):
        raise ValueError("a state is a dictionary")
    return decoded


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
        items = [[key, _encode(each, f"{path}/{key}", tensors)] for key, each in node.items()]
        return {"$items": items}
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
