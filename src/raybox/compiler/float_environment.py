"""The floating-point environment of public calls: round to nearest, denormal numbers preserved.

The proofs of raybox assume these modes. Other libraries change them for a whole thread: flags that flush
denormal operands (DAZ) and results (FTZ) to zero, or another rounding direction. So public functions run
`in_default_environment`, which tests the modes by arithmetic, in less than 0.1 us. Only where they differ are
they set and, in the end, restored. Masks of exceptions stay the caller's. Internal functions need no guard.

Modules of raybox are imported in the default environment too (`guard_imports`). They compute constants, and
kernels are compiled with them. Python rounds literals in the modes of the thread that compiles a module, and
stores the byte code.
"""

import struct
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, cached_property, wraps
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from inspect import signature
from types import ModuleType
from typing import Any, NamedTuple, ParamSpec, TypeVar

from raybox.compiler.fork import fork_safe_lock
from raybox.errors import RayboxError, out_of_memory

P = ParamSpec("P")
T = TypeVar("T")
C = TypeVar("C", bound=type)

# Variables, not literals: the compiler of Python would compute the test below only once.
_FEWER_ROWS = "pass fewer rows at a time"
_ONE, _HALF, _SMALLEST_NORMAL, _SMALL = 1.0, 0.5, sys.float_info.min, 1e-30

_BYTES = 256  # more than any fenv_t has
_MXCSR_FLAGS = 0x8040  # FTZ and DAZ
_FPCR_FLAGS = 1 << 24 | 1 << 19 | 1  # FZ, FZ16 and FIZ
_WINDOWS_MASK = 0x03000300  # _MCW_DN | _MCW_RC; 0 in both keeps denormal numbers and rounds to nearest
_FLAGS = {  # first byte of the control word in fenv_t, and its flags that flush
    ("linux", "x86_64"): (28, _MXCSR_FLAGS),
    ("darwin", "x86_64"): (4, _MXCSR_FLAGS),
    ("linux", "aarch64"): (0, _FPCR_FLAGS),
    ("darwin", "arm64"): (8, _FPCR_FLAGS),
}


def is_default() -> bool:
    """Return whether this thread rounds to nearest and preserves denormal numbers.

    A denormal product is false if it was flushed (FTZ), or is flushed when it is tested (DAZ). The sum is
    above 1 if it was rounded up; the difference is below 1 if it was rounded down or towards zero.
    """
    return bool(_SMALLEST_NORMAL * _HALF) and _ONE + _SMALL - _SMALL == _ONE


@contextmanager
def default_environment() -> Iterator[None]:
    """Run the body of a `with` statement in the default modes, and restore the caller's.

    Raises
    ------
    RayboxError
        If the modes cannot be set on this system.
    """
    if is_default():
        yield
        return
    control = _control()
    saved = control.read()
    try:
        control.set_default(saved)
        if not is_default():
            raise RayboxError(
                "raybox computes with round to nearest and with denormal numbers, and cannot set these modes "
                "on this system. Reset them in this thread before the call."
            )
        yield
    finally:
        control.restore(saved)


def in_default_environment(function: Callable[P, T]) -> Callable[P, T]:
    """Return the function, run in the default modes whatever the caller's are.

    A `MemoryError` becomes one of raybox.
    """

    @wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> T:
        try:
            if _SMALLEST_NORMAL * _HALF and _ONE + _SMALL - _SMALL == _ONE:  # `is_default`, without a call
                return function(*args, **kwargs) if kwargs else function(*args)  # type: ignore[call-arg]
            with default_environment():
                return function(*args, **kwargs)
        except MemoryError as error:
            owner, _, name = function.__qualname__.rpartition(".")
            way_out = "give a smaller chunk" if "chunk" in signature(function).parameters else _FEWER_ROWS
            raise out_of_memory(
                error, owner if name[0] == "_" and owner else name, way_out
            ) from error.__cause__

    return guarded


def guard_class(*stored: str) -> Callable[[C], C]:
    """Return a class decorator that runs public members `in_default_environment`.

    Members are `__init__`, `__getitem__`, public methods and properties, and all cached properties.

    stored: members that compute nothing in floats; they return or rearrange what is stored.
    """

    def guard(cls: C) -> C:
        for name, member in list(vars(cls).items()):
            is_public = name in ("__init__", "__getitem__") or not name.startswith("_")
            if name not in stored and (is_public or isinstance(member, cached_property)):
                _guard_member(cls, name, member)
        return cls

    return guard


def _guard_member(cls: type, name: str, member: Any) -> None:
    if isinstance(member, cached_property):
        member.func = in_default_environment(member.func)
        if hasattr(member, "lock"):  # before Python 3.12: one for the property of all instances
            member.lock = fork_safe_lock()
    elif isinstance(member, property):
        setattr(cls, name, member.getter(in_default_environment(member.fget)))  # type: ignore[arg-type]
    elif isinstance(member, classmethod | staticmethod):
        setattr(cls, name, type(member)(in_default_environment(member.__func__)))
    elif callable(member) and not isinstance(member, type):
        setattr(cls, name, in_default_environment(member))


class _GuardedFinder:
    """A finder of modules that guards their loaders."""

    @staticmethod
    def find_spec(
        name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return the spec of a module of raybox; None for any other."""
        if not name.startswith("raybox."):
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and isinstance(spec.loader, SourceFileLoader):
            guarded = in_default_environment(spec.loader.exec_module)
            spec.loader.exec_module = guarded  # type: ignore[method-assign]
        return spec


def guard_imports() -> None:
    """Guard all later imports of modules of raybox."""
    if not any(isinstance(finder, _GuardedFinder) for finder in sys.meta_path):
        sys.meta_path.insert(0, _GuardedFinder())


class _Control(NamedTuple):
    """Functions that read, set and restore the modes of this thread."""

    read: Callable[[], Any]
    set_default: Callable[[Any], object]
    restore: Callable[[Any], object]


@cache
def _control() -> _Control:
    import ctypes  # imported late: most processes never need it
    import platform

    if sys.platform == "win32":
        word = ctypes.CDLL("ucrtbase")._controlfp
        return _Control(
            read=lambda: word(0, 0),
            set_default=lambda _: word(0, _WINDOWS_MASK),
            restore=lambda saved: word(saved, _WINDOWS_MASK),
        )
    libm = ctypes.CDLL(None)  # of the interpreter, which uses it
    start, flags = _FLAGS.get((sys.platform, platform.machine()), (0, 0))

    def read() -> Any:
        saved = ctypes.create_string_buffer(_BYTES)
        libm.fegetenv(saved)
        return saved

    def set_default(saved: Any) -> None:
        wanted = ctypes.create_string_buffer(saved.raw)
        (word,) = struct.unpack_from("I", wanted, start)
        struct.pack_into("I", wanted, start, word & ~flags)
        libm.fesetenv(wanted)
        libm.fesetround(0)

    return _Control(read, set_default, libm.fesetenv)
