"""Casts on a Dask cluster: ``cast(..., cluster=...)``; see `raybox.casting.cluster`."""

from raybox.casting import cast

__all__ = ["cast"]
