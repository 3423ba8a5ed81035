"""Calls of machine code from Python: by the C module where it is built, by ctypes elsewhere.

Code is a C function `int32 code(const int64 *words, int64 *results)`, which returns 0, or 1 without memory.

Words of an argument:

- an array: its address and its lengths; a number or bool: one word; None: none;
- a tuple or named tuple: those of its items;
- a struct (a named tuple whose class is registered, and any named tuple inside of a struct): one word, the
  address of the words of its items.

An `Entry` looks the code up by the kinds of its arguments (`raybox.compiler.kinds`), and calls its `find` for
kinds that are new. A `Plan` is a struct that is laid out once, for arguments that seldom change: in a call it
is one word, the address of its words. It has the attributes of the struct, whose arrays must keep their
memory and shapes.
"""

from typing import TYPE_CHECKING

from raybox.compiler.kinds import Found

if TYPE_CHECKING:
    from raybox.compiler.ctypes_calls import Entry, Plan, register_struct
else:
    try:
        from raybox.compiler._calls import Entry, Plan, register_struct
    except ImportError:
        from raybox.compiler.ctypes_calls import Entry, Plan, register_struct

__all__ = ["Entry", "Found", "Plan", "register_struct"]
