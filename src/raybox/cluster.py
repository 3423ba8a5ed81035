"""Casts and queries on a Dask cluster; see `raybox.distributed.dask`."""

from raybox.distributed.dask import ask, cast

__all__ = ["ask", "cast"]
