"""Casts and queries on a Dask cluster; see `raybox.casting.dask`."""

from raybox.casting.dask import ask, cast

__all__ = ["ask", "cast"]
