"""Images and other files that a file of a mesh names, for the colours of its triangles."""

import io
import warnings
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from raybox.io.formats.common import Floats

NOT_READ = "textures that are not read"
"""The reason in `skipped`."""


def beside(folder: Path, name: str) -> Path | None:
    """Return the path of a file in a folder or below, links followed; None for any other."""
    parts = name.split("/")
    if {*"\\:\0"} & {*name} or not all(parts) or ".." in parts:
        return None
    try:
        root = folder.resolve()
        file = root.joinpath(*parts).resolve()
        return file if file.is_relative_to(root) and file.is_file() else None
    except (OSError, RuntimeError, ValueError):  # a loop of links, a name that no system has
        return None


def mean_color(image: bytes) -> Floats | None:
    """Return the mean of an image's red, green, blue and alpha, from 0 to 1.

    None if Pillow is not installed, or does not read it.
    """
    if find_spec("PIL") is None:
        return None
    pillow, statistics = import_module("PIL.Image"), import_module("PIL.ImageStat")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            warnings.simplefilter("error", pillow.DecompressionBombWarning)
            with pillow.open(io.BytesIO(image)) as opened:
                if opened.mode[0] in "IF":  # of more than 8 bits, which Pillow cuts off
                    return None
                return np.array(statistics.Stat(opened.convert("RGBA")).mean) / 255.0
    except Exception:  # errors of many types, of damaged images
        return None
