"""Numba, which compiles kernels where no library has them: in checkouts, and for users' own primitives.

All contact with Numba is in this package; it is imported when the first kernel is compiled.
"""
