"""Mutated pickles of a table: bytes changed, instructions moved, arrays with false descriptions."""

from __future__ import annotations

import pickle
import pickletools
import random
from functools import cache

import numpy as np
from official import old_pickle, wafers

from farshore.data.downloads.inert_pickle import read_inert
from farshore.errors import FarshoreError

STRANGE = (
    b"O8",
    b"V8",
    b"u1",
    b"f8",
    b"U9",
    b"M8",
    b"\xff\xff\xff\xff",
    b"\x00\x00\x00\x80",
    b"\x7f\xff\xff\xff",
    b"cos\nsystem\n",
    b"cbuiltins\neval\n",
    b"(",
    b")",
    b"t",
    b"R",
    b"b",
    b"u",
    b"\x85" * 2000,
    b"]" * 2000,
    b"2" * 50,
    b"0",
)


@cache
def whole() -> tuple[bytes, ...]:
    """The same small table in the forms in which tables are pickled."""
    table = wafers(12)
    forms = [old_pickle(table)]
    forms += [pickle.dumps(table, protocol=protocol) for protocol in (2, 4, 5)]
    return tuple(forms)


@cache
def instructions(form: int) -> list[bytes]:
    """The pickle, one instruction per entry."""
    data = whole()[form]
    starts = [place for _, _, place in pickletools.genops(data) if place is not None]
    return [data[a:b] for a, b in zip(starts, [*starts[1:], len(data)], strict=True)]


def warm_up() -> None:
    """Pickle the tables and use a column once: libraries reserve address space on first use."""
    for form in range(len(whole())):
        use(read_inert(b"".join(instructions(form))))


def mutated(chance: random.Random) -> bytes:
    """A pickle with one to four changes."""
    form = chance.randrange(len(whole()))
    if chance.random() < 0.5:
        parts = list(instructions(form))
        for _ in range(chance.randint(1, 4)):
            first, second = chance.randrange(len(parts)), chance.randrange(len(parts))
            change = chance.randrange(4)
            if change == 0:
                parts[first] = parts[second]
            elif change == 1:
                parts.insert(first, chance.choice([parts[second], chance.choice(STRANGE)]))
            elif change == 2:
                del parts[first]
            else:
                parts[first], parts[second] = parts[second], parts[first]
        return b"".join(parts)
    data = bytearray(whole()[form])
    for _ in range(chance.randint(1, 4)):
        place = chance.randrange(len(data))
        change = chance.randrange(4)
        if change == 0:
            data[place] ^= 1 << chance.randrange(8)
        elif change == 1:
            piece = chance.choice(STRANGE)
            data[place : place + len(piece)] = piece
        elif change == 2:
            del data[place : place + chance.randint(1, 20)]
        else:
            other = chance.randrange(len(data))
            data[place : place + 30] = data[other : other + 30]
    return bytes(data)


def read_mutated(chance: random.Random) -> None:
    """A mutated pickle is refused in one line, or gives columns whose every cell can be used."""
    try:
        columns = read_inert(mutated(chance))
    except FarshoreError as error:
        if "\n" in str(error):
            raise AssertionError("the message has more than one line") from error
        return
    use(columns)


def use(columns: dict[str, np.ndarray]) -> None:
    """Touch every value: an address from the file would crash here."""
    for column in columns.values():
        for cell in column:
            repr(cell.tolist() if isinstance(cell, np.ndarray) else cell)
        repr(column.dtype), repr(column.tolist())
