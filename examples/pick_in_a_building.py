"""Pick objects of a building by clicks into a picture of it.

A camera looks into the ground floor of a real building model. A pixel is a ray, whose hits are the clicked
object, its distance, and the objects behind it. --data takes an IFC file; boxes of its objects
come with raybox.
"""

from importlib.resources import as_file, files

import matplotlib.pyplot as plt
import numpy as np

import raybox as rb
from common import arguments, save

CLICKS = [(237, 186), (150, 262), (124, 396)]  # row, column
LIGHT = np.array([0.5, -0.4, 0.77])

options = arguments(__doc__, "an IFC file")
print("surfaces of an IFC file" if options.data else "boxes of its objects, for want of --data")
if options.data:
    building = rb.load(options.data, kind="scene")
else:
    with as_file(files("raybox") / "data" / "duplex_aabb.csv") as path:
        building = rb.load(path, kind="scene")

# Leave out rooms, openings in walls, and everything above the ground floor.
is_mesh = isinstance(building, rb.Mesh)
bounds = rb.Boxes.of_triangles(building.vertices, building.faces) if is_mesh else building
objects = building.objects if is_mesh else np.arange(len(building))
solid = ~np.isin(building.labels["ifc_class"], ["IfcSpace", "IfcOpeningElement", "IfcCovering"])
ground = (bounds.lower[:, 2] < 2.5) & (bounds.upper[:, 2] < 3.2) & solid[objects]

scene = rb.Scene(building)
rays = rb.Rays.pinhole((15.8, -25.6, 17.8), (4.6, -9.9, -0.9), up=(0, 0, 1), fov=36, width=600, height=400)
hits = scene.nearest(rays, where=ground)

figure, ax = plt.subplots(figsize=(7.2, 4.8), layout="constrained")
shade = np.where(hits.hit, 0.55 + 0.45 * np.abs(hits.normals @ LIGHT), 1.0)
ax.imshow(np.asarray(hits.image("object")) / 255 * shade[..., None])
ax.axis("off")
ax.set_title("A click is a ray: the first object hit, and the number of objects behind")
lines = []
for number, (row, column) in enumerate(CLICKS, 1):
    ray, hit = rays[row, column], hits[row, column]
    if not hit:
        print(f"click at row {row}, column {column}, on nothing")
        continue
    behind = len(scene.all(ray, where=ground).by_object()) - 1
    name = hit.labels("name").item().split(":")[0].removeprefix("M_")
    lines.append(f"{number}: {name}, {hit.distances:.2f} m, {behind} behind")
    box = {"facecolor": "white", "edgecolor": "black", "boxstyle": "circle,pad=0.25"}
    ax.text(column, row, str(number), ha="center", va="center", weight="bold", bbox=box)
    print(f"click at row {row}, column {column}, on {hit.labels('ifc_class')} {lines[-1]}")
ax.text(1, 0, "\n".join(lines), transform=ax.transAxes, ha="right", va="bottom", linespacing=1.5)
save(figure, options.folder, "pick_in_a_building")
