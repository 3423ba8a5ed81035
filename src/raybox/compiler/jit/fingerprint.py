"""Identify an entry point by all that it is compiled from, so that stored code is right after any edit.

That is: its byte code with the constants, the functions that it names, directly or not, the values of globals
and closures, which count as constants for Numba too, the fields of named tuples, and the kernels that tables
choose for these. What the compiler itself is made of has a stamp (`raybox.compiler.jit.store`). Comments,
docstrings and line numbers do not matter. A change of a global of a user's kernel after the first
compilation is not detected.
"""

import enum
import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from inspect import unwrap
from itertools import product
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any, NamedTuple

import numpy as np

from raybox.compiler.decorators import DISPATCHERS, ApartFunction, DeviceFunction
from raybox.compiler.intrinsics import VectorCode

_VERSIONED = frozenset(["numpy", "numba", "llvmlite", "builtins", "math", "typing", "functools", "operator"])
_HAS_DOCSTRING = 0x4000000  # a flag of byte code since Python 3.13
_COMPILER = __name__.rpartition(".")[0].rpartition(".")[0]


class Unidentified(Exception):
    """Something that code is compiled from has no identity; such code is not stored."""


def fingerprint(function: Callable[..., Any], structs: Iterable[type]) -> bytes:
    """Return a hash of what an entry point is compiled from, given the classes among its arguments.

    Raises
    ------
    Unidentified
        If it depends on an object of which the contents are unknown.
    """
    walk = _Walk()
    walk.add(function)
    for struct in structs:
        walk.add(struct)
    walk.add_all()
    return walk.digest.digest()


class _Table(NamedTuple):
    """A table of modules by class, and the names that a function may take from them."""

    modules: dict[type, ModuleType]
    names: tuple[str, ...]


