"""Shared by the examples: the command line, and saving of pictures."""

import argparse
from pathlib import Path
from typing import Any

import matplotlib as mpl
from PIL import Image

mpl.use("Agg")

GALLERY = Path(__file__).parents[1] / "docs" / "images" / "gallery"
STYLE = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.titlesize": 10}


def arguments(text: str, data: str = "") -> argparse.Namespace:
    """Return the command line's arguments: the picture's folder, and --data where it is used."""
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", nargs="?", type=Path, default=GALLERY, help="where the picture goes")
    if data:
        parser.add_argument("--data", type=Path, help=f"{data}; without it, a small stand-in is made")
    mpl.rcParams.update(STYLE)
    return parser.parse_args()


def save(figure: Any, folder: Path, name: str) -> None:
    """Save the picture, and print its path."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{name}.png"
    figure.savefig(path, dpi=200)
    shrink(path)
    print(f"picture: {path}")


def shrink(path: Path) -> None:
    """Write a picture again in 256 colours, a third of the size, if it has few: smooth parts get bands."""
    with Image.open(path) as picture:
        colours = picture.convert("RGB")
    if colours.getcolors(2**15):
        colours = colours.quantize(256, method=Image.Quantize.MAXCOVERAGE, kmeans=5)
    colours.save(path, optimize=True)
