"""Find the points of a city that are visible from a mast.

Lines of sight run from a mast to a grid of points at the height of a pedestrian's eyes; a building on the way
hides the point. Buildings are the boxes round them. --data takes a CityJSON file.
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap

import raybox as rb
from common import arguments, save
from raybox.io.formats import read


def measured(path: Path) -> rb.Boxes:
    """Return the boxes round buildings, relative to their lowest corner."""
    city = read(path, boxes=True)
    boxes = city.geometry[np.array(city.labels["type"]) == "Building"]
    start = boxes.bounds[0] * [1, 1, 0]
    return rb.Boxes(boxes.lower - start, boxes.upper - start)


def made() -> rb.Boxes:
    """Return houses of various heights along a grid of streets."""
    rng = np.random.default_rng(2)
    places = np.stack(np.meshgrid(np.arange(14), np.arange(9)), axis=-1).reshape(-1, 2) * [36.0, 34.0] + 20
    sizes = np.column_stack([rng.uniform(10, 28, (len(places), 2)), rng.gamma(4, 2.5, len(places))])
    return rb.Boxes.from_centers(np.column_stack([places, sizes[:, 2] / 2]), sizes)


options = arguments(__doc__, "a CityJSON file")
print("the buildings of a CityJSON file" if options.data else "a made city, for want of --data")
boxes = measured(options.data) if options.data else made()

# A mast in the middle, 25 m high, and points where no building stands.
(left, front, low), (right, back, _) = boxes.bounds
eye = np.array([(left + right) / 2, (front + back) / 2, low + 25])
x, y = np.meshgrid(np.arange(left, right, 1.5), np.arange(front, back, 1.5))
points = np.stack([x, y, np.full(x.shape, low + 1.7)], axis=-1)
plan = rb.Boxes(boxes.lower[:, :2], boxes.upper[:, :2])
built = plan.contains(points[..., :2]).any(axis=-1)
hidden = ~rb.Scene(boxes).visible(eye, points)
visible = 1.0 - hidden[~built].mean()
print(f"{(~built).sum():,} points outside of {len(boxes)} buildings: {visible:.1%} are visible")

figure, ax = plt.subplots(figsize=(7.0, 5.6), layout="constrained")
colours = ListedColormap(["#FFE8A3", "#5B7DB1", "#444444"])
picture = np.where(built, 2, hidden)
ax.imshow(picture, origin="lower", extent=(left, right, front, back), cmap=colours, vmin=0, vmax=2)
ax.plot(*eye[:2], "*", ms=14, color="#CC3311", mec="white", ls="", label="eye, 25 m up")
for colour, words in zip(colours.colors, ("visible", "hidden", "building"), strict=True):
    ax.plot([], [], "s", ms=9, color=colour, label=words)
ax.set(xlabel="x in m", ylabel="y in m", title=f"From one mast, {visible:.0%} of the open ground are visible")
figure.legend(loc="outside lower center", ncols=4, frameon=False)
save(figure, options.folder, "line_of_sight")
