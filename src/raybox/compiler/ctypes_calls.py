"""Calls of machine code by ctypes, where the C module `_calls` is not built: see `raybox.compiler.calls`."""

import ctypes
import platform
import struct
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt

from raybox.compiler.kinds import (
    BLOCK_CLASSES,
    DIMENSIONS,
    KINDS,
    SCALARS,
    find_checked,
    is_named,
    kind_of,
    read_only_arrays,
    refuse,
    without_marks,
)

C = TypeVar("C", bound=type)
Result = int | float | bool | tuple[int | float | bool, ...] | None
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
_RESULTS = ctypes.c_int64 * 16
_WORDS = (1 + DIMENSIONS) * KINDS
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


class _Refused(Exception):
    """An argument is refused."""


class _Arguments:
    """The kinds and words of arguments.

    Raises KeyError for a class that is not known, `_Refused`, or struct.error for an integer beyond int64.
    """

    def __init__(self, args: Iterable[object], room: int) -> None:
        self.kinds: list[object] = []  # one for each number, array and tuple
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
        kinds: list[object] = self.kinds
        words: list[int] = []
        for value in values:
            cls = type(value)
            if cls is np.ndarray:
                shape = value.shape
                kinds.append(_ARRAYS[value.dtype, len(shape), value.flags.num & _FLAGS])
                words.append(_word_at(id(value) + _ADDRESS).value)
                words += shape
            elif cls is Block:
                kinds += value._arguments.kinds
                words.append(value._arguments.words[-1])
            elif cls in SCALARS:
                kinds.append(SCALARS[cls])
                words += _SCALAR_WORDS[SCALARS[cls]](value)
            else:
                words += self._tuple(value, in_struct)
        if len(kinds) > KINDS:
            raise _Refused
        return words

    def _tuple(self, value: tuple[object, ...], in_struct: bool) -> list[int]:
        cls = type(value)
        by_address = _IS_STRUCT[cls] or (in_struct and cls is not tuple)
        self.kinds.append((cls, tuple.__len__(value)))
        if len(self.kinds) > KINDS:
            raise _Refused
        words = self._words_of(tuple.__iter__(value), in_struct or by_address)
        return [self._placed(words)] if by_address else words


