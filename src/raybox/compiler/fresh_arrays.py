"""New arrays for compiled code, without NumPy's checks of their shape.

`np.empty` compiles the formatting of its error messages, too, which takes 2 s; sizes are never wrong here.
"""

from typing import Any

from numba.core import types
from numba.extending import intrinsic

from raybox.compiler.decorators import allocating

_WORDS = types.Array(types.uint64, 1, "C")


@intrinsic
def _empty_words(_typing: Any, size: Any) -> Any:
    """Return an uninitialised array of 64-bit words."""

    def codegen(context: Any, builder: Any, _sig: Any, args: Any) -> Any:
        from numba.np.arrayobj import _empty_nd_impl  # at compile time only: the import is slow

        return _empty_nd_impl(context, builder, _WORDS, [args[0]])._getvalue()

    return _WORDS(types.intp), codegen


@allocating
def zero_words(size: int) -> Any:
    """Return an array of 64-bit zeros."""
    words = _empty_words(size)
    for k in range(size):
        words[k] = 0
    return words
