"""Results of queries: `Hits`, `AllHits`, `RayHits` and `ObjectHits`, with ids, labels and images."""

from raybox.hits.all_hits import AllHits
from raybox.hits.hits import Hits
from raybox.hits.object_hits import ObjectHits
from raybox.hits.ray_hits import RayHits

__all__ = ["AllHits", "Hits", "ObjectHits", "RayHits"]
