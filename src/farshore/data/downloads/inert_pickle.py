"""Read a pickled table without running code from the file.

A pickle is a program for a small stack machine, and Python's own machine calls whatever the file
names. The machine here knows only the instructions that a table needs, and calls nothing from the
file: every name from pandas becomes an inert record of its arguments, numpy's arrays are built from
checked parts, and every other name is refused. The columns are then collected from the records,
both in the format of pandas before 0.25 (in which LSWMD.pkl was written) and in the current one.

A file from a stranger can at worst be refused. Arrays have the element types and shapes of the
published file; arrays of objects are built from a list of texts, numbers and arrays, never from
bytes, which would be addresses in memory. The size of the file, the number of instructions and
the nesting of arrays are bounded, and memory grows at most with these.
"""

from __future__ import annotations

import gc
import math
import mmap
import pickle
import struct
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from ...errors import FarshoreError

# The published file has 2.1 GB and some 60 million instructions.
LARGEST_FILE = 4 << 30
MOST_INSTRUCTIONS = 200_000_000
# A table holds columns (arrays of cells), and cells hold small arrays.
DEEPEST_ARRAY = 2
MOST_DIMENSIONS = 2
LONGEST_TEXT = 64
MOST_COLUMNS = 1000
NUMBERS = {"u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f4", "f8"}
FRAME_STATE = "0.14.1"  # the key under which old versions of pandas store their blocks
MULTIARRAY = ("numpy.core.multiarray", "numpy._core.multiarray")
NUMERIC = ("numpy.core.numeric", "numpy._core.numeric")
PLAIN = (str, bytes, bool, int, float, type(None))


class Refused(ValueError):
    """The file asks for something that no table needs."""


class Record:
    """An object of pandas that the file asks to create: only its name, arguments and state."""

    __slots__ = ("args", "name", "state")

    def __init__(self, name: str, args: tuple[Any, ...]) -> None:
        self.name, self.args = name, args
        self.state: Any = None


class MentionedName:
    """A name that the file mentions: a class of pandas, or one of numpy's constructors."""

    __slots__ = ("name", "pandas")

    def __init__(self, name: str, *, pandas: bool) -> None:
        self.name, self.pandas = name, pandas


class ElementType:
    """The element type of an array, as the file describes it; `is_object` for references."""

    __slots__ = ("code", "order")

    def __init__(self, code: str) -> None:
        self.code, self.order = code, "="

    @property
    def is_object(self) -> bool:
        """Whether elements are Python objects."""
        return self.code in ("O", "O8", "O4")

    def numpy(self) -> np.dtype[Any]:
        """The numpy type; only numbers and short texts of fixed length have one."""
        kind, size = self.code[:1], self.code[1:]
        text = kind in "US" and size.isdecimal() and 1 <= int(size) <= LONGEST_TEXT
        if (self.code not in NUMBERS and not text) or self.order not in "=<>|":
            raise Refused(f"an array of element type {self.code!r}")
        return np.dtype(("=" if self.order == "|" else self.order) + self.code)


class UnfilledArray:
    """An array that the file asks to create; `values` are set once, by its state."""

    __slots__ = ("depth", "values")

    def __init__(self) -> None:
        self.values: np.ndarray | None = None
        self.depth = 0

    def fill(self, state: Any) -> None:
        """Set the values from (version, shape, element type, is Fortran-ordered, contents)."""
        if self.values is not None or not isinstance(state, tuple) or len(state) != 5:
            raise Refused("an array with another state than numpy's")
        _, shape, kind, fortran, contents = state
        if not isinstance(kind, ElementType):
            raise Refused("an array without an element type")
        shape = check_shape(shape)
        order = "F" if fortran is True else "C"
        if kind.is_object:
            self.values, self.depth = from_list(contents, shape, order)
        else:
            self.values = from_bytes(contents, kind, shape, order)


def check_shape(shape: Any) -> tuple[int, ...]:
    """The shape of an array, if it is one that a table has."""
    if (
        not isinstance(shape, tuple)
        or not 1 <= len(shape) <= MOST_DIMENSIONS
        or not all(type(length) is int and 0 <= length < 1 << 31 for length in shape)
    ):
        raise Refused("an array of a shape that no table has")
    return shape


