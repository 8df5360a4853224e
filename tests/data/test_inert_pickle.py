from __future__ import annotations

import pickle
import struct

import numpy as np
import pytest
from confined import confine
from mutated_pickles import use, whole

from farshore.data.downloads import inert_pickle
from farshore.data.downloads.inert_pickle import read_inert
from farshore.errors import FarshoreError

ARRAY = b"cnumpy.core.multiarray\n_reconstruct\ncnumpy\nndarray\nK\x00\x85C\x01b\x87R"
OBJECTS = (
    b"cnumpy\ndtype\nU\x02O8K\x00K\x01\x87R(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK?tb"
)


def pickled_array(shape: bytes, kind: bytes, contents: bytes) -> bytes:
    """A pickle of one array, with the description and the contents given apart."""
    return b"\x80\x02" + ARRAY + b"(K\x01" + shape + kind + b"\x89" + contents + b"tb."


def test_all_forms_of_a_table_are_read() -> None:
    for data in whole():
        columns = read_inert(data)
        assert columns["waferMap"][3].dtype == np.uint8
        assert columns["lotName"].tolist()[:4] == ["lot1", "lot1", "lot1", "lot2"]
        use(columns)


def test_an_array_of_objects_from_bytes_is_refused() -> None:
    """Its bytes would be taken for addresses, and the process would crash."""
    address = struct.pack("<Q", 0x4141414141414141)
    data = pickled_array(b"K\x01\x85", OBJECTS, b"C\x08" + address)
    assert len(data) < 140
    with pytest.raises(FarshoreError, match="array of objects that is not given as a list"):
        read_inert(data)


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (pickled_array(b"K\x02\x85", OBJECTS, b"]K\x01a"), "a list of its size"),
        (
            pickled_array(b"J\xff\xff\xff\x7f\x85", OBJECTS.replace(b"O8", b"u1"), b"C\x01a"),
            "contents do not have its size",
        ),
        (pickled_array(b"K\x01\x85", OBJECTS.replace(b"O8", b"V8"), b"C\x08" + b"a" * 8), "V8"),
        (
            pickled_array(b"K\x01\x85", OBJECTS.replace(b"O8", b"U1"), b"C\x04" + b"\xff" * 4),
            "characters that do not exist",
        ),
        (b"\x80\x02" + b"]r\xff\xff\xff\xff.", "larger than the file"),
        (b"\x80\x04\x8e\xff\xff\xff\xff\xff\xff\xff\x7f.", "but only 1 remain"),
        (b"\x80\x02}" + b")" + b"\x85" * 3000 + b"K\x01s.", "keys are not plain"),
        (b"\x80\x02h\x07.", "never stored"),
        (b"\x80\x02}b.", "empty stack|without its object"),
        (b"I1\n.", "instruction"),
    ],
)
def test_false_descriptions_are_refused(data: bytes, words: str) -> None:
    with pytest.raises(FarshoreError, match=words):
        read_inert(data)


def test_deep_and_circular_pickles_end() -> None:
    circular: list[object] = []
    circular.append(circular)
    shared: object = ()
    for _ in range(200):
        shared = (shared, shared)
    for data in (
        pickle.dumps(circular),
        pickle.dumps(shared, protocol=2),
        b"\x80\x02" + b"]" * 200_000 + b"a" * 199_999 + b".",
    ):
        with pytest.raises(FarshoreError, match="does not contain a pandas table"):
            read_inert(data)


def test_the_number_of_instructions_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inert_pickle, "MOST_INSTRUCTIONS", 50)
    with pytest.raises(FarshoreError, match="more instructions than a table needs"):
        read_inert(whole()[0])


def test_mutated_pickles_are_refused_or_read() -> None:
    confine("mutated_pickles:read_mutated", cases=80, seed=11)
