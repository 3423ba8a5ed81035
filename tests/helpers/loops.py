"""`loop`, a decorator that compiles functions of tests, which call kernels."""

from functools import wraps

import pytest

from raybox.compiler.decorators import FLAGS

try:
    import numba

    from raybox.compiler.jit.compile import load_all_apart
    from raybox.compiler.jit.numba_types import register_overloads
except ImportError:
    numba = None


def loop(function):
    """Return a function compiled for tests, which may call kernels; without Numba, one that skips."""
    if numba is None:
        return wraps(function)(lambda *_: pytest.skip("needs Numba"))
    register_overloads()
    compiled = numba.njit(**(FLAGS | {"_nrt": True}))(function)

    @wraps(function)
    def call(*args):
        load_all_apart()
        return compiled(*args)

    return call