def from_bytes(contents: Any, kind: ElementType, shape: tuple[int, ...], order: str) -> np.ndarray:
    """An array of numbers or texts of fixed length; its size must be that of the bytes."""
    dtype = kind.numpy()
    data = contents.encode("latin1") if isinstance(contents, str) else contents
    if not isinstance(data, bytes | bytearray) or len(data) != math.prod(shape) * dtype.itemsize:
        raise Refused("an array whose contents do not have its size")
    if not data:
        return np.empty(shape, dtype)
    values = np.frombuffer(data, dtype)
    if dtype.kind == "U" and int(values.view(dtype.byteorder + "u4").max()) > 0x10FFFF:
        raise Refused("a text with characters that do not exist")
    return values.reshape(shape, order="F" if order == "F" else "C")


def from_list(contents: Any, shape: tuple[int, ...], order: str) -> tuple[np.ndarray, int]:
    """An array of texts, numbers and arrays from a list, and how deep the arrays are nested."""
    if not isinstance(contents, list) or len(contents) != math.prod(shape):
        raise Refused("an array of objects that is not given as a list of its size")
    values = np.empty(len(contents), dtype=object)
    depth = 1
    for index, item in enumerate(contents):
        if isinstance(item, UnfilledArray):
            if item.values is None or item.depth >= DEEPEST_ARRAY:
                raise Refused("arrays inside arrays, deeper than a table's cells")
            depth = max(depth, item.depth + 1)
            values[index] = item.values
        elif isinstance(item, PLAIN):
            values[index] = item
        else:
            raise Refused(f"a cell of type {type(item).__name__}")
    return values.reshape(shape, order="F" if order == "F" else "C"), depth


