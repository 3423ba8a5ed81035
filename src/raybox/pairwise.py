"""`intersect`: rays against primitives row by row, no tree."""

from typing import Any

import numpy as np

from raybox import few
from raybox.errors import InvalidInput
from raybox.geometry import Geometry, PlaneRows, Planes, Rays
from raybox.hits import Hits, Source
from raybox.parallel import check_workers, run_chunks
from raybox.validate import Floats, Ints


def intersect(
    rays: Rays, geometry: Geometry, *, cull: str | None = None, workers: int = -1, progress: bool = False
) -> Hits:
    """Tell where rays meet boxes, planes or triangles, pair by pair.

    The rays' shape is broadcast against ``(M,)``: row against row, one against many, or, with
    ``rays[..., None]``, every ray against every primitive. A question about many rays and many boxes
    is answered faster by `raybox.Scene`; this answers about pairs, in no memory but the answer's
    (16 bytes a pair).

    Parameters
    ----------
    rays : Rays
        Of any shape.
    geometry : Boxes, Planes or Mesh
        M rows of the same D as the rays.
    cull : None or "back"
        "back" (planes only) drops rays that meet a plane from behind or run along it: n . d >= 0.
    workers : int
        Threads; -1 for all cores. The answer does not depend on it.
    progress : bool
        Show a bar on stderr when it takes long.

    Returns
    -------
    Hits
        Of the broadcast shape; index is the row of the primitive met, -1 for a miss.

    Raises
    ------
    InvalidInput
        If shapes do not broadcast, D differs, or ``cull`` is unknown.

    Notes
    -----
    Slab method: Kay and Kajiya 1986; decided exactly, see `raybox.kernels.exact`. A ray that lies in
    a plane, or in a triangle's, has no single crossing and is a miss.

    Examples
    --------
    >>> import raybox as rb
    >>> rays = rb.Rays([[0, 0], [5, 0]], [1, 0])
    >>> hits = rb.intersect(rays, rb.Boxes([2, -1], [3, 1]))
    >>> hits.hit, hits.t
    (array([ True, False]), array([ 2., inf]))
    """
    _check(rays, geometry, cull)
    check_workers(workers)
    shape = _shape(rays, len(geometry))
    total = int(np.prod(shape))
    last = rays.shape[-1] if rays.shape else 1
    row = last if len(rays.shape) > 1 else 0
    source = Source(rays, geometry, max(shape[-1], 1), row, int(last > 1))
    index, t = np.full(total, -1, np.int64), np.full(total, np.inf)
    step = int(len(geometry) != 1)
    rows = geometry.rows()
    if isinstance(rows, PlaneRows):
        rows = rows._replace(cull_back=cull == "back")
    if few.serves(rows, total):
        _by_hand(source, rows, step, index, t)
    else:
        _by_kernel(source, rows, step, (index, t), workers=workers, progress=progress)
    return Hits(index.reshape(shape), t.reshape(shape), source)


def _check(rays: Any, geometry: Any, cull: Any) -> None:
    """Refuse what cannot be asked."""
    if not isinstance(rays, Rays):
        raise InvalidInput(
            f"rays must be raybox.Rays; got {type(rays).__name__}. Make some: Rays(origins, directions)."
        )
    if not isinstance(geometry, Geometry):
        raise InvalidInput(
            f"geometry must be Boxes, Planes or Mesh; got {type(geometry).__name__}. "
            "Make some: Boxes(lower, upper)."
        )
    if rays.ndim_space != geometry.ndim_space:
        raise InvalidInput(
            f"rays and geometry must have the same dimensions; got D = {rays.ndim_space} "
            f"and D = {geometry.ndim_space}. Add or drop a coordinate."
        )
    if cull not in (None, "back"):
        raise InvalidInput(f'cull must be None or "back"; got {cull!r}.')
    if cull and not isinstance(geometry, Planes):
        raise InvalidInput(f'cull="back" is for Planes; got {type(geometry).__name__}. Leave cull out.')


def _shape(rays: Rays, rows: int) -> tuple[int, ...]:
    """Return the shape of the answer."""
    try:
        return np.broadcast_shapes(rays.shape, (rows,))
    except ValueError as error:
        raise InvalidInput(
            f"rays of shape {rays.shape} do not broadcast against {rows} rows. "
            "Ask row by row with equal lengths, or all pairs with rays[..., None]."
        ) from error


def _by_hand(source: Source, rows: Any, step: int, index: Ints, t: Floats) -> None:
    """Do a handful of pairs in rational arithmetic."""
    rays = source.rays.rows()
    for k, ray in enumerate(source.ray_of(index.size)):
        i = (k % source.inner) * step
        met = few.meet(rows, few.ray_at(rays, ray), i)
        if met is not None:
            index[k], t[k] = i, met.crossing.t


def _by_kernel(source: Source, rows: Any, step: int, out: tuple[Ints, Floats], **how: Any) -> None:
    """Do many pairs in compiled loops."""
    from raybox.kernels import pairs

    pairing = pairs.Pairing(source.inner, source.row, source.column, step)
    rays = source.rays.rows()

    def work(begin: int, end: int) -> None:
        pairs.intersect_pairs(rays, rows, pairing, (begin, end), *out)

    run_chunks(work, len(out[0]), **how)