_SCALAR_WORDS: dict[str, Callable[[Any], tuple[int, ...]]] = {
    "n": lambda _: (),
    "i": lambda number: (int(number),),
    "b": lambda number: (int(number),),
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
        except (_Refused, struct.error):
            refuse(name, args)


class Block:
    """The words of a struct, laid out once; counts as the struct in any call, and has its attributes."""

    __slots__ = ("_arguments", "_value")

    def __init__(self, value: tuple[object, ...], /) -> None:
        if not _IS_STRUCT.get(type(value)):
            raise TypeError(f"Block: got {type(value)!r}; expected one struct, whose class is registered")
        self._value, self._arguments = value, _lay_out("Block", (value,))
        self._arguments = _lay_out("Block", (value,), len(self._arguments.words))

    @property
    def value(self) -> tuple[object, ...]:
        """The struct."""
        return self._value

    def __getattr__(self, name: str) -> object:
        return getattr(self._value, name)


BLOCK_CLASSES.add(Block)


class _Code(NamedTuple):
    """Code for arguments of some kinds."""

    code: Callable[[object, object], int]
    results: str
    writable: int


class Entry:
    """Machine code for each combination of kinds, found at the first call."""

    def __init__(self, find: Callable[[tuple[object, ...]], tuple[int, str, int]], name: str) -> None:
        if not isinstance(name, str) or not callable(find):
            raise TypeError(f"Entry: got {find!r}, {name!r}; expected a callable and a str")
        self._find, self._name = find, name
        self._codes: dict[object, _Code] = {}
        self._found: dict[object, tuple[_Code, ...]] = {}  # without marks of read-only arrays

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

    def _add_code(self, key: tuple[object, ...], args: tuple[object, ...]) -> None:
        """Take code that was found for these kinds and writes to no read-only array, or find some."""
        read_only = read_only_arrays(",".join(kind for kind in key if isinstance(kind, str)))
        plain = tuple(without_marks(kind) if isinstance(kind, str) else kind for kind in key)
        rows = self._found.get(plain, ())
        for row in rows:
            if not row.writable & read_only:
                self._codes[key] = row
                return
        address, results, writable = find_checked(self._name, self._find, args)
        self._found[plain] = (*rows, _Code(_FUNCTION(address), results, writable))


class PreparedCall:
    """A call of an entry whose arguments are laid out once, but for some values: here, in each call."""

    def __init__(
        self,
        entry: Entry,
        args: tuple[object, ...],
        holes: tuple[object, ...],
        outputs: tuple[npt.NDArray[np.generic], ...],
        /,
    ) -> None:
        for array in outputs:
            if not isinstance(array, np.ndarray):
                raise TypeError(f"got {type(array)!r}; expected a numpy.ndarray")
        self._entry, self._args, self._holes, self._outputs = entry, args, holes, outputs
        if outputs and not holes:
            raise TypeError("PreparedCall: outputs need a hole, which counts their rows")
        kind_of(args)  # raises what is wrong with them
        self._kinds = [without_marks(kind_of((hole,))) for hole in holes]
        found = set(_identities(args))
        for k, hole in enumerate((*holes, *outputs)):
            if isinstance(hole, tuple):
                raise TypeError(f"{entry._name}: got {type(hole)!r} as a hole; expected no tuple")
            if id(hole) not in found:
                raise ValueError(f"PreparedCall: hole {k} is no argument")

    def __call__(self, *values: object) -> tuple[Result, tuple[npt.NDArray[np.generic], ...]]:
        """Call the entry with values in place of the holes, and copies of outputs; return these."""
        name = self._entry._name
        if len(values) != len(self._holes):
            raise TypeError(f"{name}: got {len(values)} values; expected {len(self._holes)}")
        if [without_marks(kind_of((value,))) for value in values] != self._kinds:
            raise TypeError(f"{name}: a value is of another kind than the one that it replaces")
        new: dict[int, object] = {id(hole): value for hole, value in zip(self._holes, values, strict=True)}
        count = cast(int, values[0])
        if any(not 0 <= count <= len(array) for array in self._outputs):
            raise ValueError(f"{name}: outputs have fewer rows than {count}")
        copies = tuple(array[:count].copy() for array in self._outputs)
        new |= {id(array): copy for array, copy in zip(self._outputs, copies, strict=True)}
        return self._entry(*(_filled(value, new) for value in self._args)), copies


def _identities(values: tuple[object, ...]) -> Iterator[int]:
    """Yield the identities of all values in nested tuples."""
    for value in values:
        yield id(value)
        if isinstance(value, tuple):
            yield from _identities(value)


def _filled(value: object, new: dict[int, object]) -> object:
    """Return a value with those of these identities replaced in it."""
    if not isinstance(value, tuple):
        return new.get(id(value), value)
    items = [_filled(item, new) for item in value]
    return tuple(items) if type(value) is tuple else cast(Any, type(value))(*items)


def _as_number(kind: str, word: int) -> int | float | bool:
    if kind == "f":
        return cast(float, struct.unpack("=d", struct.pack("=q", word))[0])
    return bool(word) if kind == "b" else word


def level() -> str:
    """Return the level of this processor: v4, v3, v2, baseline, or generic on aarch64."""
    machine = platform.machine().lower()
    if machine in {"aarch64", "arm64"}:
        return "generic"
    has = _features() if machine in {"x86_64", "amd64"} else {}
    for name, features in _LEVELS.items():
        if all(has.get(feature) for feature in features):
            return name
    return "baseline"


# NumPy has no names for all features of a level before 2.4, but one implies those in processors that exist.
_LEVELS = {"v4": ("AVX512_SKX",), "v3": ("AVX2", "FMA3", "F16C"), "v2": ("SSE42", "POPCNT")}


def _features() -> dict[str, bool]:
    loaded = sys.modules.get("numpy._core._multiarray_umath") or sys.modules["numpy.core._multiarray_umath"]
    return cast(dict[str, bool], loaded.__cpu_features__)
