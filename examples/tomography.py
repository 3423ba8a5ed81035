"""Reconstruct a slice of a head from parallel X-rays, by the iterative method SIRT.

`integrate` is the forward projection: for each ray, the sum of value x length over the cells that it crosses.
`deposit` is the back projection, its transpose. No system matrix is stored. The slice is the phantom of Shepp
and Logan, with the contrasts of Toft. It is measured on a grid four times as fine as that of the
reconstruction, and noise is added.
"""

import matplotlib.pyplot as plt
import numpy as np
from numpy.typing import NDArray

import raybox as rb
from common import arguments, save

# Ellipses: added value, half axes, centre, angle in degrees; in the square from -1 to 1.
PHANTOM = [
    (1.0, 0.69, 0.92, 0.0, 0.0, 0.0),
    (-0.8, 0.6624, 0.874, 0.0, -0.0184, 0.0),
    (-0.2, 0.11, 0.31, 0.22, 0.0, -18.0),
    (-0.2, 0.16, 0.41, -0.22, 0.0, 18.0),
    (0.1, 0.21, 0.25, 0.0, 0.35, 0.0),
    (0.1, 0.046, 0.046, 0.0, 0.1, 0.0),
    (0.1, 0.046, 0.046, 0.0, -0.1, 0.0),
    (0.1, 0.046, 0.023, -0.08, -0.605, 0.0),
    (0.1, 0.023, 0.023, 0.0, -0.606, 0.0),
    (0.1, 0.023, 0.046, 0.06, -0.605, 0.0),
]
CELLS, FINER, ANGLES, DETECTORS, STEPS = 128, 4, 90, 182, 100

Floats = NDArray[np.float64]


def slice_of_head(cells: int) -> Floats:
    """Return the phantom's values, shape (cells, cells): axis 0 is x, axis 1 is y."""
    x, y = np.meshgrid(*2 * [(np.arange(cells) + 0.5) * 2 / cells - 1], indexing="ij")
    values = np.zeros((cells, cells))
    for value, a, b, cx, cy, degrees in PHANTOM:
        c, s = np.cos(np.radians(degrees)), np.sin(np.radians(degrees))
        u, v = (x - cx) * c + (y - cy) * s, (y - cy) * c - (x - cx) * s
        values += value * ((u / a) ** 2 + (v / b) ** 2 <= 1)
    return values


def scan() -> rb.Rays:
    """Return the rays of the scanner, shape (ANGLES, DETECTORS): parallel at each angle."""
    angle = np.arange(ANGLES)[:, None] * np.pi / ANGLES
    offset = (np.arange(DETECTORS) + 0.5) * 2 * np.sqrt(2) / DETECTORS - np.sqrt(2)
    across, along = (
        np.stack([np.cos(angle + quarter), np.sin(angle + quarter)], axis=-1) for quarter in (0, np.pi / 2)
    )
    return rb.Rays.lines(offset[..., None] * across, along)


def scene_of(cells: int) -> rb.Scene:
    """Return a scene of a grid of cells x cells in the square from -1 to 1."""
    return rb.Scene(rb.Grid.uniform([-1, -1], 2 / cells, (cells, cells)))


def sirt(scene: rb.Scene, rays: rb.Rays, sinogram: Floats) -> Floats:
    """Return the values of the cells, shape (M,), with integrals close to the sinogram."""
    length_of_ray = np.maximum(scene.integrate(rays), 1e-9)  # in the grid; a ray beside it has 0
    length_in_cell = scene.deposit(rays)  # of all rays
    values = np.zeros(len(length_in_cell))
    for _ in range(STEPS):
        residual = sinogram - scene.integrate(rays, values)
        values += scene.deposit(rays, residual / length_of_ray) / length_in_cell
        values = np.maximum(values, 0)
    return values


options = arguments(__doc__)
fine, rays = slice_of_head(FINER * CELLS), scan()
sinogram = scene_of(FINER * CELLS).integrate(rays, fine)
sinogram += np.random.default_rng(1).normal(0, 0.003 * sinogram.max(), sinogram.shape)

truth = fine.reshape(CELLS, FINER, CELLS, FINER).mean(axis=(1, 3))
found = sirt(scene_of(CELLS), rays, sinogram).reshape(CELLS, CELLS)
print(f"{rays.shape[0]} angles x {rays.shape[1]} rays, {STEPS} iterations on {CELLS} x {CELLS} cells")
print(f"mean absolute error {abs(found - truth).mean():.3f}; the values of the phantom are from 0 to 1")

figure, axes = plt.subplots(1, 3, figsize=(8.0, 3.55), layout="constrained")
reach, bar = np.sqrt(2), {"location": "bottom", "shrink": 0.9, "aspect": 30}
for ax, picture, title in ((axes[0], truth, "The phantom"), (axes[2], found, "Reconstruction by SIRT")):
    drawn = ax.imshow(picture.T, origin="lower", extent=(-1, 1, -1, 1), cmap="cividis", vmin=0, vmax=0.5)
    ax.set(title=title, xticks=[-1, 0, 1], yticks=[-1, 0, 1])
    figure.colorbar(drawn, ax=ax, label="value of a cell; the skull is 1", extend="max", **bar)
drawn = axes[1].imshow(sinogram, extent=(-reach, reach, 180, 0), aspect=reach / 90, cmap="magma", vmin=0)
axes[1].set(title="Sinogram, with noise", xlabel="offset of the ray", ylabel="angle in degrees")
axes[1].set(xticks=[-1, 0, 1], yticks=[0, 60, 120, 180])
figure.colorbar(drawn, ax=axes[1], label="value x length along a ray", **bar)
save(figure, options.folder, "tomography")