class Machine:
    """Carries out the instructions of a pickle that a table needs; refuses all others."""

    def __init__(self, data: bytes | mmap.mmap) -> None:
        self.data, self.size, self.position = data, len(data), 0
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: list[Any] = []
        self.instructions = 0
        # Encoded texts are the only contents that one instruction can multiply.
        self.may_encode = self.size

    def run(self) -> Any:
        """Carry out the whole program and return what is left on the stack."""
        carry_out = [INSTRUCTIONS.get(code) for code in range(256)]
        stop = pickle.STOP[0]
        while self.position < self.size:
            code = self.data[self.position]
            self.position += 1
            self.instructions += 1
            if self.instructions > MOST_INSTRUCTIONS:
                raise Refused("more instructions than a table needs")
            if code == stop:
                return self.pop()
            instruction = carry_out[code]
            if instruction is None:
                raise Refused(f"instruction {bytes([code])!r}")
            instruction(self)
        raise Refused("no end")

    # ---- reading ---------------------------------------------------------------------------------

    def read(self, count: int) -> bytes:
        """The next bytes of the file."""
        if count > self.size - self.position:
            raise Refused("contents beyond the end of the file")
        start, self.position = self.position, self.position + count
        return self.data[start : self.position]

    def number(self, form: str) -> Any:
        """The next number in a format of `struct`."""
        return struct.unpack(form, self.read(struct.calcsize(form)))[0]

    def line(self) -> str:
        """The text up to the end of the line."""
        end = self.data.find(b"\n", self.position, self.position + 1000)
        if end < 0:
            raise Refused("a name without an end")
        text = self.read(end - self.position).decode("ascii")
        self.position += 1
        return text

    # ---- stack and memo --------------------------------------------------------------------------

    def pop(self) -> Any:
        """Take the topmost object."""
        if len(self.stack) <= (self.marks[-1] if self.marks else 0):
            raise Refused("an empty stack")
        return self.stack.pop()

    def top(self, kind: type) -> Any:
        """The topmost object, which must be of this kind."""
        if len(self.stack) <= (self.marks[-1] if self.marks else 0) or not isinstance(
            self.stack[-1], kind
        ):
            raise Refused("an instruction without its object")
        return self.stack[-1]

    def pop_mark(self) -> list[Any]:
        """Take all objects above the last mark."""
        if not self.marks:
            raise Refused("no mark")
        start = self.marks.pop()
        items = self.stack[start:]
        del self.stack[start:]
        return items

    def put(self, number: int) -> None:
        """Remember the topmost object under this number."""
        if number > self.instructions:
            raise Refused("a number of an object that is larger than the file")
        while len(self.memo) <= number:
            self.memo.append(Refused)
        self.memo[number] = self.top(object)

    def get(self, number: int) -> None:
        """Push the object that was remembered under this number."""
        if number >= len(self.memo) or self.memo[number] is Refused:
            raise Refused("an object that was never stored")
        self.stack.append(self.memo[number])

    # ---- objects ---------------------------------------------------------------------------------

    def set_items(self, items: list[Any]) -> None:
        """Add keys and values to the topmost dictionary; keys are plain values."""
        table = self.top(dict)
        if len(items) % 2 or not all(isinstance(key, PLAIN) for key in items[::2]):
            raise Refused("a dictionary whose keys are not plain values")
        table.update(zip(items[::2], items[1::2], strict=True))

    def global_name(self, module: Any, name: Any) -> None:
        """Push a name; refuse one that no table needs."""
        if not isinstance(module, str) or not isinstance(name, str):
            raise Refused("a name that is not text")
        known = (
            (module in MULTIARRAY and name in ("_reconstruct", "scalar"))
            or (module in NUMERIC and name == "_frombuffer")
            or (module == "numpy" and name in ("ndarray", "dtype"))
            or (module == "_codecs" and name == "encode")
            or (module in ("builtins", "__builtin__") and name in ("slice", "bytes"))
        )
        pandas = module.partition(".")[0] == "pandas"
        if not known and not pandas:
            asked = ascii(f"{module}.{name}")[1:-1]
            raise FarshoreError(
                f"the pickle asks for {asked[:100]}, which no table needs: it is refused, and "
                "none of its code was run"
            )
        self.stack.append(MentionedName(name, pandas=pandas))

    def call(self) -> None:
        """Push what the name below the arguments stands for."""
        args, name = self.pop(), self.pop()
        if not isinstance(name, MentionedName) or not isinstance(args, tuple):
            raise Refused("a call of something that is not a name")
        if name.pandas:
            self.stack.append(Record(name.name, args))
            return
        make = CONSTRUCTORS.get(name.name)
        if make is None:
            raise Refused(f"a call of {name.name}")
        self.stack.append(make(self, *args))

    def build(self) -> None:
        """Set the state of the topmost object."""
        state, target = self.pop(), self.top(object)
        if isinstance(target, Record):
            target.state = state
        elif isinstance(target, UnfilledArray):
            target.fill(state)
        elif isinstance(target, ElementType):
            order = state[1] if isinstance(state, tuple) and len(state) > 2 else None
            if order not in ("|", "<", ">", "=") or any(state[2:5]):
                raise Refused("an element type with fields")
            target.order = order
        else:
            raise Refused("the state of a plain value")

    def reconstruct(self, kind: Any, shape: Any = None, code: Any = None) -> UnfilledArray:
        """numpy's empty array, which gets its values from its state."""
        if not isinstance(kind, MentionedName) or kind.name != "ndarray":
            raise Refused("an array of another class than numpy's")
        return UnfilledArray()

    def from_buffer(
        self, data: Any, kind: Any, shape: Any, order: Any, axis_order: Any = None
    ) -> UnfilledArray:
        """An array from its bytes, as newer versions of numpy write it."""
        array = UnfilledArray()
        if not isinstance(kind, ElementType) or kind.is_object or axis_order is not None:
            raise Refused("an array from bytes that are not numbers")
        array.values = from_bytes(data, kind, check_shape(shape), "F" if order == "F" else "C")
        return array

    def element_type(self, code: Any, align: Any = 0, copy: Any = 1) -> ElementType:
        """An element type by its code, such as `u1`."""
        if not isinstance(code, str) or len(code) > 8:
            raise Refused("an element type without a code")
        return ElementType(code)

    def scalar(self, kind: Any, data: Any) -> Any:
        """A single number or text."""
        if not isinstance(kind, ElementType):
            raise Refused("a number without a type")
        return from_bytes(data, kind, (1,), "C")[0].item()

    def encode(self, text: Any, encoding: Any = "latin1") -> bytes:
        """Bytes, which protocol 2 writes as an encoded text."""
        if not isinstance(text, str) or encoding != "latin1":
            raise Refused("bytes that are not written as latin1")
        self.may_encode -= len(text)
        if self.may_encode < 0:
            raise Refused("more bytes than the file has")
        return text.encode("latin1")

    def make_slice(self, start: Any, stop: Any, step: Any) -> slice:
        """A slice of whole numbers."""
        if not all(part is None or type(part) is int for part in (start, stop, step)):
            raise Refused("a slice of something else than numbers")
        return slice(start, stop, step)

    def empty_bytes(self) -> bytes:
        """Protocol 2 writes an empty bytes object as a call."""
        return b""


