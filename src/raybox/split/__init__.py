"""Scenes too large for one machine's memory: boxes in parts, of which few are open at a time.

===========  =====================================================================================
module       does
===========  =====================================================================================
``scene``    `SplitScene`: the questions
``dividing`` boxes to parts along a Hilbert curve, into files, a piece of them in memory at a time
``shelf``    parts opened when needed, and closed where memory is short
``routing``  which parts a ray has to see, nearest first, until what it met is nearer than the next
``merging``  contacts found in several parts, put into one exact order
===========  =====================================================================================
"""

from raybox.split.scene import SplitScene

__all__ = ["SplitScene"]
