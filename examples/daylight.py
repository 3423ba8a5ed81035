"""Hours of direct sun in the air around a shop of voxels, and on its surfaces, on 21 June.

Every quarter of an hour, parallel rays come from the sun. They end where they first hit the shop or the
street. Each ray stands for an area of the sunbeam and a quarter of an hour. `deposit` adds weight x length to
each cell that a ray crosses. With area x time as the weight, the sum is the volume of the cell, here 1, times
the hours in which the sun shines there. Only direct sun counts. --data takes a MagicaVoxel file; +x is south.
"""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from numpy.typing import NDArray

import raybox as rb
from common import arguments, save

LATITUDE, DECLINATION = np.radians([52.0, 23.44])  # of the shop; of the sun on 21 June
STEP, SPACING = 0.25, 0.5  # hours between two positions of the sun; cells between two rays
MARGIN = 24  # cells of street on all sides

Floats = NDArray[np.float64]


def made() -> rb.Grid:
    """Return a house with windows and a balcony, and a tree in front of it."""
    x, y, z = np.indices((56, 40, 34)) + 0.5
    window = (x > 20) & (abs(y % 10 - 5) < 2.5) & (abs(z % 10 - 6) < 2.5)
    house = (x < 24) & (z < 30) & ~window
    balcony = (x < 30) & (abs(y - 20) < 12) & (abs(z - 12) < 0.6)
    tree = (x - 44) ** 2 + (y - 12) ** 2 + (z - 12) ** 2 < 36
    trunk = (np.hypot(x - 44, y - 12) < 1) & (z < 12)
    return rb.Grid.uniform([0, 0, 0], 1, x.shape, house | balcony | tree | trunk)


def towards_sun(hour: float) -> Floats:
    """Return the unit vector to the sun: x is south, y is east, z is up; the sun is highest at 12."""
    angle = np.radians(15 * (hour - 12))
    at_noon, along_axis = np.cos(DECLINATION) * np.cos(angle), np.sin(DECLINATION)
    south = np.sin(LATITUDE) * at_noon - np.cos(LATITUDE) * along_axis
    up = np.cos(LATITUDE) * at_noon + np.sin(LATITUDE) * along_axis
    return np.array([south, -np.cos(DECLINATION) * np.sin(angle), up])


def sunbeam(sun: Floats, bounds: Floats, shift: Floats) -> rb.Rays:
    """Return parallel rays, SPACING apart, which cover all that is within the bounds."""
    across = np.cross([0, 0, 1], sun) / np.hypot(*sun[:2])
    axes = np.stack([across, np.cross(sun, across), sun])
    corners = np.stack(np.meshgrid(*bounds.T), axis=-1).reshape(-1, 3) @ axes.T
    (*low, _), (*high, far) = corners.min(axis=0), corners.max(axis=0)
    u, v = (np.arange(b, e, SPACING) + SPACING * s for b, e, s in zip(low, high, shift, strict=True))
    origins = np.stack([*np.meshgrid(u, v), np.full((len(v), len(u)), far + 1)], axis=-1)
    return rb.Rays(origins @ axes, -sun)


options = arguments(__doc__, "a .vox file")
print("the voxels of a file" if options.data else "a made house, for want of --data")
shop = rb.load_grid(options.data) if options.data else made()
low, high = shop.bounds
street = rb.Boxes(low - [MARGIN, MARGIN, 0], np.append(high[:2] + MARGIN, low[2]))
scene = rb.Scene([shop, street])

# The air: all cells of a larger grid. Rays end before they enter the occupied cells of the shop.
air = rb.Grid.uniform(street.lower[0], 1, (*shop.shape[:2] + np.array(2 * MARGIN), shop.shape[2]))
air_scene, rng = rb.Scene(air), np.random.default_rng(1)
hours, day, number = np.zeros(air.shape), 0.0, 0
for hour in np.arange(STEP / 2, 24, STEP):
    if (sun := towards_sun(hour))[2] > 0:
        beam = sunbeam(sun, air.bounds, rng.random(2))
        lit = rb.Rays(beam.origins, beam.directions, t_max=scene.nearest(beam).t)
        hours += air_scene.deposit(lit, SPACING**2 * STEP).reshape(air.shape)
        day, number = day + STEP, number + beam.directions.size // 3

solid = np.pad(shop.occupied, ((MARGIN, MARGIN), (MARGIN, MARGIN), (0, 0)))
print(f"{number:,} rays; the sun is up for {day} hours, and open air is lit for {hours[~solid].mean():.1f}")
colours, scale = plt.get_cmap("magma"), Normalize(0, 16.5)


def view() -> Floats:
    """Return a picture of the shop: a pixel has the colour of the air in front of the face that it shows."""
    middle = (low + high) * [0.56, 0.5, 0.36]
    away = np.array([3.9, 2.1, 2.5]) * (high - low)[:2].max()
    camera = rb.Rays.pinhole(middle + away, middle, up=[0, 0, 1], fov=19, width=1500, height=1200)
    hits = scene.nearest(camera)
    hit = hits.hit[..., None]
    cells = air.index_of(np.where(hit, hits.points + 0.5 * hits.normals, low))
    shade = abs(hits.normals) @ [0.9, 0.84, 1.0]  # a little darker across x and y: shows the edges
    pixels = np.where(hit, colours(scale(hours.ravel()[cells]))[..., :3] * shade[..., None], 1)
    rows, columns = (hits.hit.any(axis=k).nonzero()[0] for k in (1, 0))
    return pixels[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]


def section(ax: Axes, cells: Any, extent: tuple[float, ...], title: str) -> None:
    """Draw the hours in a layer of cells, and what is solid in dark grey."""
    picture = colours(scale(hours[cells]))
    picture[solid[cells]] = (0.27, 0.27, 0.27, 1)
    ax.imshow(picture.transpose(1, 0, 2), origin="lower", extent=extent)
    ax.set_title(title)


figure = plt.figure(figsize=(8.0, 3.9), layout="constrained")
mosaic = [["view", "plan"], ["view", "side"]]
axes = figure.subplot_mosaic(mosaic, width_ratios=[2, 1], height_ratios=[2, 1])
axes["view"].imshow(view())
axes["view"].axis("off")
axes["view"].set_title("On surfaces")
level, row = 5, MARGIN + int(0.87 * shop.shape[1])
(left, front, bottom), (right, back, top) = air.bounds
section(axes["plan"], np.s_[:, :, level], (left, right, front, back), "Air, 5 cells above the street")
section(axes["side"], np.s_[:, row], (left, right, bottom, top), "Air, along the dashed line")
axes["plan"].axhline(front + row + 0.5, color="white", lw=0.8, ls="--")
axes["plan"].set_ylabel("east")
axes["side"].set(xlabel="south, in cells", ylabel="up")
bar = {"label": "hours of direct sun", "shrink": 0.9, "pad": 0.02}
figure.colorbar(ScalarMappable(scale, colours), ax=list(axes.values()), **bar)
save(figure, options.folder, "daylight")
