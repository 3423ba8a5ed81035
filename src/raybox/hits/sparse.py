"""All hits of rays as a sparse matrix of SciPy."""

from importlib import import_module
from importlib.util import find_spec
from itertools import accumulate
from typing import TYPE_CHECKING, Protocol

import numpy as np
from numpy.typing import ArrayLike

from raybox.errors import InvalidInput, RayboxError
from raybox.validation import Floats, Ints

if TYPE_CHECKING:
    from scipy.sparse import csr_array


FIELDS = ("lengths", "t", "t_enter", "t_exit")


class _SparseRows(Protocol):
    """`AllHits`, as far as a matrix needs them."""

    @property
    def offsets(self) -> Ints: ...

    @property
    def index(self) -> Ints: ...

    @property
    def geometry(self) -> Ints: ...

    @property
    def t(self) -> Floats: ...


def sparse_matrix(hits: _SparseRows, values: ArrayLike, sizes: tuple[int, ...]) -> "csr_array":
    """Return a `csr_array` of hits; see `AllHits.to_sparse`.

    sizes: how many columns each geometry has.
    """
    if find_spec("scipy") is None:
        raise RayboxError("to_sparse needs SciPy, which is not installed; run: pip install 'raybox[sparse]'")
    numbers = _entries(hits, values)
    starts = np.array([*accumulate(sizes[:-1], initial=0)], np.int64)
    columns = hits.index + starts[hits.geometry] if len(sizes) > 1 else hits.index
    shape = (len(hits.offsets) - 1, sum(sizes))
    sparse = import_module("scipy.sparse")
    small = max(*shape, len(numbers)) <= np.iinfo(np.int32).max
    dtype = np.int32 if small else np.int64
    matrix = sparse.csr_array((numbers, columns.astype(dtype), hits.offsets.astype(dtype)), shape)
    matrix.sum_duplicates()
    return matrix


def _entries(hits: _SparseRows, values: ArrayLike) -> Floats:
    """Return a new array of one number for each hit; raise `InvalidInput` if there is none."""
    if isinstance(values, str):
        if values not in FIELDS:
            raise InvalidInput(f"values must be one of {', '.join(FIELDS)}, or an array; got {values!r}.")
        return np.array(getattr(hits, values))
    numbers = np.array(values, np.float64)
    if numbers.shape != hits.t.shape:
        raise InvalidInput(
            f"values must be one number for each of the {len(hits.t):,} hits; got shape {numbers.shape}. "
            "Pick those of each hit by its index: numbers[hits.index]."
        )
    return numbers
