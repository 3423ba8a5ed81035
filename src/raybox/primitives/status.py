"""The status of a ray and a primitive, and the indices that are no primitive."""

HIT, MISS, UNDECIDED = 1, 0, -1
MISS_INDEX = -1  # no primitive is hit, or none so far
UNDECIDED_INDEX = -2  # the exact fallback decides
UNKNOWN_ORDER = 2  # in place of -1, 0 or 1: float64 cannot tell
