"""Cull triangles by their boxes before testing them: the classic use of a ray-box test.

A camera looks at a mesh. Each ray tests only the triangles whose boxes it hits, and finds the same hits as
the scene of triangles itself. --data takes a mesh file.
"""

import matplotlib.pyplot as plt
import numpy as np

import raybox as rb
from common import arguments, save


def made() -> rb.Mesh:
    """Return a knotted tube of 12,000 triangles."""
    around, along = 30, 200
    u, v = np.meshgrid(np.arange(around), np.arange(along))
    s, w = v * 2 * np.pi / along, u * 2 * np.pi / around
    ring = 3.0 + np.cos(3 * s) + 0.6 * np.cos(w)
    vertices = np.stack(
        [ring * np.cos(2 * s), ring * np.sin(2 * s), np.sin(3 * s) + 0.6 * np.sin(w)], axis=-1
    )
    a, b = v * around + u, v * around + (u + 1) % around
    c, d = (a + around) % (around * along), (b + around) % (around * along)
    faces = np.stack([np.stack([a, b, c], axis=-1), np.stack([b, d, c], axis=-1)])
    return rb.Mesh(vertices.reshape(-1, 3), faces.reshape(-1, 3))


options = arguments(__doc__, "a mesh file")
print("the mesh of a file" if options.data else "a made knot, for want of --data")
mesh = rb.load(options.data) if options.data else made()
boxes = rb.Boxes.of_triangles(mesh.vertices, mesh.faces)

low, high = boxes.bounds
middle, size = (low + high) / 2, np.linalg.norm(high - low)
up, aside = ((0, 1, 0), (0.45, 0.15, 1.0)) if options.data else ((0, 0, 1), (0.5, -0.7, 0.9))
middle[1] -= 0.04 * size * bool(options.data)
eye = middle + 1.7 * size * np.array(aside) / np.linalg.norm(aside)
rays = rb.Rays.pinhole(eye, middle, up=up, fov=28, width=240, height=240)

# Broad phase: every box that a ray hits. Narrow phase: the triangles in them, row against row.
found = rb.Scene(boxes).all(rays)
candidates = rb.Mesh(mesh.vertices, mesh.faces[found.index])
tested = rb.intersect(rays.reshape(-1)[found.ray], candidates)
t = np.full(rays.shape, np.inf).reshape(-1)
np.minimum.at(t, found.ray, tested.t)

hits = rb.Scene(mesh).nearest(rays)
counts = np.diff(found.offsets).reshape(rays.shape)
print(f"{len(mesh):,} triangles; {counts.mean():.1f} tested for each ray, at most {counts.max()}")
print("same distances as the scene of triangles:", bool((t.reshape(rays.shape) == hits.t).all()))

figure, axes = plt.subplots(1, 2, figsize=(7.4, 3.5), layout="constrained")
axes[0].imshow(hits.image("normal"))
axes[0].set_title("Normals of the triangles hit")
drawn = axes[1].imshow(
    np.where(counts > 0, counts, np.nan), cmap="cividis", vmin=0, vmax=np.quantile(counts, 0.995)
)
axes[1].set_title(f"Triangles left to test, of {len(mesh):,}")
figure.colorbar(drawn, ax=axes[1], shrink=0.8)
for ax in axes:
    ax.axis("off")
save(figure, options.folder, "culling")
