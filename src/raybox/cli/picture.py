"""A depth image as a PNG file, written with NumPy and zlib alone."""

import struct
import zlib
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Bytes = NDArray[np.uint8]

NIGHT = (8, 8, 12)  # where nothing is hit


def depth_picture(t: Floats, normals: Floats) -> Bytes:
    """Colour distances: near is bright and warm, far is dark and blue, a miss is nearly black.

    Parameters
    ----------
    t : (height, width)
        Distances; inf for a miss.
    normals : (height, width, 3)
        The faces hit: those that look up are shown a little brighter than walls, so that edges are seen.

    Returns
    -------
    (height, width, 3) uint8
    """
    hit = np.isfinite(t)
    near, far = np.quantile(t[hit], [0.002, 0.998]) if hit.any() else (0.0, 1.0)
    closeness = 1.0 - np.clip((t - near) / max(far - near, 1e-9), 0.0, 1.0)
    shade = 0.80 + 0.20 * np.clip(normals[..., 2], 0.0, 1.0) + 0.08 * normals[..., 0]
    colours = cubehelix(0.16 + 0.80 * np.where(hit, closeness, 0.0)) * shade[..., None]
    picture = np.clip(colours * 255.0, 0.0, 255.0).astype(np.uint8)
    picture[~hit] = NIGHT
    return picture


def cubehelix(x: Floats) -> Floats:
    """Map 0..1 to colours whose lightness grows evenly (D. A. Green, Bull. Astr. Soc. India 39, 289, 2011, eq. 2)."""
    angle = 2.0 * np.pi * (1.9 / 3.0 + 1.0 - 1.0 * x)
    amplitude = 1.2 * x * (1.0 - x) / 2.0
    weights = np.array([[-0.14861, 1.78277], [-0.29227, -0.90649], [1.97294, 0.0]])
    turns = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    return np.clip(x[..., None] + amplitude[..., None] * (turns @ weights.T), 0.0, 1.0)


def write_png(file: BinaryIO, picture: Bytes) -> None:
    """Write (height, width, 3) bytes as an RGB image (PNG specification, third edition, sections 5, 9 and 11)."""
    height, width, _ = picture.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), picture.reshape(height, -1)], axis=1)
    file.write(b"\x89PNG\r\n\x1a\n")
    chunks = {
        b"IHDR": struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0),
        b"IDAT": zlib.compress(rows.tobytes(), 9),
        b"IEND": b"",
    }
    for name, content in chunks.items():
        file.write(struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content)))
