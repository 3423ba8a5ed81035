"""Scenes larger than memory: boxes in parts on disk, of which a limited number is open at a time.

================  ====================================================================================
module            does
================  ====================================================================================
``split_scene``   `SplitScene`: the queries
``partition``     boxes to parts along a Hilbert curve, into files, a block of them in memory at a time
``open_parts``    parts opened when needed, closed where memory is short; which of them a ray visits
================  ====================================================================================
"""

from raybox.distributed.split.split_scene import SplitScene

__all__ = ["SplitScene"]
