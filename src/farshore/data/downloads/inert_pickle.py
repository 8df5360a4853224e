"""Read a pickled table without running code from the file.

A pickle is a program for a small stack machine, and Python's own machine calls whatever the file
names. The machine here gets the instructions from Python's disassembler, which carries nothing out,
knows only those that a table needs, and calls nothing from the file: every name from pandas becomes
an inert record of its arguments, numpy's arrays are built from checked parts, and every other name
is refused. The columns are then collected from the records, both in the format of pandas before
0.25 (in which LSWMD.pkl was written) and in the current one.

A file from a stranger can at worst be refused. Arrays have the element types and shapes of the
published file; arrays of objects are built from a list of texts, numbers and arrays, never from
bytes, which would be addresses in memory. The size of the file, the number of instructions and
the nesting of arrays are bounded, and memory grows at most with these.
"""

import gc
import math
import mmap
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from pickletools import genops
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


@dataclass(slots=True, eq=False)
class Record:
    """An object of pandas that the file asks to create: only its name, arguments and state."""

    name: str
    args: tuple[Any, ...]
    state: Any = None


@dataclass(slots=True, eq=False)
class MentionedName:
    """A name that the file mentions: a class of pandas, or one of numpy's constructors."""

    name: str
    pandas: bool


@dataclass(slots=True, eq=False)
class ElementType:
    """The element type of an array, as the file describes it; `is_object` for references."""

    code: str
    order: str = "="

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


@dataclass(slots=True, eq=False)
class UnfilledArray:
    """An array that the file asks to create; `values` are set once, by its state."""

    values: np.ndarray | None = None
    depth: int = 0

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
        self.data = data
        self.stack: list[Any] = []
        self.marks: list[int] = []
        self.memo: list[Any] = []
        self.instructions = 0
        # Encoded texts are the only contents that one instruction can multiply.
        self.may_encode = len(data)

    def run(self) -> Any:
        """Carry out the whole program and return what is left on the stack."""
        for opcode, argument, _ in genops(self.data):  # type: ignore[arg-type] # mmap can be read
            self.instructions += 1
            if self.instructions > MOST_INSTRUCTIONS:
                raise Refused("more instructions than a table needs")
            if opcode.name == "STOP":
                break
            if opcode.name in PUSHED:
                self.stack.append(PUSHED[opcode.name] if argument is None else argument)
                continue
            instruction = INSTRUCTIONS.get(opcode.name)
            if instruction is None:
                raise Refused(f"instruction {opcode.name}")
            instruction(self, argument)
        return self.pop()

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

    def extend(self, items: list[Any]) -> None:
        """Add items to the topmost list."""
        self.top(list).extend(items)

    def push_tuple(self, count: int) -> None:
        """Replace the topmost objects by a tuple of them."""
        self.stack.append(tuple(reversed([self.pop() for _ in range(count)])))

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
        if not isinstance(kind, ElementType) or kind.is_object or axis_order is not None:
            raise Refused("an array from bytes that are not numbers")
        order = "F" if order == "F" else "C"
        return UnfilledArray(from_bytes(data, kind, check_shape(shape), order))

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


CONSTRUCTORS: dict[str, Callable[..., Any]] = {
    "_reconstruct": Machine.reconstruct,
    "_frombuffer": Machine.from_buffer,
    "scalar": Machine.scalar,
    "dtype": Machine.element_type,
    "encode": Machine.encode,
    "slice": Machine.make_slice,
    "bytes": lambda machine: b"",  # protocol 2 writes an empty bytes object as a call
}


# The instructions of protocols 2 to 5 that a table uses, by the names of the disassembler: those
# that push a constant or their argument, and the others. Texts of Python 2 are bytes; its arrays
# are written as texts too.
PUSHED: dict[str, Any] = {
    **{"NONE": None, "NEWTRUE": True, "NEWFALSE": False},
    **dict.fromkeys(("BININT", "BININT1", "BININT2", "LONG1", "BINFLOAT")),
    **dict.fromkeys(("SHORT_BINSTRING", "BINSTRING")),
    **dict.fromkeys(("SHORT_BINUNICODE", "BINUNICODE", "BINUNICODE8")),
    **dict.fromkeys(("SHORT_BINBYTES", "BINBYTES", "BINBYTES8", "BYTEARRAY8")),
}
INSTRUCTIONS: dict[str, Callable[[Machine, Any], None]] = {
    "PROTO": lambda machine, _: None,
    "FRAME": lambda machine, _: None,
    "MARK": lambda machine, _: machine.marks.append(len(machine.stack)),
    "EMPTY_TUPLE": lambda machine, _: machine.push_tuple(0),
    "TUPLE1": lambda machine, _: machine.push_tuple(1),
    "TUPLE2": lambda machine, _: machine.push_tuple(2),
    "TUPLE3": lambda machine, _: machine.push_tuple(3),
    "TUPLE": lambda machine, _: machine.stack.append(tuple(machine.pop_mark())),
    "EMPTY_LIST": lambda machine, _: machine.stack.append([]),
    "APPEND": lambda machine, _: machine.extend([machine.pop()]),
    "APPENDS": lambda machine, _: machine.extend(machine.pop_mark()),
    "EMPTY_DICT": lambda machine, _: machine.stack.append({}),
    "SETITEM": lambda machine, _: machine.set_items([machine.pop(), machine.pop()][::-1]),
    "SETITEMS": lambda machine, _: machine.set_items(machine.pop_mark()),
    "BINPUT": Machine.put,
    "LONG_BINPUT": Machine.put,
    "MEMOIZE": lambda machine, _: machine.put(len(machine.memo)),
    "BINGET": Machine.get,
    "LONG_BINGET": Machine.get,
    "GLOBAL": lambda machine, names: machine.global_name(*names.split(" ", 1)),
    "STACK_GLOBAL": lambda machine, _: machine.global_name(*[machine.pop(), machine.pop()][::-1]),
    "REDUCE": lambda machine, _: machine.call(),
    "NEWOBJ": lambda machine, _: machine.call(),
    "BUILD": lambda machine, _: machine.build(),
}


def read_inert(source: Path | bytes) -> dict[str, np.ndarray]:
    """Return the columns of a pickled table by name."""
    try:
        with _contents(source) as data, _no_collection():
            tables = map(_blocks, _records(Machine(data).run()))
            found = next((columns for columns in tables if columns is not None), None)
    except (ValueError, TypeError, IndexError, KeyError, OverflowError) as error:
        raise FarshoreError(f"the pickle cannot be read as a table: {error}") from None
    except OSError as error:
        raise FarshoreError(f"{source!s} cannot be read: {error.strerror or error}") from None
    if found is None:
        raise FarshoreError("the pickle does not contain a pandas table")
    return found


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
