"""Material libraries of Wavefront OBJ: `Kd`, `d`, `Tr` and `map_Kd` of each material."""

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np

from raybox.errors import FileFormatError
from raybox.geometry.colors import Colors, color_bytes
from raybox.io.formats.images import NOT_READ, beside, mean_color
from raybox.io.formats.text_lines import text_lines


class _Material(NamedTuple):
    """What a library states of a material; texture: the words that name it."""

    diffuse: list[float] | None = None
    opacity: float | None = None
    transparency: float = 0.0
    texture: list[str] | None = None


def colors_of(path: Path, libraries: Iterable[str], skipped: Counter[str]) -> dict[str, Colors]:
    """Return the colours (4,) of materials by name; libraries: the rest of each line `mtllib`."""
    found = dict[str, Colors]()
    for given in dict.fromkeys(libraries):
        whole = _beside(path, given)
        for file in [whole] if whole else [_beside(path, word) for word in given.split()]:
            try:
                found |= {} if file is None else _read(file, skipped)
                skipped["material libraries that are not there"] += file is None
            except (OSError, FileFormatError):
                skipped["material libraries that cannot be read"] += 1
    return found


def _beside(path: Path, name: str) -> Path | None:
    text = name.encode("ascii", "surrogateescape").decode(errors="replace")
    return beside(path.parent, text.replace("\\", "/"))


def _read(file: Path, skipped: Counter[str]) -> dict[str, Colors]:
    """Return the colours of the materials of a library; four zeros of one that states none."""
    materials, name = {"": _Material()}, ""
    for line in text_lines(file.read_bytes(), file):
        is_name = line.lstrip().lower().startswith("newmtl")  # in which a # may be
        key, *words = (line if is_name else line.partition("#")[0]).split() or [""]
        try:
            match key.lower():
                case "newmtl":
                    name = " ".join(words)
                    materials[name] = _Material()
                case "kd":
                    numbers = [float(word) for word in words[:3]] or [float("")]
                    same = numbers[:1] * (3 - len(numbers))  # one number is that of all
                    materials[name] = materials[name]._replace(diffuse=[*numbers, *same])
                case "d":
                    materials[name] = materials[name]._replace(opacity=float(words[-1]))
                case "tr":
                    materials[name] = materials[name]._replace(transparency=float(words[-1]))
                case "map_kd":
                    materials[name] = materials[name]._replace(texture=words)
        except (IndexError, ValueError):
            skipped["colours of material libraries that are no numbers"] += 1
    return {name: _color(one, file, skipped) for name, one in materials.items()}


def _color(material: _Material, file: Path, skipped: Counter[str]) -> Colors:
    """Return the colour of a material: that of `Kd`, times the mean of its texture."""
    mean = None
    if material.texture is not None:
        names = " ".join(material.texture), *material.texture[-1:]  # options may precede the name
        image = next(filter(None, (_beside(file, name) for name in names)), None)
        mean = None if image is None else mean_color(image.read_bytes())
        skipped[NOT_READ] += mean is None
    if material.diffuse is None and mean is None:
        return np.zeros(4, np.uint8)
    opacity = 1.0 - material.transparency if material.opacity is None else material.opacity
    own = np.array([*(material.diffuse or [1.0, 1.0, 1.0]), opacity])
    return color_bytes(own if mean is None else own * mean)
