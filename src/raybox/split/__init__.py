"""Scenes larger than memory: parts on disk, of which a limited number is open at a time.

================  ====================================================================================
module            does
================  ====================================================================================
``split_scene``   `SplitScene`: the queries
``partition``     boxes to parts along a Hilbert curve, into files, a block of them in memory at a time
``grid_blocks``   a grid to blocks of cells, and back into the numbers of the whole grid
``open_parts``    parts opened when needed, closed where memory is short; which of them a ray visits
================  ====================================================================================
"""

from raybox.split.split_scene import SplitScene

__all__ = ["SplitScene"]
