"""Back-face culling: the sides from which surfaces are hit."""

from typing import Any, Literal

from raybox.errors import InvalidInput
from raybox.geometry.instances import InstanceRows

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