CONSTRUCTORS: dict[str, Callable[..., Any]] = {
    "_reconstruct": Machine.reconstruct,
    "_frombuffer": Machine.from_buffer,
    "scalar": Machine.scalar,
    "dtype": Machine.element_type,
    "encode": Machine.encode,
    "slice": Machine.make_slice,
    "bytes": Machine.empty_bytes,
}


def _push(value: Callable[[Machine], Any]) -> Callable[[Machine], None]:
    def instruction(machine: Machine) -> None:
        machine.stack.append(value(machine))

    return instruction


def _tuple(count: int) -> Callable[[Machine], None]:
    def instruction(machine: Machine) -> None:
        items = [machine.pop() for _ in range(count)]
        machine.stack.append(tuple(reversed(items)))

    return instruction


def _text(length: str, encoding: str) -> Callable[[Machine], None]:
    errors = "surrogatepass" if encoding == "utf-8" else "strict"
    return _push(lambda machine: machine.read(machine.number(length)).decode(encoding, errors))


def _set_item(machine: Machine) -> None:
    value, key = machine.pop(), machine.pop()
    machine.set_items([key, value])


def _append(machine: Machine) -> None:
    value = machine.pop()
    machine.top(list).append(value)


def _stack_name(machine: Machine) -> None:
    name, module = machine.pop(), machine.pop()
    machine.global_name(module, name)


def _extend(machine: Machine) -> None:
    items = machine.pop_mark()
    machine.top(list).extend(items)


# The instructions of protocols 2 to 5 that a table uses, by their byte.
INSTRUCTIONS: dict[int, Callable[[Machine], None]] = {
    code[0]: instruction
    for code, instruction in {
        pickle.PROTO: lambda machine: machine.read(1) and None,
        pickle.FRAME: lambda machine: machine.read(8) and None,
        pickle.MARK: lambda machine: machine.marks.append(len(machine.stack)),
        pickle.NONE: _push(lambda machine: None),
        pickle.NEWTRUE: _push(lambda machine: True),
        pickle.NEWFALSE: _push(lambda machine: False),
        pickle.BININT: _push(lambda machine: machine.number("<i")),
        pickle.BININT1: _push(lambda machine: machine.number("B")),
        pickle.BININT2: _push(lambda machine: machine.number("<H")),
        pickle.LONG1: _push(
            lambda machine: int.from_bytes(machine.read(machine.number("B")), "little", signed=True)
        ),
        pickle.BINFLOAT: _push(lambda machine: machine.number(">d")),
        # Texts of Python 2 are bytes; its arrays are written as texts too.
        pickle.SHORT_BINSTRING: _text("B", "latin1"),
        pickle.BINSTRING: _text("<I", "latin1"),
        pickle.SHORT_BINUNICODE: _text("B", "utf-8"),
        pickle.BINUNICODE: _text("<I", "utf-8"),
        pickle.BINUNICODE8: _text("<Q", "utf-8"),
        pickle.SHORT_BINBYTES: _push(lambda machine: machine.read(machine.number("B"))),
        pickle.BINBYTES: _push(lambda machine: machine.read(machine.number("<I"))),
        pickle.BINBYTES8: _push(lambda machine: machine.read(machine.number("<Q"))),
        pickle.BYTEARRAY8: _push(lambda machine: machine.read(machine.number("<Q"))),
        pickle.EMPTY_TUPLE: _tuple(0),
        pickle.TUPLE1: _tuple(1),
        pickle.TUPLE2: _tuple(2),
        pickle.TUPLE3: _tuple(3),
        pickle.TUPLE: lambda machine: machine.stack.append(tuple(machine.pop_mark())),
        pickle.EMPTY_LIST: _push(lambda machine: []),
        pickle.APPEND: _append,
        pickle.APPENDS: _extend,
        pickle.EMPTY_DICT: _push(lambda machine: {}),
        pickle.SETITEM: _set_item,
        pickle.SETITEMS: lambda machine: machine.set_items(machine.pop_mark()),
        pickle.BINPUT: lambda machine: machine.put(machine.number("B")),
        pickle.LONG_BINPUT: lambda machine: machine.put(machine.number("<I")),
        pickle.MEMOIZE: lambda machine: machine.put(len(machine.memo)),
        pickle.BINGET: lambda machine: machine.get(machine.number("B")),
        pickle.LONG_BINGET: lambda machine: machine.get(machine.number("<I")),
        pickle.GLOBAL: lambda machine: machine.global_name(machine.line(), machine.line()),
        pickle.STACK_GLOBAL: _stack_name,
        pickle.REDUCE: Machine.call,
        pickle.NEWOBJ: Machine.call,
        pickle.BUILD: Machine.build,
    }.items()
}


