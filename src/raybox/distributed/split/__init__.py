"""Scenes too large for one machine's memory: boxes in parts, of which few are open at a time.

================  ====================================================================================
module            does
================  ====================================================================================
``scene``         `SplitScene`: the queries
``dividing``      boxes to parts along a Hilbert curve, into files, a piece of them in memory at a time
``open_parts``    parts opened when needed, closed where memory is short; which of them a ray visits
``part_results``  results of each query, joined from part to part in one exact order
================  ====================================================================================
"""

from raybox.distributed.split.split_scene import SplitScene

__all__ = ["SplitScene"]
