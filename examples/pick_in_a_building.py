"""Pick boxes of a building by clicks into a picture of it.

A camera looks into the ground floor of a real building model that comes with raybox, 286 boxes. A pixel is
a ray, whose hits are the clicked box, its distance, and the boxes behind it.
"""

from importlib.resources import as_file, files

import matplotlib.pyplot as plt
import numpy as np

import raybox as rb
from common import arguments, save
from raybox.io.formats import read

CLICKS = [(214, 176), (158, 266), (124, 396)]  # row, column

options = arguments(__doc__)
with as_file(files("raybox") / "data" / "duplex_aabb.csv") as path:
    building = read(path)
boxes = building.geometry
kinds, names = np.array(building.labels["ifc_class"]), building.labels["name"]

# Leave out rooms, openings in walls, and everything above the ground floor.
air = np.isin(kinds, ["IfcSpace", "IfcOpeningElement"])
ground = (boxes.lower[:, 2] < 2.5) & (boxes.upper[:, 2] < 3.2) & ~air

scene = rb.Scene(boxes)
rays = rb.Rays.pinhole((15.8, -25.6, 17.8), (4.6, -9.9, -0.9), up=(0, 0, 1), fov=36, width=600, height=400)
hits = scene.nearest(rays, where=ground)

figure, ax = plt.subplots(figsize=(7.2, 4.8), layout="constrained")
ax.imshow(hits.image("index"))
ax.axis("off")
ax.set_title("A click is a ray: the first box hit, and the number of boxes behind")
lines = []
for number, (row, column) in enumerate(CLICKS, 1):
    ray, hit = rays[row, column], hits[row, column]
    if not hit:
        print(f"click at row {row}, column {column}, on nothing")
        continue
    behind = scene.count(ray, where=ground) - 1
    distance = np.linalg.norm(hit.points - ray.origins)
    name = names[hit.index].split(":")[0].removeprefix("M_")
    lines.append(f"{number}: {name}, {distance:.2f} m, {behind} behind")
    box = {"facecolor": "white", "edgecolor": "black", "boxstyle": "circle,pad=0.25"}
    ax.text(column, row, str(number), ha="center", va="center", weight="bold", bbox=box)
    print(f"click at row {row}, column {column}, on {kinds[hit.index]} {lines[-1]}")
ax.text(1, 0, "\n".join(lines), transform=ax.transAxes, ha="right", va="bottom", linespacing=1.5)
save(figure, options.folder, "pick_in_a_building")