def read_inert(source: Path | bytes) -> dict[str, np.ndarray]:
    """Return the columns of a pickled table by name."""
    try:
        with _contents(source) as data, _no_collection():
            return _find_table(Machine(data).run())
    except (ValueError, TypeError, IndexError, KeyError, OverflowError, struct.error) as error:
        raise FarshoreError(f"the pickle cannot be read as a table: {error}") from None
    except OSError as error:
        raise FarshoreError(f"{source!s} cannot be read: {error.strerror or error}") from None


@contextmanager
def _contents(source: Path | bytes) -> Iterator[bytes | mmap.mmap]:
    if isinstance(source, bytes):
        yield source
        return
    with open(source, "rb") as file:
        size = file.seek(0, 2)
        if not 0 < size <= LARGEST_FILE:
            raise Refused(f"{size} bytes; the published file has 2.1 GB")
        with closing(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) as data:
            yield data


@contextmanager
def _no_collection() -> Iterator[None]:
    """Millions of new objects would be searched for cycles again and again, which takes longer."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


def _find_table(root: Any) -> dict[str, np.ndarray]:
    for record in _records(root):
        columns = _blocks(record)
        if columns is not None:
            return columns
    raise FarshoreError("the pickle does not contain a pandas table")


def _records(root: Any) -> Iterator[Record]:
    """Yield every record below `root` once, outer ones first, however deep or circular it is."""
    waiting, seen = [root], set()
    while waiting:
        node = waiting.pop()
        if not isinstance(node, Record | dict | tuple | list) or id(node) in seen:
            continue
        seen.add(id(node))
        if isinstance(node, Record):
            yield node
            waiting += [node.state, node.args]
        else:
            waiting += reversed(list(node.values()) if isinstance(node, dict) else node)


def _blocks(manager: Record) -> dict[str, np.ndarray] | None:
    """Return the columns of a block manager, from its state (old pandas) or its arguments (new)."""
    state, args = manager.state, manager.args
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
        blocks = [block.args for block in args[0] if isinstance(block, Record)]
        return _columns(args[1][0], [(block[0], block[1]) for block in blocks])
    return None


def _columns(axis: Any, blocks: list[tuple[Any, Any]]) -> dict[str, np.ndarray]:
    arguments = axis.args if isinstance(axis, Record) else ()
    data = next(
        (item["data"] for item in arguments if isinstance(item, dict) and "data" in item), None
    )
    if not isinstance(data, UnfilledArray) or data.values is None or data.values.ndim != 1:
        raise FarshoreError(
            "the pickled table's column names are not a plain array: write it with columns of "
            "type object"
        )
    if len(data.values) > MOST_COLUMNS or not all(isinstance(name, str) for name in data.values):
        raise Refused("column names that are not texts")
    names = [str(name) for name in data.values]
    columns: dict[str, np.ndarray] = {}
    for values, locations in blocks:
        if isinstance(values, UnfilledArray):  # columns of pandas' own types are not needed here
            columns |= _block_columns(names, values.values, locations)
    if len({len(column) for column in columns.values()}) > 1:
        raise Refused("columns of different lengths")
    return columns


def _block_columns(
    names: list[str], values: np.ndarray | None, locations: Any
) -> dict[str, np.ndarray]:
    """The columns of one block: a row of `values` for each location."""
    where = locations.values if isinstance(locations, UnfilledArray) else locations
    whole = isinstance(where, np.ndarray) and where.dtype.kind in "iu" and where.ndim == 1
    if values is None or values.ndim != 2 or not (whole or isinstance(where, slice)):
        raise Refused("a block of columns without their values or places")
    numbers = np.arange(len(names))[where]
    if len(numbers) != len(values):
        raise Refused("a block of columns with more or fewer values than places")
    return {names[number]: row for number, row in zip(numbers.tolist(), values, strict=True)}
