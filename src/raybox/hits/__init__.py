"""Results of queries: `Hits`, `AllHits` and `RayHits`, with ids and images."""

from raybox.hits.hits import AllHits, Hits, RayHits

__all__ = ["AllHits", "Hits", "RayHits"]
