"""Pictures of hits: distances, indices or normals as colours; misses are white.

A depth image is drawn darker, for ``raybox demo``, and written as a PNG file with NumPy and zlib alone.
"""

import struct
import zlib
from io import BytesIO
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from raybox.validation import Bools, Floats, Ints

Bytes = NDArray[np.uint8]


class Picture(np.ndarray[tuple[int, ...], np.dtype[np.uint8]]):
    """An array of red, green and blue, (height, width, 3), which notebooks show as a picture."""

    def _repr_png_(self) -> bytes | None:
        """Return the picture as PNG; None of a part or a result that is not one."""
        if self.dtype != np.uint8 or self.ndim != 3 or self.shape[2] != 3 or not self.size:
            return None
        file = BytesIO()
        write_png(file, np.asarray(self))
        return file.getvalue()


WHITE = 255
# Even steps of lightness: night blue, violet, rose, orange, straw, nearly white.
STOPS = np.array(
    [[22, 16, 52], [74, 28, 110], [150, 48, 118], [222, 90, 88], [252, 168, 108], [255, 246, 208]]
)
# Okabe and Ito's colours for all kinds of colour vision, without black; then darker, and paler.
_HUES = np.array(
    [
        [0, 114, 178],
        [230, 159, 0],
        [0, 158, 115],
        [204, 121, 167],
        [86, 180, 233],
        [213, 94, 0],
        [240, 228, 66],
    ]
)
PALETTE = np.concatenate([_HUES, 0.62 * _HUES, 0.55 * _HUES + 0.45 * 215.0]).astype(np.uint8)


def of_depth(t: Floats, hit: Bools) -> Bytes:
    """Return colours of distances: the nearest hit darkest, the farthest palest, a miss white.

    The nearest and the farthest half per cent are clipped, so that single outliers do not take all contrast.
    """
    # a quarter of the largest float, so that differences do not overflow
    reach = np.finfo(np.float64).max / 4
    t = np.clip(t, -reach, reach)
    near, far = np.quantile(t[hit], [0.005, 0.995]) if hit.any() else (0.0, 1.0)
    share = np.clip((t - near) / (far - near), 0.0, 1.0) if far > near else np.zeros(t.shape)
    return _on_white(ramp(0.9 * share), hit)


def of_index(index: Ints) -> Bytes:
    """Return one of 21 colours for each index, the same in every picture; a miss is white."""
    return _on_white(PALETTE[index % len(PALETTE)], index >= 0)


def of_normals(normals: Floats, hit: Bools) -> Bytes:
    """Return colours of normals: red, green, blue are x, y, z.

    A miss is white.
    """
    colours = np.full((*normals.shape[:-1], 3), 127.5)
    colours[..., : normals.shape[-1]] += 127.5 * np.where(hit[..., None], normals, 0.0)
    return _on_white(np.rint(colours), hit)


def ramp(share: Floats) -> Floats:
    """Return colours, shape (..., 3), from 0 to 255.

    share: from 0 (dark) to 1 (pale).
    """
    steps = np.linspace(0.0, 1.0, len(STOPS))
    return np.stack([np.interp(share, steps, channel) for channel in STOPS.T], axis=-1)


def _on_white(colours: NDArray[np.float64 | np.uint8], hit: Bools) -> Bytes:
    return np.where(hit[..., None], colours, WHITE).astype(np.uint8)


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
    colours = ramp(closeness)
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


def write_png(file: BinaryIO, picture: Bytes, software: str = "raybox") -> None:
    """Write (height, width, 3) bytes as an RGB image (PNG specification, 3rd edition, sections 5, 9, 11).

    software: what made it, in ASCII, before the pixels.
    """
    height, width, _ = picture.shape
    rows = np.concatenate([np.zeros((height, 1), np.uint8), picture.reshape(height, -1)], axis=1)
    file.write(b"\x89PNG\r\n\x1a\n")
    chunks = {
        b"IHDR": struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0),
        b"tEXt": b"Software\0" + software.encode("ascii"),
        b"IDAT": zlib.compress(rows.tobytes(), 9),
        b"IEND": b"",
    }
    for name, content in chunks.items():
        file.write(
            struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))
        )
