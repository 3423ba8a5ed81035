"""Casts and queries on a Dask cluster; see `raybox.cast.dask`."""

from raybox.cast.dask import ask, cast

__all__ = ["ask", "cast"]
