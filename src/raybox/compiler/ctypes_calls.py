"""Calls of machine code by ctypes, where the C module `_calls` is not built: see `raybox.compiler.calls`."""

import ctypes
import platform
import re
import struct
import sys
from collections.abc import Callable, Iterable
from threading import Lock
from typing import NamedTuple, TypeVar, cast

import numpy as np
import numpy.typing as npt

from raybox.compiler.kinds import BLOCK_CLASSES, SCALARS, BlockLike, KindWalk, is_named, refuse

C = TypeVar("C", bound=type)
Result = int | float | bool | tuple[int | float | bool, ...] | None
_FUNCTION = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p)
_RESULTS = re.compile(r"[nifb]|\([ifb]{1,16}\)")
_STRUCTS: set[type] = set()
_PASSED: set[type] = set()  # classes of named tuples that were laid out
_LOCK = Lock()


def register_struct(cls: C) -> C:
    """Return a class of named tuples, whose instances are now passed by address."""
    if not isinstance(cls, type) or not is_named(cls):
        raise TypeError(f"register_struct: got {cls!r}; expected a class of named tuples")
    if cls in _PASSED and cls not in _STRUCTS:
        raise TypeError(f"register_struct: instances of {cls!r} were passed before")
    _STRUCTS.add(cls)
    return cls


class _Layout:
    """Memory of the structs of an argument list."""

    def __init__(self) -> None:
        self.structs: list[ctypes.Array[ctypes.c_int64]] = []

    def words_of(self, values: Iterable[object], in_struct: bool) -> list[int]:
        """Return the words of values; keep those of structs."""
        words: list[int] = []
        for value in values:
            cls = type(value)
            if cls is np.ndarray:
                array = cast("npt.NDArray[np.generic]", value)
                words += (array.__array_interface__["data"][0], *array.shape)
            elif cls in SCALARS:
                words += _scalar_words(value, SCALARS[cls])
            elif cls is Block:
                words.append(cast(Block, value)._address)
            else:
                words += self._tuple_words(cast("tuple[object, ...]", value), in_struct)
        return words

    def _tuple_words(self, value: tuple[object, ...], in_struct: bool) -> list[int]:
        by_address = type(value) in _STRUCTS or (in_struct and type(value) is not tuple)
        words = self.words_of(tuple.__iter__(value), in_struct or by_address)
        if not by_address:
            return words
        self.structs.append((ctypes.c_int64 * len(words))(*words))
        return [ctypes.addressof(self.structs[-1])]


def _scalar_words(value: object, kind: str) -> tuple[int, ...]:
    if kind == "n":
        return ()
    if kind == "f":
        return struct.unpack("=q", struct.pack("=d", value))
    if kind == "g":
        return struct.unpack("=I", cast(np.float32, value).tobytes())
    return (int(cast(int, value)),)


class _CallWalk(KindWalk):
    """The kinds of arguments, without marks: what was found in a Block is not looked for again."""

    def __init__(self) -> None:
        super().__init__(marks=False)

    def _block(self, block: BlockLike) -> str:
        if not isinstance(block, Block):
            self._refuse("got a Block of the C module", "expected one of ctypes_calls")
        self.add_arrays(block._walk.arrays, block._walk.read_only)
        self.classes += block._walk.classes
        return block._kinds


class Block:
    """The words of a struct, laid out once; counts as the struct in any call."""

    __slots__ = ("_address", "_kinds", "_layout", "_value", "_walk")

    def __init__(self, value: tuple[object, ...], /) -> None:
        if type(value) not in _STRUCTS:
            raise TypeError(f"Block: got {type(value)!r}; expected one struct, whose class is registered")
        self._value, self._layout = value, _Layout()
        self._kinds, self._walk, (self._address,) = _lay_out("Block", (value,), self._layout)

    @property
    def value(self) -> tuple[object, ...]:
        """The struct."""
        return self._value


BLOCK_CLASSES.add(Block)


def _lay_out(name: str, args: tuple[object, ...], layout: _Layout) -> tuple[str, KindWalk, list[int]]:
    walk = _CallWalk()
    try:
        kinds = walk.kinds_of(args)
    except (TypeError, OverflowError):
        refuse(name, args)
    _PASSED.update(walk.classes)
    return kinds, walk, layout.words_of(args, False)


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
        self._rows: dict[object, tuple[_Code, ...]] = {}

    def __call__(self, *args: object) -> Result:
        """Call the code for the kinds of the arguments."""
        row = None
        while row is None:  # `find` may run any code, after which all is laid out anew
            layout = _Layout()  # until the code has returned
            kinds, walk, words = _lay_out(self._name, args, layout)
            key = (kinds, *walk.classes)
            row = next((row for row in self._rows.get(key, ()) if not row.writable & walk.read_only), None)
            if row is None:
                self._add_row(key, self._found(args, walk.read_only))
        results = (ctypes.c_int64 * 16)()
        if row.code((ctypes.c_int64 * len(words))(*words), results):
            raise MemoryError(f"{self._name}: out of memory")
        return _result(row.results, results)

    def _found(self, args: tuple[object, ...], read_only: int) -> _Code:
        found = self._find(args)
        if not _is_found(found):
            raise ValueError(
                f"{self._name}: find returned {found!r}; expected Found(address, results, writable)"
            )
        address, results, writable = found
        if writable & read_only:
            raise ValueError(f"{self._name}: find returned code that writes to a read-only array")
        return _Code(_FUNCTION(address), results, writable)

    def _add_row(self, key: object, row: _Code) -> None:
        with _LOCK:
            self._rows[key] = (*self._rows.get(key, ()), row)


def _is_found(found: object) -> bool:
    if not isinstance(found, tuple) or len(found) != 3:
        return False
    address, results, writable = found
    return (
        isinstance(address, int)
        and 0 < address < 2**64
        and isinstance(results, str)
        and _RESULTS.fullmatch(results) is not None
        and isinstance(writable, int)
        and 0 <= writable < 2**128
    )


def _result(kinds: str, words: "ctypes.Array[ctypes.c_int64]") -> Result:
    if kinds == "n":
        return None
    numbers = tuple(_as_number(kind, word) for kind, word in zip(kinds.strip("()"), words, strict=False))
    return numbers if kinds[0] == "(" else numbers[0]


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
