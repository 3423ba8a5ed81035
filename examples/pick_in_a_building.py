"""Pick objects of a building by clicks into a picture of it.

A camera looks into the ground floor of a real building model, which comes with raybox. A pixel is a ray,
whose hits are the clicked object, its distance, and the objects behind it.
"""

from importlib.resources import files

import matplotlib.pyplot as plt
import numpy as np

import raybox as rb
from common import arguments, save

CLICKS = [(206, 225), (150, 262), (124, 396)]  # row, column
GROUND = "storey == 'Level 1' and ifc_class not in ('IfcCovering', 'IfcBeam')"  # the ceiling is lifted off
LIGHT = np.array([0.5, -0.4, 0.77])

options = arguments(__doc__)
scene = rb.Scene(rb.load(files("raybox") / "data" / "duplex.npz"))
rays = rb.Rays.pinhole((15.8, -25.6, 17.8), (4.2, -10.6, -0.9), up=(0, 0, 1), fov=40, width=600, height=400)
hits = scene.nearest(rays, where=GROUND)

figure, ax = plt.subplots(figsize=(7.2, 4.8), layout="constrained")
shade = np.where(hits.hit, 0.55 + 0.45 * np.abs(hits.normals @ LIGHT), 1.0)
ax.imshow(np.asarray(hits.image("object")) / 255 * shade[..., None])
ax.axis("off")
ax.set_title("A click is a ray: the first object hit, and the number of objects behind")
lines = []
for number, (row, column) in enumerate(CLICKS, 1):
    ray, hit = rays[row, column], hits[row, column]
    behind = len(scene.all(ray, where=GROUND).by_object()) - 1
    name = hit.labels("name").item().split(":")[0].removeprefix("M_")
    lines.append(f"{number}: {name}, {hit.distances:.2f} m, {behind} behind")
    box = {"facecolor": "white", "edgecolor": "black", "boxstyle": "circle,pad=0.25"}
    ax.text(column, row, str(number), ha="center", va="center", weight="bold", bbox=box)
    print(f"click at row {row}, column {column}, on {hit.labels('ifc_class')} {lines[-1]}")
ax.text(1, 0, "\n".join(lines), transform=ax.transAxes, ha="right", va="bottom", linespacing=1.5)
save(figure, options.folder, "pick_in_a_building")
