"""Damage to a folder with a saved model: one file changed in one way."""

from __future__ import annotations

import json
import random
from pathlib import Path

PLAIN = ("flip", "cut", "delete", "empty", "double")
# Changes by somebody who knows the file format.
TARGETED = ("swap", "edit", "huge", "folder", "nested")


def mutate(folder: Path, chance: random.Random, *, other: Path | None = None) -> str:
    """Damage one file; return how and which. `other`, another model's folder, adds TARGETED."""
    victim = chance.choice(
        sorted(path for path in folder.iterdir() if path.is_file() and path.name != ".lock")
    )
    data = bytearray(victim.read_bytes())
    how = chance.choice(PLAIN if other is None else PLAIN + TARGETED)
    if how == "flip":
        data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
    elif how == "cut":
        data = data[: chance.randrange(len(data))]
    elif how == "double":
        data = data * 2
    elif how == "empty":
        data = bytearray()
    elif how == "swap" and other is not None:
        data = bytearray(
            next(path for path in other.iterdir() if path.suffix == victim.suffix).read_bytes()
        )
    elif how == "edit" and victim.suffix == ".json":
        data = bytearray(json.dumps(edited(json.loads(data), chance)).encode())
    elif how == "huge":
        # A safetensors file that claims a header of a petabyte.
        data[:8] = (10**15).to_bytes(8, "little")
    elif how == "nested":
        data = bytearray(b"[" * 100_000)
    victim.unlink()
    if how == "folder":
        victim.mkdir()
    elif how != "delete":
        victim.write_bytes(bytes(data))
    return f"{how} {victim.name}"


def edited(node: object, chance: random.Random) -> object:
    """JSON with one change: a value of another type, a huge value, or a deleted entry."""
    entries: list[tuple[object, object]] = []

    def walk(part: object) -> None:
        items = (
            part.items()
            if isinstance(part, dict)
            else enumerate(part)
            if isinstance(part, list)
            else ()
        )
        for key, value in items:
            entries.append((part, key))
            walk(value)

    walk(node)
    part, key = chance.choice(entries)
    strange = [
        None,
        -1,
        10**18,
        1e308,
        "x" * 1000,
        [],
        {},
        "../../etc/passwd",
        {"$tensor": "nowhere"},
        {"$items": [[1]]},
        True,
    ]
    if chance.random() < 0.3:
        del part[key]
    else:
        part[key] = chance.choice(strange)
    return node
