"""Damage to a folder that holds a saved model: one file changed in one way."""

from __future__ import annotations

import json
import random
from pathlib import Path

PLAIN = ("flip", "cut", "delete", "empty", "double")
# As somebody might who knows what the files are.
CUNNING = ("swap", "edit", "huge", "folder", "nested")


def mutate(folder: Path, chance: random.Random, *, other: Path | None = None) -> str:
    """Damage one file, and say how and which. With `other`, another model's folder, in cunning
    ways too.
    """
    victim = chance.choice(
        sorted(path for path in folder.iterdir() if path.is_file() and path.name != ".lock")
    )
    data = bytearray(victim.read_bytes())
    how = chance.choice(PLAIN if other is None else PLAIN + CUNNING)
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
        data[:8] = (10**15).to_bytes(
            8, "little"
        )  # a safetensors file that claims a header of a petabyte
    elif how == "nested":
        data = bytearray(b"[" * 100_000)
    victim.unlink()
    if how == "folder":
        victim.mkdir()
    elif how != "delete":
        victim.write_bytes(bytes(data))
    return f"{how} {victim.name}"


def edited(node: object, chance: random.Random) -> object:
    """JSON with one place changed: a value of another type or a huge one, a key gone or added."""
    places: list[tuple[object, object]] = []

    def walk(part: object) -> None:
        entries = (
            part.items()
            if isinstance(part, dict)
            else enumerate(part)
            if isinstance(part, list)
            else ()
        )
        for key, value in entries:
            places.append((part, key))
            walk(value)

    walk(node)
    part, key = chance.choice(places)
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
