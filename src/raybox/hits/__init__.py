"""Results of queries: `Hits`, `AllHits` and `RayHits`, with ids and images."""

from raybox.hits.all_hits import AllHits, RayHits
from raybox.hits.hits import Hits

__all__ = ["AllHits", "Hits", "RayHits"]
