"""New arrays in compiled code."""

from __future__ import annotations

from typing import Any

from numba import types
from numba.extending import intrinsic
from numba.np.arrayobj import _empty_nd_impl

_WORDS = types.Array(types.uint64, 1, "C")


@intrinsic
def _new_words(_typing: Any, _size: Any) -> Any:
    """Return an uninitialised array of 64-bit words."""

    def codegen(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        return _empty_nd_impl(context, builder, _WORDS, [args[0]])._getvalue()

    return _WORDS(types.intp), codegen


def empty_words(size: int) -> Any:
    """Return an uninitialised array.

    `np.empty` compiles the formatting of its errors, too, which takes 2 s; sizes are never wrong here.
    """
    return _new_words(size)
