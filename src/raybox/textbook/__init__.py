"""The algorithms of the source texts, each with its own name and convention.

Pure Python on one ray and one box (or plane, or triangle), in plain float64 as the sources compute: to read,
to compare and to learn from. `raybox.explain` compares them with the exact result.
"""

from raybox.textbook.bounded_plane import bounded_plane
from raybox.textbook.candidate_planes import candidate_planes
from raybox.textbook.cyrus_beck import cyrus_beck
from raybox.textbook.moller_trumbore import moller_trumbore
from raybox.textbook.near_far import near_far
from raybox.textbook.slab import slab

__all__ = ["bounded_plane", "candidate_planes", "cyrus_beck", "moller_trumbore", "near_far", "slab"]
