"""A depth image as a PNG file, written with NumPy and zlib alone."""

import struct
import zlib
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from raybox.hits import image
from raybox.hits.image import Bytes

Floats = NDArray[np.float64]

BACKGROUND = (9, 9, 14)  # of misses


def depth_picture(t: Floats, normals: Floats, index: NDArray[np.int64]) -> Bytes:
    """Return colours of distances: near is bright, far dark, a miss nearly black.

    Faces that point up are a little brighter than walls, and outlines of boxes darker.

    Parameters
    ----------
    t, index : (height, width)
        Distances (inf for a miss), and the boxes hit.
    normals : (height, width, 3)
        The faces hit.

    Returns
    -------
    (height, width, 3) uint8
    """
    hit = np.isfinite(t)
    near, far = np.quantile(t[hit], [0.005, 0.995]) if hit.any() else (0.0, 1.0)
    closeness = 1.0 - np.clip((np.where(hit, t, far) - near) / max(far - near, 1e-9), 0.0, 1.0)
    colours = image.ramp(closeness)
    facing = np.where(hit[..., None], normals, 0.0)
    shade = 0.84 + 0.16 * facing[..., 2] + 0.10 * facing[..., 0]
    shade[:, 1:] *= np.where(_outline(index[:, 1:], index[:, :-1]), 0.72, 1.0)
    shade[1:] *= np.where(_outline(index[1:], index[:-1]), 0.72, 1.0)
    picture = np.clip(colours * shade[..., None], 0.0, 255.0).astype(np.uint8)
    picture[~hit] = BACKGROUND
    return picture


def _outline(here: NDArray[np.int64], beside: NDArray[np.int64]) -> NDArray[np.bool_]:
    """Return which pixels have another box beside them."""
    outline: NDArray[np.bool_] = (here != beside) & (here >= 0) & (beside >= 0)
    return outline


def write_png(file: BinaryIO, picture: Bytes) -> None:
    """Write (height, width, 3) bytes as an RGB image (PNG specification, 3rd edition, sections 5, 9, 11)."""
    height, width, _ = picture.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), picture.reshape(height, -1)], axis=1)
    file.write(b"\x89PNG\r\n\x1a\n")
    chunks = {
        b"IHDR": struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0),
        b"IDAT": zlib.compress(rows.tobytes(), 9),
        b"IEND": b"",
    }
    for name, content in chunks.items():
        file.write(
            struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        )
