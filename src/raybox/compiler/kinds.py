"""Kinds of arguments of compiled code, as text, and what is wrong with arguments.

The kinds of an argument list, separated by commas, choose the code that runs:

- ``i`` an integer, ``f`` a float, ``g`` a float32, ``b`` a bool, ``n`` None;
- ``f8:2`` an array of float64 with two dimensions, ``f8:2r`` if it is read-only;
- ``(f,i)`` a tuple, ``Name(f,i)`` a named tuple or struct. A Plan is named as its struct.
"""

import re
from collections.abc import Callable
from typing import NamedTuple, NoReturn, cast

import numpy as np
import numpy.typing as npt

KINDS, DIMENSIONS = 256, 4
PLAN_CLASSES: set[type] = set()  # `Plan` of each implementation of calls that is loaded
SCALARS = {int: "i", float: "f", bool: "b", type(None): "n"} | {
    np.dtype(code).type: kind
    for kind, codes in {"i": "bhilqBHILQ", "f": "d", "g": "f", "b": "?"}.items()
    for code in codes
}
_ITEMS = frozenset(("f8", "f4", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "b1"))
_ARRAY_RULE = (
    "expected a C-contiguous, aligned array in native byte order, of 1 to 4 dimensions, of float64, float32, "
    "bool or integers; numpy.ascontiguousarray makes one"
)
_VALUE_RULE = "expected a numpy.ndarray (no subclass), a number, a bool, None, or a tuple of such"


class Found(NamedTuple):
    """Machine code for arguments of some kinds."""

    address: int
    results: str  # "n" for None, "i", "f", "b", or "(...)" for a tuple of up to 16 of i, f and b
    writable: int  # bit k: array k, in the order of the arguments, must be writable


def is_named(cls: type) -> bool:
    """Return whether a class is one of named tuples."""
    return issubclass(cls, tuple) and isinstance(getattr(cls, "_fields", None), tuple)


class KindWalk:
    """The kinds of arguments, and the classes of named tuples on the way."""

    def __init__(self) -> None:
        self.count = 0
        self.classes: list[type] = []
        self._path: list[object] = []  # number of the argument, names and numbers of items in it

    def kinds_of(self, args: tuple[object, ...]) -> str:
        """Return the kinds of all arguments; raise TypeError or OverflowError for one that is refused."""
        kinds = []
        for k, value in enumerate(args):
            self._path = [k + 1]
            kinds.append(self.kind_of(value))
        return ",".join(kinds)

    def kind_of(self, value: object) -> str:
        """Return the kind of one value."""
        self.count += 1
        if self.count > KINDS:
            raise TypeError(f"more than {KINDS} numbers, arrays and tuples in the arguments")
        cls = type(value)
        if cls is np.ndarray:
            return self._array(cast("npt.NDArray[np.generic]", value))
        if cls in SCALARS:
            return self._scalar(value, SCALARS[cls])
        if cls in PLAN_CLASSES:
            value, cls = value.value, type(value.value)  # type: ignore[attr-defined]
        if cls is tuple or is_named(cls):
            return self._tuple(cast("tuple[object, ...]", value))
        name = cls.__qualname__ if cls.__module__ == "builtins" else f"{cls.__module__}.{cls.__qualname__}"
        return self._refuse(f"got {name}", _VALUE_RULE)

    def _array(self, array: npt.NDArray[np.generic]) -> str:
        dtype, flags = array.dtype, array.flags
        item = f"{dtype.kind}{dtype.itemsize}"
        is_plain = dtype.isnative and item in _ITEMS and flags.c_contiguous and flags.aligned
        if not (is_plain and 1 <= array.ndim <= DIMENSIONS):
            aligned = "" if flags.aligned else ", not aligned"
            what = f"got an array of {dtype.str}, shape {array.shape}, strides {array.strides}{aligned}"
            self._refuse(what, _ARRAY_RULE)
        return f"{item}:{array.ndim}" + "r" * (not flags.writeable)

    def _scalar(self, value: object, kind: str) -> str:
        if kind == "i" and not -(2**63) <= int(cast(int, value)) < 2**63:
            raise OverflowError(f"{self._where()}: got an integer beyond int64")
        return kind

    def _tuple(self, value: tuple[object, ...]) -> str:
        cls, kinds = type(value), []
        fields: tuple[object, ...] = () if cls is tuple else getattr(cls, "_fields")  # noqa: B009
        for k, item in enumerate(tuple.__iter__(value)):
            self._path.append(fields[k] if k < len(fields) else k)
            kinds.append(self.kind_of(item))
            self._path.pop()
        if cls is not tuple:
            self.classes.append(cls)
        return f"{'' if cls is tuple else class_name(cls)}({','.join(kinds)})"

    def _refuse(self, what: str, rule: str) -> NoReturn:
        raise TypeError(f"{self._where()}: {what}; {rule}")

    def _where(self) -> str:
        number, *fields = self._path
        path = "".join(f"[{field}]" if isinstance(field, int) else f".{field}" for field in fields)
        return f"argument {number}" + (f", field {path}" if path else "")


def class_name(cls: type) -> str:
    """Return the name of a class of named tuples in kinds: raybox's own are unique without their modules."""
    is_own = cls.__module__.startswith("raybox.")
    return cls.__qualname__ if is_own else f"{cls.__module__}.{cls.__qualname__}"


def kind_of(args: tuple[object, ...]) -> str:
    """Return the kinds of arguments as one text; raise TypeError or OverflowError where one has none."""
    return KindWalk().kinds_of(args)


def without_marks(kinds: str) -> str:
    """Return kinds as they choose code: without marks of read-only arrays."""
    return re.sub(r"(:\d)r", r"\1", kinds)


def read_only_arrays(kinds: str) -> int:
    """Return which arrays are marked as read-only: bit k is that of array k."""
    return sum(1 << k for k, mark in enumerate(re.findall(r":\d(r?)", kinds)) if mark)


def writable_arrays(kinds: str) -> int:
    """Return which arrays are not marked as read-only, likewise."""
    return (1 << kinds.count(":")) - 1 & ~read_only_arrays(kinds)


def refuse(name: str, args: tuple[object, ...]) -> NoReturn:
    """Raise what is wrong with arguments of an entry."""
    try:
        kind_of(args)
    except (TypeError, OverflowError) as error:
        raise type(error)(f"{name}: {error}") from None
    raise TypeError(f"{name}: another thread changed the arguments while they were read")


def find_checked(name: str, find: Callable[[tuple[object, ...]], Found], args: tuple[object, ...]) -> Found:
    """Return what `find` returns for arguments; raise ValueError if it writes to a read-only array."""
    found = find(args)
    if found.writable & read_only_arrays(kind_of(args)):
        raise ValueError(f"{name}: find returned code that writes to a read-only array")
    return found
