"""Material libraries of Wavefront OBJ: `Kd` and `d` or `Tr` of each material; textures are counted."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from raybox.errors import FileFormatError
from raybox.geometry.colors import Colors, color_bytes
from raybox.io.formats.common import TEXTURES, file_below
from raybox.io.formats.text_lines import text_lines

Statements = dict[str, list[float]]
"""The numbers of a material by key word."""
NO_MATERIAL = {"", "(null)"}
_NUMBERS = {"kd": slice(3), "d": slice(-1, None), "tr": slice(-1, None)}
"""Which words of a statement are numbers: options may precede the last one."""


def colors_of(
    path: Path, libraries: Sequence[str], names: Sequence[str], skipped: Counter[str], left_out: Counter[str]
) -> Colors:
    """Return the colours of materials by their names, (len(names), 4); zeros without.

    libraries: the rest of each line `mtllib` of the OBJ file at `path`.
    """
    materials = dict[str, Statements]()
    for given in dict.fromkeys(libraries):
        whole = _below(path, given)
        for file in [whole] if whole else [_below(path, word) for word in given.split()]:
            try:
                materials |= {} if file is None else _read(file, skipped)
                skipped["material libraries that are not there"] += file is None
            except (OSError, FileFormatError):
                skipped["material libraries that cannot be read"] += 1
    if materials:
        skipped["materials that no library has"] += len({*names} - materials.keys() - NO_MATERIAL)
    left_out[TEXTURES] += sum("map_kd" in materials.get(name, {}) for name in {*names})
    return color_bytes([_color(materials.get(name, {})) for name in names])


def _color(stated: Statements) -> list[float]:
    """Return red, green, blue and alpha of a material; zeros if it states no colour."""
    if "kd" not in stated:
        return [0.0] * 4
    opacity = stated["d"][0] if "d" in stated else 1.0 - stated.get("tr", [0.0])[0]
    return [*(stated["kd"] * 3)[:3], opacity]  # one number is that of all


def _below(path: Path, name: str) -> Path | None:
    text = name.encode("ascii", "surrogateescape").decode(errors="replace")
    return file_below(path.parent, text.replace("\\", "/"))


def _read(file: Path, skipped: Counter[str]) -> dict[str, Statements]:
    """Return what a library states of each material."""
    materials, stated = dict[str, Statements](), Statements()
    for line in text_lines(file.read_bytes(), file):
        is_name = line.lstrip().lower().startswith("newmtl")  # in which a # may be
        key, *words = (line if is_name else line.partition("#")[0]).split() or [""]
        name = key.lower()
        if is_name:
            stated = materials[" ".join(words)] = {}
        elif name == "map_kd":
            stated[name] = []
        elif name in _NUMBERS:
            try:
                stated[name] = [float(word) for word in words[_NUMBERS[name]] or [""]]
            except ValueError:
                skipped["colours of material libraries that are no numbers"] += 1
    return materials
