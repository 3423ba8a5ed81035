"""Calls of machine code by ctypes, where the C module `_calls` is not built: see `raybox.compiler.calls`."""

import ctypes
import struct
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np

from raybox.compiler.kinds import (
    DIMENSIONS,
    KINDS,
    PLAN_CLASSES,
    SCALARS,
    Found,
    find_checked,
    is_named,
    read_only_arrays,
    refuse,
    without_marks,
)

C = TypeVar("C", bound=type)
Result = int | float | bool | tuple[int | float | bool, ...] | None
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
_WORDS, _RESULTS = (1 + DIMENSIONS) * KINDS, ctypes.c_int64 * 16
_IS_STRUCT: dict[type, bool] = {tuple: False}  # classes of named tuples that were registered or laid out
_READ_ONLY, _FLAGS = 0x101, 0x501  # NumPy's flags C_CONTIGUOUS and ALIGNED; with WRITEABLE
_ARRAYS = {  # the kinds of arrays that are admitted
    (dtype, ndim, flags): f"{dtype.str}:{ndim}{mark}"
    for dtype in map(np.dtype, "df?bhilqBHILQ")
    for ndim in range(1, DIMENSIONS + 1)
    for flags, mark in ((_READ_ONLY, "r"), (_FLAGS, ""))
}
_ADDRESS = object.__basicsize__  # where a PyArrayObject has the address of its items
_word_at = ctypes.c_int64.from_address


def register_struct(cls: C) -> C:
    """Return a class of named tuples, whose instances are now passed by address."""
    if not isinstance(cls, type) or not is_named(cls):
        raise TypeError(f"register_struct: got {cls!r}; expected a class of named tuples")
    if not _IS_STRUCT.setdefault(cls, True):
        raise TypeError(f"register_struct: instances of {cls!r} were passed before")
    return cls


class _Arguments:
    """The kinds and words of arguments.

    Raises KeyError for a class that is not known, ValueError for too many, or struct.error for
    an integer beyond int64.
    """

    def __init__(self, args: Iterable[object], room: int) -> None:
        self.kinds: list[str] = []  # one for each number, array and tuple; of a plan one text for all
        self._count = 0
        self.words: list[int] = []  # those that have their place
        self._memory = (ctypes.c_int64 * room)()
        self._begin = ctypes.addressof(self._memory)
        self.address = self._placed(self._words_of(args, False))
        struct.pack_into(f"={len(self.words)}q", self._memory, 0, *self.words)

    def _placed(self, words: list[int]) -> int:
        """Return the address that words get."""
        address = self._begin + 8 * len(self.words)
        self.words += words
        return address

    def _words_of(self, values: Iterable[Any], in_struct: bool) -> list[int]:
        words: list[int] = []
        for value in values:
            cls = type(value)
            if cls is np.ndarray:
                shape = value.shape
                self._add(_ARRAYS[value.dtype, len(shape), value.flags.num & _FLAGS])
                words.append(_word_at(id(value) + _ADDRESS).value)
                words += shape
            elif cls is Plan:
                self._add(value._kinds, value._count)
                words.append(value._arguments.words[-1])
            elif cls in SCALARS:
                self._add(SCALARS[cls])
                words += _SCALAR_WORDS[SCALARS[cls]](value)
            else:
                words += self._tuple(value, in_struct)
        return words

    def _tuple(self, value: tuple[object, ...], in_struct: bool) -> list[int]:
        cls = type(value)
        by_address = _IS_STRUCT[cls] or (in_struct and cls is not tuple)
        self._add(f"{id(cls)}({tuple.__len__(value)}")
        words = self._words_of(tuple.__iter__(value), in_struct or by_address)
        return [self._placed(words)] if by_address else words

    def _add(self, kind: str, count: int = 1) -> None:
        self.kinds.append(kind)
        self._count += count
        if self._count > KINDS:
            raise ValueError


_SCALAR_WORDS: dict[str, Callable[[Any], tuple[int, ...]]] = {
    "n": lambda _: (),
    **dict.fromkeys("ib", lambda number: (int(number),)),
    "f": lambda number: struct.unpack("=q", struct.pack("=d", number)),
    "g": lambda number: struct.unpack("=I", number.tobytes()),
}


def _lay_out(name: str, args: tuple[object, ...], room: int = _WORDS) -> _Arguments:
    """Lay out arguments. Reading `_fields` of a class may run any code, after which all is laid out anew."""
    while True:
        try:
            return _Arguments(args, room)
        except KeyError as error:
            (cls,) = error.args
            if not isinstance(cls, type) or not is_named(cls):
                refuse(name, args)
            _IS_STRUCT.setdefault(cls, False)
        except (ValueError, struct.error):
            refuse(name, args)


class Plan:
    """The words of a struct, laid out once; counts as the struct in any call, and has its attributes."""

    __slots__ = ("_arguments", "_count", "_kinds", "_value")

    def __init__(self, value: tuple[object, ...], /) -> None:
        if not _IS_STRUCT.get(type(value)):
            raise TypeError(f"Plan: got {type(value)!r}; expected one struct, whose class is registered")
        self._value, self._arguments = value, _lay_out("Plan", (value,))
        self._arguments = _lay_out("Plan", (value,), len(self._arguments.words))
        self._kinds, self._count = ",".join(self._arguments.kinds), self._arguments._count

    @property
    def value(self) -> tuple[object, ...]:
        """The struct."""
        return self._value

    def __getattr__(self, name: str) -> object:
        return getattr(self._value, name)


PLAN_CLASSES.add(Plan)


class _Code(NamedTuple):
    """Code for arguments of some kinds."""

    code: Callable[[object, object], int]
    results: str
    writable: int


class Entry:
    """Machine code for each combination of kinds, found at the first call."""

    def __init__(self, find: Callable[[tuple[object, ...]], Found], name: str) -> None:
        if not isinstance(name, str) or not callable(find):
            raise TypeError(f"Entry: got {find!r}, {name!r}; expected a callable and a str")
        self._find, self._name = find, name
        self._codes: dict[tuple[str, ...], _Code] = {}
        self._found: dict[str, tuple[_Code, ...]] = {}  # without marks of read-only arrays

    def __call__(self, *args: object) -> Result:
        """Call the code for the kinds of the arguments."""
        laid = _lay_out(self._name, args)
        while (key := tuple(laid.kinds)) not in self._codes:
            self._add_code(key, args)  # `find` may run any code, after which all is laid out anew
            laid = _lay_out(self._name, args)
        code, results = self._codes[key], _RESULTS()
        if code.code(laid.address, results):
            raise MemoryError(f"{self._name}: out of memory")
        if code.results == "n":
            return None
        numbers = tuple(map(_as_number, code.results.strip("()"), results))
        return numbers if code.results[0] == "(" else numbers[0]

    def _add_code(self, key: tuple[str, ...], args: tuple[object, ...]) -> None:
        """Take code that was found for these kinds and writes to no read-only array, or find some."""
        kinds = ",".join(key)
        plain, read_only = without_marks(kinds), read_only_arrays(kinds)
        rows = self._found.get(plain, ())
        for row in rows:
            if not row.writable & read_only:
                self._codes[key] = row
                return
        address, results, writable = find_checked(self._name, self._find, args)
        self._found[plain] = (*rows, _Code(_FUNCTION(address), results, writable))


def _as_number(kind: str, word: int) -> int | float | bool:
    if kind == "f":
        return cast(float, struct.unpack("=d", struct.pack("=q", word))[0])
    return bool(word) if kind == "b" else word
