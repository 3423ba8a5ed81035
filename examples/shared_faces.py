"""Rays that run exactly through the faces, edges and corners that voxels share.

A camera without perspective looks along the diagonal of the cells, from grid points: all numbers are exact in
float64, so rays cross edges and corners, not points beside them. Of voxels first hit at the same t, the one
with the lowest index is returned. --data takes a MagicaVoxel file.
"""

import matplotlib.pyplot as plt
import numpy as np

import raybox as rb
from common import arguments, save


def made() -> rb.Boxes:
    """Return a tower with a round wall and a dome."""
    x, y, z = np.indices((48, 48, 60)) + 0.5
    wall = (abs(np.hypot(x - 24, y - 24) - 18) < 2) & (z < 36) & ~((abs(x - 24) < 4) & (z < 14))
    dome = abs(np.sqrt((x - 24) ** 2 + (y - 24) ** 2 + (z - 36) ** 2) - 20) < 1.5
    return rb.Boxes.of_voxels(wall | (dome & (z > 36)) | (z < 1), origin=[0, 0, 0], pitch=1)


options = arguments(__doc__, "a .vox file")
print("the voxels of a file" if options.data else "a made tower, for want of --data")
boxes = rb.load(options.data) if options.data else made()
scene = rb.Scene(boxes)


def diagonal(finer: int) -> rb.Rays:
    """Return rays along (-1, -1, -1) from grid points, `finer` to a cell; row 0 is at the top."""
    (left, front, low), (right, back, high) = boxes.bounds
    across, up = np.array([-1, 1, 0]) / (2 * finer), np.array([-1, -1, 2]) / (4 * finer)
    middle = np.floor([(left + right) / 2, (front + back) / 2, (low + high) / 2])
    wide = int(finer * (right - left + back - front) / 2)
    tall = int(finer * (right - left + back - front + 2 * (high - low)) / 3)
    i, j = np.meshgrid(np.arange(-wide, wide), np.arange(tall, -tall, -1))
    far = 2.0 * np.ceil(max(boxes.bounds[1] - boxes.bounds[0]))
    return rb.Rays(middle + far + i[..., None] * across + j[..., None] * up, [-1, -1, -1])


hits = scene.first(rays := diagonal(1), 4)
first = scene.nearest(rays)
same = hits.hit & (hits.t == hits.t[..., :1])
ties = same.sum(axis=-1)
lowest = np.where(same, hits.index, len(boxes)).min(axis=-1)
print(f"{len(boxes):,} voxels; {first.hit.sum():,} of {first.hit.size:,} rays hit")
print(f"{(ties > 1).sum():,} hit several voxels first, at the same t")
print("each of them returns the lowest index:", bool((first.index == lowest)[ties > 1].all()))

figure, axes = plt.subplots(1, 2, figsize=(8.0, 4.0), layout="constrained")
axes[0].imshow(first.image("depth"))
axes[0].set_title("Rays along (-1, -1, -1)")
rows, columns = ties.shape
part = ties[rows // 8 : rows // 2, columns // 3 : 2 * columns // 3]
drawn = axes[1].imshow(np.where(part > 0, part, np.nan), cmap=plt.get_cmap("cividis", 4), vmin=0.5, vmax=4.5)
axes[1].set_title("A detail: voxels first hit at the same t")
bar = figure.colorbar(drawn, ax=axes[1], ticks=[1, 2, 3, 4], shrink=0.7)
bar.ax.set_yticklabels(["1", "2", "3", "4 or more"])
for ax in axes:
    ax.axis("off")
save(figure, options.folder, "shared_faces")
