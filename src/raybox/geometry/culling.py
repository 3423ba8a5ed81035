"""From which side surfaces are met."""

from typing import Any, Literal

from raybox.errors import InvalidInput
from raybox.geometry.instances import CopyRows

Cull = Literal["back"] | None
"""Which side of a surface is not there: none, or that which its normal points away from."""


def facing(geometry: Any, rows: Any, cull: Cull) -> Any:
    """Return a geometry's rows as they are met with this `cull`, or raise `InvalidInput`."""
    if cull is None:
        return rows
    if cull != "back":
        raise InvalidInput(f'cull must be None or "back"; got {cull!r}.')
    if isinstance(rows, CopyRows):
        return rows._replace(rows=facing(geometry.geometry, rows.rows, cull))
    if not hasattr(rows, "cull_back"):
        raise InvalidInput(
            f'cull="back" is for Planes and Mesh; got {type(geometry).__name__}. Leave cull out.'
        )
    return rows._replace(cull_back=True)
