"""Numba's types of arguments, from the text of their kinds (`raybox.compiler.kinds`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from numba import types
from numba.np.numpy_support import from_dtype
from numpy import dtype

from raybox.compiler.jit.struct_type import StructRef
from raybox.compiler.struct_ref import STRUCTS

_TOKEN = re.compile(r"([a-z]\d):(\d)(r?)|([\w.<>]*)\(|\)|[ifgbn]|,")
_NUMBERS = {
    "i": types.int64,
    "f": types.float64,
    "g": types.float32,
    "b": types.boolean,
    "n": types.none,
}


def types_of(kinds: str, classes: Mapping[str, type]) -> tuple[Any, ...]:
    """Return Numba's types of arguments. classes: the named tuples among them, by their names in `kinds`."""
    return tuple(_items(_TOKEN.finditer(kinds), classes, in_struct=False))


def class_names(kinds: str) -> set[str]:
    """Return the names of the named tuples among arguments."""
    return {token[4] for token in _TOKEN.finditer(kinds) if token[4]}


def _items(tokens: Iterator[re.Match[str]], classes: Mapping[str, type], *, in_struct: bool) -> Iterator[Any]:
    """Yield types up to the closing parenthesis. in_struct: named tuples are structs."""
    for token in tokens:
        if token[0] == ")":
            return
        if token[1]:
            yield types.Array(from_dtype(dtype(token[1])), int(token[2]), "C", readonly=bool(token[3]))
        elif token[0].endswith("("):
            yield _tuple_of(tokens, classes, classes.get(token[4]), in_struct)
        elif token[0] != ",":
            yield _NUMBERS[token[0]]


def _tuple_of(
    tokens: Iterator[re.Match[str]], classes: Mapping[str, type], named: type | None, in_struct: bool
) -> Any:
    is_struct = in_struct or named in STRUCTS
    members = tuple(_items(tokens, classes, in_struct=is_struct))
    if named is None or not is_struct:
        return types.BaseTuple.from_types(members, named)
    return StructRef(named, members)
