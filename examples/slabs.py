"""Draw why rays hit or miss a box: slabs, candidate faces, and t.

The line is inside the box while it is inside all slabs. One ray starts inside; one misses by less than
float64 can represent. `raybox.explain` prints the same.
"""

import raybox as rb
from common import arguments, save

options = arguments(__doc__)
pairs = {
    "slabs_hit": (rb.Rays([0, 0], [2, 1.2]), rb.Boxes([1, 1], [4, 3])),
    "slabs_miss": (rb.Rays([0, 2.2], [1, 1.1]), rb.Boxes([1, 1], [4, 3])),
    "slabs_3d": (rb.Rays([0, 0, 0.5], [2, 1.5, 1]), rb.Boxes([1, 1, 0], [3, 3, 2])),
    "slabs_inside": (rb.Rays([1, 1, 1], [1, 1, 0]), rb.Boxes([0.5, 0.5, 0.5], [2, 2, 2])),
    "slabs_corner": (rb.Rays([0, 0], [0.3, 0.1]), rb.Boxes([3, -9], [9, 1])),
}
for name, (ray, box) in pairs.items():
    axes = rb.plot_slabs(ray, box)
    print(f"{name}: {axes[-1].get_title()}")
    if len(axes) == 2:
        axes[0].figure.set_size_inches(5.0, 5.4)
    save(axes[0].figure, options.folder, name)
