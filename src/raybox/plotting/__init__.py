"""Plots with matplotlib: `plot` draws boxes and rays, `plot_slabs` why one ray hits or misses one box.

matplotlib comes with an extra, `pip install "raybox[plot]"`, and is imported when something is drawn.
"""

from raybox.plotting.scene_plot import plot
from raybox.plotting.slab_plot import plot_slabs

__all__ = ["plot", "plot_slabs"]
