"""`loop`, a decorator that compiles functions of tests, which call kernels."""

import numba

from raybox.compiler.decorators import FLAGS, backend

backend()  # Numba gets the overloads of kernels with it
loop = numba.njit(**(FLAGS | {"_nrt": True}))
