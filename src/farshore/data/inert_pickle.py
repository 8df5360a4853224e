"""Read a pickled table without running code from the file.

A pickle names functions to call. Here only numpy's array constructors are called. Every name from
pandas becomes an inert record of its arguments, and every other name is refused. The columns are
then collected from the records, both in the format of pandas before 0.25 (in which LSWMD.pkl was
written) and in the current one.
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
FRAME_STATE = "0.14.1"  # the key under which old versions of pandas store their blocks


class Record:
    """An object that the file asks to create: only its arguments and state are kept."""

    name = ""

    def __new__(cls, *args: Any, **_: Any) -> Record:
        """Store the arguments."""
        record = super().__new__(cls)
        record.args, record.state = args, None  # type: ignore[attr-defined]
        return record

    def __init__(self, *args: Any, **_: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        self.state = state


class Inert(pickle.Unpickler):
    """An unpickler that calls numpy's array constructors and nothing else."""

    def find_class(self, module: str, name: str) -> Any:
        """Resolve an allowed name; refuse every other one."""
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
            return slice if name == "slice" else _empty_bytes
        if module.partition(".")[0] == "pandas":
            return type("Record", (Record,), {"name": name})
        raise FarshoreError(
            f"the pickle asks for {module}.{name}, which no table needs: it is refused, and none "
            "of its code was run"
        )


def read_inert(source: Path | bytes) -> dict[str, np.ndarray]:
    """Return the columns of a pickled table by name."""
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
        columns = _blocks(manager)
        if columns is not None:
            return columns
    raise FarshoreError("the pickle does not contain a pandas table")


def _records(node: Any) -> Iterator[Record]:
    """Yield every record below `node`, outer ones first."""
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
    """Return the columns of a block manager, from its state (old pandas) or its arguments (new)."""
    state, args = manager.state, manager.args  # type: ignore[attr-defined]
    if (
        isinstance(state, tuple)
        and len(state) >= 4
        and isinstance(state[3], dict)
        and FRAME_STATE in state[3]
    ):
        contents = state[3][FRAME_STATE]
        return _columns(
            contents["axes"][0],
            [(block["values"], block["mgr_locs"]) for block in contents["blocks"]],
        )
    if manager.name == "BlockManager" and len(args) >= 2 and isinstance(args[0], tuple):
        return _columns(args[1][0], [(block.args[0], block.args[1]) for block in args[0]])
    return None


def _columns(axis: Record, blocks: list[tuple[Any, Any]]) -> dict[str, np.ndarray]:
    arguments: Any = axis.args  # type: ignore[attr-defined]
    data = next(
        (item["data"] for item in arguments if isinstance(item, dict) and "data" in item), None
    )
    if not isinstance(data, np.ndarray):
        raise FarshoreError(
            "the pickled table's column names are not a plain array: write it with columns of "
            "type object"
        )
    names = [str(name) for name in data]
    columns: dict[str, np.ndarray] = {}
    for values, locations in blocks:
        if isinstance(values, np.ndarray):  # columns of pandas' own types are not needed here
            numbers = np.arange(len(names))[locations]
            columns |= {names[number]: values[row] for row, number in enumerate(numbers)}
    return columns


def _empty_bytes() -> bytes:
    """Protocol 2 writes an empty bytes object as a call."""
    return b""


def _encode(text: str, encoding: str = "latin1") -> bytes:
    return codecs.encode(text, "latin1") if encoding == "latin1" else text.encode()


def _from_buffer(
    buffer: Any, dtype: Any, shape: Any, order: str, axis_order: Any = None
) -> np.ndarray:
    return np.frombuffer(buffer, dtype=dtype).reshape(shape, order="F" if order == "F" else "C")
