"""Draw the five rays of a tutorial on ray casting by clipping: red if they hit the box, blue if not.

Two hit it: one from outside, one that starts inside. Three miss it. `raybox.textbook.cyrus_beck` is the
tutorial's own algorithm.
"""

import raybox as rb
from common import arguments, save

options = arguments(__doc__)
box = rb.Boxes([0.5, 0.5, 0.5], [2, 2, 2])
rays = rb.Rays(
    origins=[[-2, -2, -2], [0, 0, 0], [0, 0, 0], [1, 1, 1], [0.4, 1, 1]],
    directions=[[2, 2, 2], [0, 1, 0], [-1, 0, 0], [1, 1, 0], [-1, 0, 0]],
)
hits = rb.Scene(box).nearest(rays)
print("hit:", hits.hit.tolist())
for ray, hit in zip(rays, hits.hit, strict=True):
    own = rb.textbook.cyrus_beck(ray.origins, ray.directions, box.lower[0], box.upper[0])
    assert own.hit == hit

ax = rb.plot(box, rays, hits)
ax.view_init(elev=18, azim=-52)
ax.figure.set_size_inches(5.4, 4.8)
save(ax.figure, options.folder, "five_rays")