class _Walk:
    """Objects that were reached, each added to the hash once."""

    def __init__(self) -> None:
        self.digest = hashlib.blake2b(digest_size=32)
        self._known = dict[int, tuple[int, object]]()  # the object too: so that its address stays its own
        self._pending = list[object]()  # not described yet: calls of calls would go too deep
        self._structs = list[type]()
        self._stubs = list[Callable[..., Any]]()
        self._tables = list[_Table]()
        self._chosen = set[tuple[int, type]]()  # address of a stub or table, and struct

    def add(self, item: object) -> None:
        """Add the number of an object, which is described later, once."""
        if id(item) not in self._known:
            self._known[id(item)] = len(self._known), item
            self._pending.append(item)
        self._put(self._known[id(item)][0])

    def add_all(self) -> None:
        """Describe the objects that were added, and what they refer to, and kernels chosen for them."""
        while self._pending:
            while self._pending:
                self._describe(self._pending.pop())
            self._add_kernels()

    def _add_kernels(self) -> None:
        """Add what stubs and tables choose for the structs that were reached."""
        choosers: list[Callable[..., Any] | _Table] = [*self._stubs, *self._tables]
        for chooser, struct in product(choosers, self._structs):
            if (id(chooser), struct) not in self._chosen:
                self._chosen.add((id(chooser), struct))
                self._put(struct.__qualname__)
                if isinstance(chooser, _Table):
                    self._add_named(chooser.modules.get(struct), chooser.names)
                else:
                    with suppress(LookupError):  # a table of other classes
                        self.add(DISPATCHERS[chooser](struct))

    def _put(self, *words: object) -> None:
        self.digest.update(f"{words!r}\n".encode())

    def _describe(self, item: object) -> None:
        for kinds, describe in _DESCRIBED:
            if isinstance(item, kinds):
                describe(self, item)
                return
        self._describe_other(item)

    def _describe_other(self, item: object) -> None:
        home = type(item).__module__.partition(".")[0]
        wrapped = unwrap(item) if hasattr(item, "__wrapped__") else None  # type: ignore[arg-type]
        if wrapped is not None:
            self.add(wrapped)
        elif home in _VERSIONED or type(item).__module__.startswith(_COMPILER):
            self._put(repr(item))
        else:
            raise Unidentified(f"{type(item).__module__}.{type(item).__qualname__}")

    def _describe_function(self, function: FunctionType) -> None:
        self._put(function.__module__, function.__qualname__)
        if function in DISPATCHERS:
            self._stubs.append(function)
            return
        if function.__module__.partition(".")[0] in _VERSIONED or function.__module__.startswith(_COMPILER):
            return
        self._describe_code(function.__code__, function.__globals__, function.__doc__)
        for value in (function.__defaults__, function.__kwdefaults__):
            self.add(value)
        for cell in function.__closure__ or ():
            self.add(cell.cell_contents)

    def _describe_code(self, code: CodeType, namespace: dict[str, Any], docstring: str | None) -> None:
        flags = code.co_flags & ~_HAS_DOCSTRING
        self._put(code.co_code, code.co_names, code.co_varnames, code.co_freevars, flags)
        for k, constant in enumerate(code.co_consts):
            if isinstance(constant, CodeType):
                self._describe_code(constant, namespace, None)
            else:
                self.add(None if k == 0 and constant == docstring else constant)
        texts = tuple(constant for constant in code.co_consts if isinstance(constant, str))  # of `hasattr`
        for name in code.co_names:
            if name in namespace:
                self._add_global(namespace[name], code.co_names + texts)

    def _add_global(self, value: object, names: tuple[str, ...]) -> None:
        """Add a global; of modules, only what a function may name of them."""
        if isinstance(value, ModuleType):
            self._add_named(value, names)
        elif isinstance(value, dict) and value and all(isinstance(one, ModuleType) for one in value.values()):
            self._tables.append(_Table(value, names))
        else:
            self.add(value)

    def _add_named(self, module: ModuleType | None, names: tuple[str, ...]) -> None:
        if module and module.__name__.partition(".")[0] not in _VERSIONED:
            for name in names:
                if hasattr(module, name):
                    self.add(getattr(module, name))

    def _describe_class(self, cls: type) -> None:
        self._put(cls.__module__, cls.__qualname__)
        if cls.__module__.partition(".")[0] in _VERSIONED or cls.__module__.startswith(_COMPILER):
            return
        fields = getattr(cls, "_fields", None)
        if fields is not None:
            self._put(fields)
            self._structs.append(cls)
        for base in cls.__bases__:
            self.add(base)
        for name, member in vars(cls).items():
            if isinstance(member, FunctionType | property | staticmethod | classmethod) and (
                fields is None or not name.startswith("_")
            ):
                self._put(name)
                self.add(member)

    def _describe_device(self, made: DeviceFunction) -> None:
        self._put(sorted(made.flags.items()))
        self.add(made.py_func)

    def _describe_items(self, items: Iterable[object]) -> None:
        self._put(type(items).__qualname__)
        if hasattr(items, "_fields"):
            self.add(type(items))
        for item in items:
            self.add(item)

    def _describe_mapping(self, items: dict[Any, Any]) -> None:
        for key, value in items.items():
            self.add(key)
            self.add(value)


def _parts(walk: _Walk, parts: Iterator[object]) -> None:
    for part in parts:
        walk.add(part)


_PLAIN = bool | int | float | complex | str | bytes | None | type(Ellipsis)
_DESCRIBED: tuple[tuple[Any, Callable[[_Walk, Any], None]], ...] = (
    (DeviceFunction, _Walk._describe_device),
    (VectorCode, lambda walk, code: _parts(walk, iter((code.write, code.result)))),
    (ApartFunction, lambda walk, made: _parts(walk, iter((made.py_func, made.signature)))),
    (FunctionType, _Walk._describe_function),
    (BuiltinFunctionType, lambda walk, item: walk._put(item.__module__, item.__qualname__)),
    (MethodType, lambda walk, item: _parts(walk, iter((item.__self__, item.__func__)))),
    (partial, lambda walk, item: _parts(walk, iter((item.func, item.args, item.keywords)))),
    (property, lambda walk, item: walk.add(item.fget)),
    (staticmethod | classmethod, lambda walk, item: walk.add(item.__func__)),
    (enum.Enum, lambda walk, item: walk._put(type(item).__qualname__, item.name, item.value)),
    (type, _Walk._describe_class),
    (_PLAIN, lambda walk, item: walk._put(type(item).__name__, item)),
    (np.ndarray, lambda walk, item: walk._put(item.dtype.str, item.shape, item.tobytes())),
    (np.generic | np.dtype, lambda walk, item: walk._put(repr(item))),
    (tuple | list, _Walk._describe_items),
    (frozenset, lambda walk, item: walk._put(sorted(map(repr, item)))),
    (dict, _Walk._describe_mapping),
    (ModuleType, lambda walk, item: walk._put(item.__name__)),
)
