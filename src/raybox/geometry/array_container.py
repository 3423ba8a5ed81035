"""What containers of arrays share: `equals`, and the errors of `numpy.asarray` and of tensors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import ClassVar, NoReturn, TypeVar

import numpy as np

from raybox.compiler.float_environment import guard_class
from raybox.errors import InvalidInput
from raybox.validation import Array

V = TypeVar("V")


class ReadOnly(Mapping[str, V]):
    """A mapping that cannot be written to."""

    __slots__ = ("_entries",)

    def __init__(self, entries: Mapping[str, V]) -> None:
        self._entries = dict(entries)

    def __getitem__(self, name: str) -> V:
        return self._entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __repr__(self) -> str:
        return repr(self._entries)

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return type(self), (self._entries,)


NOTHING: ReadOnly[int] = ReadOnly({})
"""Counts of a geometry of which nothing was left out."""


@guard_class()
class ArrayContainer:
    """A frozen container of several arrays."""

    __slots__ = ()
    _AS_ARRAY: ClassVar[str]
    """the line to write in place of ``numpy.asarray``"""

    def _compared(self) -> Iterable[object]:
        """Return the values that two equal containers have in common."""
        raise NotImplementedError

    def equals(self, other: object) -> bool:
        """Return whether the other has the same type and equal arrays.

        Ids, labels and objects count, and NaN equals NaN. ``==`` is whether two names are of one object.

        Examples
        --------
        >>> import raybox as rb
        >>> boxes = rb.Boxes([[0, 0], [2, 0]], [[1, 1], [3, 1]])
        >>> boxes.equals(rb.Boxes([[0, 0], [2, 0]], [[1, 1], [3, 1]])), boxes.equals(boxes[:1])
        (True, False)
        """
        return type(self) is type(other) and equal_values(self._compared(), other._compared())

    def __array__(self, dtype: object = None, copy: object = None) -> NoReturn:
        raise InvalidInput(self._not_one_array())

    def __dlpack__(self, **_: object) -> NoReturn:
        raise InvalidInput(
            f"{self._not_one_array()} They are read-only: make a tensor of a copy, "
            "torch.from_numpy(array.copy())."
        )

    __dlpack_device__ = __dlpack__  # which libraries of tensors call first

    def _not_one_array(self) -> str:
        return f"{type(self).__name__} are several arrays, not one. Choose or join them: {self._AS_ARRAY}."


def equal_arrays(one: Array, other: Array) -> bool:
    """Return whether two arrays have equal dtypes, shapes and elements; NaN equals NaN."""
    if one.dtype != other.dtype or one.shape != other.shape:
        return False
    return bool(np.array_equal(one, other, equal_nan=one.dtype.kind == "f"))


def equal_values(one: Iterable[object], other: Iterable[object]) -> bool:
    """Return whether arrays, containers, mappings and other values are equal."""
    ones, others = list(one), list(other)
    return len(ones) == len(others) and all(map(_equal, ones, others))


def _equal(one: object, other: object) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        return equal_arrays(one, other)
    if isinstance(one, ArrayContainer):
        return one.equals(other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_equal(one[name], other[name]) for name in one)
    return type(one) is type(other) and one == other
