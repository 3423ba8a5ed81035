"""What queries return: `Hits`, `AllHits` and `RayHits`, with ids and images of them."""

from raybox.hits.hits import AllHits, Hits, RayHits

__all__ = ["AllHits", "Hits", "RayHits"]
