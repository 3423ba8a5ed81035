"""Find the beams of a lidar that hit a labelled car, or another labelled object.

Cuboids are turned about z: instances of a cube, moved and turned. --data takes a folder with frame.npz,
cuboids.csv and meta.json of a PandaSet frame.
"""

import csv
import json
from pathlib import Path
from typing import NamedTuple

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import PolyCollection

import raybox as rb
from common import arguments, save

# The sensor's position in the frame of meta.json's pose: fitted to the returns, which from there lie on cones
# from -25 to 16 degrees, as a spinning sensor's do. From the pose itself they lie on no cones.
SENSOR = np.array([0.04, 0.98, 1.78])


class Cuboids(NamedTuple):
    """Centres and full sizes (M, 3), and angles about z in radians."""

    centres: np.ndarray
    sizes: np.ndarray
    yaw: np.ndarray

    def scene(self) -> rb.Scene:
        """Return them as a scene of turned boxes."""
        return rb.Scene(rb.Instances.oriented_boxes(self.centres, self.sizes, yaw=self.yaw))

    def corners(self) -> np.ndarray:
        """Return the corners of their floors, (M, 4, 2)."""
        square = np.array([[-0.5, -0.5], [0.5, -0.5], [0.5, 0.5], [-0.5, 0.5]])
        return turned(square * self.sizes[:, None, :2], self.yaw[:, None]) + self.centres[:, None, :2]


def turned(vectors: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """Return vectors turned about z, counterclockwise."""
    cos, sin, (x, y) = np.cos(angle), np.sin(angle), np.moveaxis(vectors[..., :2], -1, 0)
    return np.concatenate(
        [np.stack([x * cos - y * sin, x * sin + y * cos], axis=-1), vectors[..., 2:]], axis=-1
    )


def measured(folder: Path) -> tuple[Cuboids, np.ndarray, np.ndarray]:
    """Return the cuboids, the returns of the spinning sensor, and its position."""
    with (folder / "cuboids.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    position, sizes = (
        np.array([[float(row[f"{what}.{axis}"]) for axis in "xyz"] for row in rows])
        for what in ("position", "dimensions")
    )
    frame = np.load(folder / "frame.npz")
    yaw = np.array([float(row["yaw"]) for row in rows])
    heading = json.loads((folder / "meta.json").read_text())["lidar_pose"]["heading"]
    w, q = heading["w"], np.array([heading[axis] for axis in "xyz"])
    twice = 2 * np.cross(q, SENSOR)
    eye = SENSOR + w * twice + np.cross(q, twice)
    return Cuboids(position, sizes, yaw), frame["xyz"][frame["sensor"] == 0].astype(float), eye


def made() -> tuple[Cuboids, np.ndarray, np.ndarray]:
    """Return a street of parked cars between two houses, swept with 32 beams."""
    rng = np.random.default_rng(4)
    cars = np.stack([np.arange(-42, 43, 7.0), np.resize([-5.5, 5.5], 13), np.full(13, -1.1)], axis=1)
    cars[:, :2] += rng.uniform(-0.6, 0.6, (13, 2))
    cuboids = Cuboids(cars, np.tile([4.5, 1.9, 1.6], (13, 1)), rng.normal(0.0, 0.4, 13))
    walls = rb.Boxes(
        [[-60, -12, -2], [-60, 11, -2], [-60, -12, -2.1]], [[60, -11, 9], [60, 12, 9], [60, 12, -2]]
    )
    azimuth, elevation = np.meshgrid(np.linspace(0, 2 * np.pi, 900), np.radians(np.linspace(-24, 2, 32)))
    level = np.cos(elevation)
    beams = np.stack([level * np.cos(azimuth), level * np.sin(azimuth), np.sin(elevation)], axis=-1)
    rays = rb.Rays(np.zeros(3), beams.reshape(-1, 3), t_max=55)
    t = np.minimum(rb.Scene(walls).nearest(rays).t, cuboids.scene().nearest(rays).t)
    return cuboids, rays[np.isfinite(t)].at(t[np.isfinite(t)]), np.zeros(3)


options = arguments(__doc__, "folder of a PandaSet frame")
print("a PandaSet frame" if options.data else "a made street, for want of --data")
cuboids, returns, eye = measured(options.data) if options.data else made()

beams = rb.Rays.segments(eye, returns)  # t from 0 at the sensor to 1 at the return
hits = cuboids.scene().all(beams)
hit = np.diff(hits.offsets) > 0
print(f"{len(returns):,} beams, {len(cuboids.yaw)} cuboids: {len(hits.index):,} hits")
print(f"{hit.sum():,} beams hit one of {len(np.unique(hits.index))} cuboids")

figure, ax = plt.subplots(figsize=(6.6, 5.6), layout="constrained")
for chosen, colour, words in ((~hit, "#0077BB", "hits no cuboid"), (hit, "#CC3311", "hits one")):
    ax.plot(*returns[chosen, :2].T, "o", ms=0.8, mew=0, color=colour)
    ax.plot([], [], "o", ms=4, color=colour, label=f"beam {words} ({chosen.sum():,})")
ax.add_collection(PolyCollection(cuboids.corners(), facecolor="none", edgecolor="#333333", lw=0.8))
ax.plot(*eye[:2], "*", ms=11, color="black", ls="", label="lidar")
ax.set(xlim=(-60, 60), ylim=(-50, 50), xlabel="x in m", ylabel="y in m", aspect="equal")
ax.set_title(f"{len(returns):,} beams of a lidar, from above")
figure.legend(loc="outside lower center", ncols=3, frameon=False)
save(figure, options.folder, "lidar_sweep")
