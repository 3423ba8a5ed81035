"""Converts a street of PandaSet to raybox's files: boxes around cuboids, lidar beams as rays."""

import csv
import json
from pathlib import Path

import numpy as np

import raybox as rb

SPINNING = 0  # the sensor whose beams start at one point
POSITION = np.array([0.04, 0.98, 1.78])  # in the frame of meta.json's pose: fitted, see lidar_sweep.py


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
    ends = frame["xyz"][frame["sensor"] == SPINNING].astype(float)
    heading = json.loads((source / "meta.json").read_text())["lidar_pose"]["heading"]
    axis = np.array([heading[name] for name in "xyz"])
    twice = 2 * np.cross(axis, POSITION)
    eye = POSITION + heading["w"] * twice + np.cross(axis, twice)
    rb.save(folder / "beams.npz", rb.Rays(eye, ends - eye))
