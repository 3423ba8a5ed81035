"""Compiled code that judges pairs of rays and primitives, called as tests call it."""

import numba

from raybox.kernels.jit import FLAGS
from raybox.kernels.primitives import screen, settle

loop = numba.njit(**(FLAGS | {"_nrt": True}))


@loop
def screen_of(rows, exactly, pairs, number):
    screen(rows, exactly, pairs, number)


@loop
def settle_of(rows, exactly, pairs, number):
    settle(rows, exactly, pairs, number)
