"""Results of queries: `Hits`, `AllHits` and `RayHits`, with ids and images."""

from raybox.hits.all_hits import AllHits
from raybox.hits.hits import Hits
from raybox.hits.ray_hits import RayHits

__all__ = ["AllHits", "Hits", "RayHits"]
