"""Checksums: the published algorithm, and what distinguishes arrays, texts and facts."""

import io

import numpy as np
import pytest

from raybox.store import checksum
from raybox.store.checksum import Checksum

pytestmark = pytest.mark.core


def test_it_is_xxh3_of_128_bits():
    """The value of no bytes, of the algorithm's own test vectors."""
    assert checksum.of_bytes() == checksum.of_bytes(b"") == "99aa06d3014798d86001c324468d497f"


def test_bytes_in_pieces_and_in_a_file():
    data = np.random.default_rng(1).integers(0, 256, 3_000_001, dtype=np.uint8)
    whole, pieces = checksum.of_bytes(data), Checksum()
    for begin in range(0, len(data), 1_000_003):
        pieces.update(data[begin : begin + 1_000_003])
    assert whole == pieces.text() == checksum.of_bytes(data[:5], data[5:].tobytes(), bytearray())
    assert whole == checksum.of_file(io.BytesIO(data.tobytes())) == checksum.of_bytes(memoryview(data))
    file = io.BytesIO(data.tobytes())
    file.seek(10)
    assert checksum.of_file(file, 2_000_000) == checksum.of_bytes(data[10:2_000_010])
    assert file.tell() == 2_000_010


ARRAYS = [
    [np.arange(6)],
    [np.arange(6).astype(np.uint64)],
    [np.arange(6).astype(">i8")],
    [np.arange(6).reshape(2, 3)],
    [np.arange(6).reshape(3, 2)],
    [np.arange(3), np.arange(3, 6)],
    [np.arange(6).view("M8[s]")],
    [np.arange(6).view("M8[ms]")],
    [np.arange(6).view([("a", "i4"), ("b", "i4")])],
    [np.arange(6).view([("b", "i4"), ("a", "i4")])],
    [np.empty((0, 3))],
    [np.empty((3, 0))],
    [],
]


def test_arrays_of_one_content_and_another_layout_differ():
    assert len({checksum.of_arrays(*arrays) for arrays in ARRAYS}) == len(ARRAYS)


def test_arrays_in_any_order_of_memory():
    array = np.arange(24.0).reshape(2, 3, 4)
    assert checksum.of_arrays(array) == checksum.of_arrays(np.asfortranarray(array))
    assert checksum.of_arrays(array[:, ::2]) == checksum.of_arrays(array[:, ::2].copy())


def test_texts_and_facts():
    texts = [(), ("",), ("", ""), ("ab",), ("a", "b"), ("1:a",), ("\udc80",)]
    assert len({checksum.of_texts(*text) for text in texts}) == len(texts)
    assert checksum.of_facts({"a": 1, "b": [2.5, None]}) == checksum.of_facts({"b": [2.5, None], "a": 1})
    assert checksum.of_facts({"a": 1}) != checksum.of_facts({"a": "1"})
