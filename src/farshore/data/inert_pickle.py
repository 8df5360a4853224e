"""Read a pickled table without running code from the file.

A pickle names functions to call. Here numpy's array parts are the only ones that are called;
whatever pandas is named in the file becomes an inert record of its arguments, and every other name
is refused. The columns are then found in the records, in the form of pandas before 0.25 (in which
LSWMD.pkl was written) and in today's.
"""

from __future__ import annotations

import codecs
import io
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import FarshoreError

ARRAYS = {
    "_reconstruct": np.empty(0).__reduce__()[0],
    "scalar": np.float64(0).__reduce__()[0],
    "ndarray": np.ndarray,
    "dtype": np.dtype,
}
FRAME_STATE = "0.14.1"  # the key under which old pandas wrote its blocks


class Record:
    """What the file wanted to make: arguments and state, nothing more."""

    name = ""

    def __new__(cls, *args: Any, **_: Any) -> Record:
        """Keep the arguments."""
        made = super().__new__(cls)
        made.args, made.state = args, None  # type: ignore[attr-defined]
        return made

    def __init__(self, *args: Any, **_: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        self.state = state


class Inert(pickle.Unpickler):
    """An unpickler that calls numpy's array parts and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """The few names that are allowed."""
        if (
            module in ("numpy", "numpy.core.multiarray", "numpy._core.multiarray")
            and name in ARRAYS
        ):
            return ARRAYS[name]
        if module in ("numpy.core.numeric", "numpy._core.numeric") and name == "_frombuffer":
            return _from_buffer
        if module == "_codecs" and name == "encode":
            return _encode
        if module in ("builtins", "__builtin__") and name in ("slice", "bytes"):
            return slice if name == "slice" else _no_bytes
        if module.partition(".")[0] == "pandas":
            return type("Record", (Record,), {"name": name})
        raise FarshoreError(
            f"the pickle asks for {module}.{name}, which no table needs: it is refused, nothing "
            "of it was run"
        )


def read_inert(source: Path | bytes) -> dict[str, np.ndarray]:
    """The columns of a pickled table by name."""
    try:
        with open(source, "rb") if isinstance(source, Path) else io.BytesIO(source) as file:
            frame = Inert(file, encoding="latin1").load()
    except (
        pickle.UnpicklingError,
        EOFError,
        ValueError,
        TypeError,
        AttributeError,
        IndexError,
        KeyError,
    ) as error:
        raise FarshoreError(f"the pickle cannot be read as a table: {error}") from None
    for manager in _records(frame):
        found = _blocks(manager)
        if found is not None:
            return found
    raise FarshoreError("the pickle holds no table of pandas")


def _records(node: Any) -> Iterator[Record]:
    """Every record below `node`, outer ones first."""
    if isinstance(node, Record):
        yield node
        yield from _records(node.args)  # type: ignore[attr-defined]
        yield from _records(node.state)
    elif isinstance(node, dict):
        for value in node.values():
            yield from _records(value)
    elif isinstance(node, tuple | list):
        for value in node:
            yield from _records(value)


def _blocks(manager: Record) -> dict[str, np.ndarray] | None:
    """Columns of a block manager: old pandas keeps them in its state, today's in its arguments."""
    state, args = manager.state, manager.args  # type: ignore[attr-defined]
    if (
        isinstance(state, tuple)
        and len(state) >= 4
        and isinstance(state[3], dict)
        and FRAME_STATE in state[3]
    ):
        held = state[3][FRAME_STATE]
        return _columns(
            held["axes"][0], [(block["values"], block["mgr_locs"]) for block in held["blocks"]]
        )
    if manager.name == "BlockManager" and len(args) >= 2 and isinstance(args[0], tuple):
        return _columns(args[1][0], [(block.args[0], block.args[1]) for block in args[0]])
    return None


def _columns(axis: Record, blocks: list[tuple[Any, Any]]) -> dict[str, np.ndarray]:
    arguments: Any = axis.args  # type: ignore[attr-defined]
    data = next(
        (each["data"] for each in arguments if isinstance(each, dict) and "data" in each), None
    )
    if not isinstance(data, np.ndarray):
        raise FarshoreError(
            "the pickled table's column names are not a plain array: write it with columns of "
            "type object"
        )
    names = [str(name) for name in data]
    found: dict[str, np.ndarray] = {}
    for values, places in blocks:
        if isinstance(
            values, np.ndarray
        ):  # other kinds of columns are pandas' own: none that is needed here
            where = np.arange(len(names))[places]
            found |= {names[place]: values[row] for row, place in enumerate(where)}
    return found


def _no_bytes() -> bytes:
    """Protocol 2 writes an empty text of bytes as a call."""
    return b""


def _encode(text: str, encoding: str = "latin1") -> bytes:
    return codecs.encode(text, "latin1") if encoding == "latin1" else text.encode()


def _from_buffer(
    buffer: Any, dtype: Any, shape: Any, order: str, axis_order: Any = None
) -> np.ndarray:
    return np.frombuffer(buffer, dtype=dtype).reshape(shape, order="F" if order == "F" else "C")
