"""Casts on a Dask cluster: ``cast(..., cluster=...)``; see `raybox.casting.dask`."""

from raybox.casting import cast

__all__ = ["cast"]
