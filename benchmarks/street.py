"""The street of PandaSet as files that raybox reads: boxes around its cuboids, the lidar's beams as rays."""

import csv
from pathlib import Path

import numpy as np

import raybox as rb

SPINNING = 0  # the sensor whose beams all start at the origin


def make(source: Path, folder: Path) -> None:
    """Write cuboids.npz and beams.npz."""
    folder.mkdir(parents=True, exist_ok=True)
    with (source / "cuboids.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    centres, sizes = (
        np.array([[float(row[f"{what}.{axis}"]) for axis in "xyz"] for row in rows])
        for what in ("position", "dimensions")
    )
    yaw = np.array([float(row["yaw"]) for row in rows])
    cos, sin = abs(np.cos(yaw)), abs(np.sin(yaw))
    width, length, height = sizes.T
    around = np.stack([width * cos + length * sin, width * sin + length * cos, height], axis=1)
    rb.save(folder / "cuboids.npz", rb.Boxes.from_centers(centres, around))
    frame = np.load(source / "frame.npz")
    beams = frame["xyz"][frame["sensor"] == SPINNING].astype(float)
    rb.save(folder / "beams.npz", rb.Rays(np.zeros(3), beams[np.linalg.norm(beams, axis=1) > 0]))
