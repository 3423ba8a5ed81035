"""Structs that compiled code receives as a pointer: it reads and writes the tuple's own memory."""

from typing import Any, NamedTuple

import numpy as np
import pytest

from raybox.compiler.decorators import device
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import int64, vector_code
from raybox.compiler.kinds import class_name, kind_of
from raybox.compiler.struct_ref import struct

pytestmark = pytest.mark.jit


class Inner(NamedTuple):
    """Arrays of one type: to Numba an array of them."""

    one: Any
    other: Any


@struct
class Outer(NamedTuple):
    """One field of each type that structs have."""

    inner: Inner
    words: Any
    rows: Any
    cube: Any
    flag: bool
    number: int
    time: float
    nothing: Any
    none: tuple[()]


@device
def _pick(tuple_: Outer, i: int, j: int, k: int) -> Any:
    return tuple_.rows[i, j], tuple_.cube[i, j, k], tuple_.cube[-1, -1, k]


@entry
def _read(given: Outer, place: Any, out: Any, sizes: Any) -> Any:
    out[:3] = 0.0
    row, cell, last = _pick(given, place[0], place[1], place[2])
    out[0], out[1], out[2] = row, cell, last
    sizes[0], sizes[1], sizes[2] = given.words.size, given.cube.size, given.inner.other.size
    for axis in range(3):
        sizes[3 + axis], sizes[6 + axis] = given.cube.shape[axis], given.cube.strides[axis]
    return given.rows.shape[0], given.rows.shape[1], given.flag, given.number, given.time, given.cube.itemsize


@entry
def _write(given: Outer) -> int:
    """Read items after writing them, where a reused load would be out of date."""
    total = 0
    for k in range(given.words.size):
        given.words[k] += 1
        given.inner.one[0] += given.words[k]
        total += given.inner.one[0]
    return total


@vector_code(int64)
def _sizes(b: Any, given: Any) -> Any:
    return b.add(given.words.size, b.mul(given.inner.other.size, given.number))


@entry
def _measure(given: Outer) -> int:
    return _sizes(given)


def make(shape=(3, 4, 5), words=7, *, flag=True):
    random = np.random.default_rng(0)
    inner = Inner(np.zeros(2, np.int64), np.zeros(5, np.int64))
    rows, cube = random.random(shape[:2]), random.random(shape).astype(np.float32)
    return Outer(inner, np.arange(words, dtype=np.int32), rows, cube, flag, 11, 0.25, None, ())


def test_a_struct_and_those_nested_in_it_are_pointers():
    from raybox.compiler.jit.struct_type import StructRef, types_of

    def kind_of_struct(given):
        classes = {class_name(cls): cls for cls in (Outer, Inner)}
        (kind,) = types_of(kind_of((given,)), classes)
        return kind

    kind = kind_of_struct(make())
    assert isinstance(kind, StructRef)
    assert isinstance(kind.types[0], StructRef)
    assert kind == kind_of_struct(make((9, 9, 9)))
    assert len(kind.mangling_args[0]) < 30
    assert kind != kind_of_struct(make()._replace(words=np.zeros(3)))


@pytest.mark.parametrize("shape", [(3, 4, 5), (2, 1, 5), (1, 6, 1), (4, 2, 3)])
@pytest.mark.parametrize("flag", [False, True])
def test_all_fields_are_read(shape, flag):
    given, out, sizes = make(shape, flag=flag), np.empty(3), np.zeros(9, np.int64)
    for place in np.ndindex(shape):
        facts = _read(given, place, out, sizes)
        at = [given.rows[place[:2]], given.cube[place], given.cube[-1, -1, place[2]]]
        np.testing.assert_array_equal(out, at)
        assert facts == (*shape[:2], flag, 11, 0.25, 4)
        assert sizes.tolist() == [7, given.cube.size, 5, *shape, *given.cube.strides]


def test_written_items_are_read_again():
    given = make(words=3)
    assert _write(given) == 1 + 3 + 6
    assert given.words.tolist() == [1, 2, 3]
    assert given.inner.one[0] == 6
    assert _write(given) == 8 + 11 + 15
    assert _write(make(words=0)) == 0


def test_each_call_has_its_own_struct():
    for words in (0, 5, 2, 9):
        assert _measure(make(words=words)) == words + 5 * 11
