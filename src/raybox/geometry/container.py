"""What scenes need of a geometry, and the sides from which its surfaces are hit (back-face culling)."""

from typing import Any, Literal, Protocol, runtime_checkable

from raybox.errors import InvalidInput
from raybox.geometry.instances import InstanceRows


@runtime_checkable
class Geometry(Protocol):
    """A frozen container of primitives: boxes, a mesh, planes, instances, or one that a user registered."""

    @property
    def ndim_space(self) -> int:
        """D, the dimensions of space: 2 or 3."""
        ...

    def _rows(self) -> Any:
        """Return the primitives as the kernels read them: a NamedTuple of arrays."""
        ...

    def __len__(self) -> int: ...


Cull = Literal["back"] | None
"""The side from which rays miss: none, or that behind the normal."""


def facing(geometry: Any, rows: Any, cull: Cull) -> Any:
    """Return a geometry's rows with this `cull`, or raise `InvalidInput`."""
    if cull is None:
        return rows
    if cull != "back":
        raise InvalidInput(f'cull must be None or "back"; got {cull!r}.')
    if isinstance(rows, InstanceRows):
        return rows._replace(rows=facing(geometry.geometry, rows.rows, cull))
    if not hasattr(rows, "cull_back"):
        raise InvalidInput(
            f'cull="back" is for Planes and Mesh; got {type(geometry).__name__}. Leave cull out.'
        )
    return rows._replace(cull_back=True)
