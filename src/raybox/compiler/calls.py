"""Calls of machine code from Python: by the C module where it is built, by ctypes elsewhere.

Code is a C function `int32 code(const int64 *words, int64 *results)`, which returns 0, or 1 without memory.

Words of an argument:

- an array: its address and its lengths; a number or bool: one word; None: none;
- a tuple or named tuple: those of its items;
- a struct (a named tuple whose class is registered, and any named tuple inside of a struct): one word, the
  address of the words of its items.

An `Entry` looks the code up by the kinds of its arguments (`raybox.compiler.kinds`), and calls its `find` for
kinds that are new. A `Block` is a struct that is laid out once, for arguments that seldom change, and has the
attributes of the struct. Its arrays must keep their memory and shapes.

A `PreparedCall(entry, args, holes, outputs)` is a call whose arguments are laid out once. The holes are
arrays, numbers and Blocks among the arguments, by identity, at any depth; each call is given values of the
same kinds for them. For the outputs, arrays among the arguments, each call makes copies of their first rows,
as many as its first value, and returns (result, copies). All other arrays must keep their memory and shapes.
Several threads may not run it at once.
"""

from typing import TYPE_CHECKING

from raybox.compiler.kinds import Found

if TYPE_CHECKING:
    from raybox.compiler.ctypes_calls import Block, Entry, PreparedCall, level, register_struct
else:
    try:
        from raybox.compiler._calls import Block, Entry, PreparedCall, level, register_struct
    except ImportError:
        from raybox.compiler.ctypes_calls import Block, Entry, PreparedCall, level, register_struct

__all__ = ["Block", "Entry", "Found", "PreparedCall", "level", "register_struct"]
