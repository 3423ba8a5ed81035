"""The choice between raybox's own way to compile and Numba's.

raybox links callees into entry points (`linking`) and stores machine code (`code_cache`). Both need parts of
Numba and llvmlite that are not documented, and that any version may change. Before the first use of compiled
code, a probe is loaded or compiled that way, and run (`probe`). If anything fails, Numba compiles and stores
code by itself (`plain_backend`): slower, with the same results.
"""

import platform
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import llvmlite
import numba

from raybox.compiler.fork import fork_safe_lock


class Backend(NamedTuple):
    """Functions that compile."""

    callee_options: Callable[[dict[str, Any]], dict[str, Any]]
    """(flags) -> options of `numba.njit` for functions that compiled code calls"""
    compile_entry: Callable[[Callable[..., Any], dict[str, Any]], Any]
    """(function, flags) -> function for calls from Python, which is compiled when it is called"""
    compile_symbol: Callable[[Callable[..., Any], Any, dict[str, Any]], Any]
    """(function, signature, flags) -> compiled function, with its `address`"""
    empty_words: Callable[[int], Any]
    """(size) -> uninitialised array of 64-bit words, for compiled code"""


_CHOSEN: list[Backend] = []
_LOCK = fork_safe_lock()


def is_chosen() -> bool:
    """Return whether this process has a backend."""
    return bool(_CHOSEN)


def choose() -> Backend:
    """Return the backend of this process; the first call checks raybox's own, and may warn."""
    return _CHOSEN[0] if _CHOSEN else _choose_now()


def _choose_now() -> Backend:
    """Return the backend after a check, without a lock: the check waits for Numba's lock.

    Threads that compile own that lock, and they may come here.
    """
    failure = None
    try:
        from raybox.compiler.probe import check

        found = check()
    except MemoryError:
        raise
    except Exception as error:  # whatever other versions of Numba and llvmlite raise
        from raybox.compiler.plain_backend import PLAIN

        found, failure = PLAIN, error
    with _LOCK:
        is_first = not _CHOSEN
        if is_first:
            _CHOSEN.append(found)
    if is_first and failure:
        warnings.warn(_message(failure), RuntimeWarning, stacklevel=2)
    return _CHOSEN[0]


def _message(error: Exception) -> str:
    reason = ": ".join([type(error).__name__, *str(error).strip().splitlines()[:1]])
    return (
        f"raybox cannot link and store compiled code with Numba {numba.__version__}, llvmlite "
        f"{llvmlite.__version__} and Python {platform.python_version()} ({reason}). Numba does both instead: "
        "results are the same, compiling takes longer. Versions that raybox is tested with avoid this."
    )
