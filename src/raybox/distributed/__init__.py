"""Scenes in parts on disk, and casts and queries on a Dask cluster."""
