"""MagicaVoxel `.vox`: a unit box for each voxel, or a grid.

Boxes are in the file's order. A box has the label ``color``, an index of the palette from 1 to 255, and the
colour of the palette: of that in the file, else of the one of old files, which have none.

The scene places each model once or several times, by translations and rotations of 90 degrees around its
middle cell. Without a scene, the cells of a model are its own, from 0 to its size. Hidden models are left
out.

An animation is read as its first frame, the one that a viewer shows first: all frames at once would fill the
same cells several times. The frames of old files are the models that a PACK chunk counts, without a scene;
those of newer ones are the models of one shape, numbered by ``_f``.
"""

import re
import struct
from collections import Counter
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from math import prod
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.compiler.huge_pages import machine_bytes
from raybox.geometry import Boxes
from raybox.geometry.colors import Colors
from raybox.geometry.labels import with_colors
from raybox.io.formats.common import GridCells, Loaded, ReadOptions, file_error, quoted
from raybox.io.formats.mesh_parts import check_end, cut_off
from raybox.io.formats.tables import Announced

Cells = NDArray[np.int64]
STILL = np.eye(4, dtype=np.int64)  # a matrix of the scene: a rotation by signed axes, and a translation
MAX_MODEL_SIZE = 256  # cells along an axis of a model: voxels have coordinates of one byte
_VOXEL_BYTES = 200  # of a cell, a box, and copies of both
MOST_VISITS = 1 << 21  # of nodes of the scene: groups that are shared can double them at each level
_HIDDEN = b"_hidden"
UPRIGHT = b"4"  # the packed rotation that leaves every axis as it is
_SAVE = "save it again in MagicaVoxel"
_NUMBERED = np.arange(256, dtype=np.uint8)[:, np.newaxis] > 0  # of a palette: number 0 has no colour


class VoxModel(NamedTuple):
    """The size of a model, its voxels (x, y, z, color), its lower corner."""

    size: Cells
    voxels: Cells
    corner: Cells = np.zeros(3, dtype=np.int64)


class SceneNode(NamedTuple):
    """A node of the scene; hidden: it or its layer is."""

    children: list[int]
    models: list[int]
    matrix: Cells = STILL
    hidden: bool = False
    layer: int = -1


class Below(NamedTuple):
    """Visits of a node and below it, 0 without models; voxels that are not hidden."""

    visits: int
    voxels: int


class VoxContent(NamedTuple):
    """Models, nodes of the scene, the number after PACK, the colours (256, 4) by their numbers."""

    models: list[VoxModel]
    nodes: dict[int, SceneNode]
    packed: int | None
    palette: Colors


def read(path: Path, options: ReadOptions) -> Loaded:
    """Return the voxels of a `.vox` file as boxes of edge 1."""
    placed, palette, skipped = _placed_models(path)
    voxels = np.concatenate([np.zeros((0, 4), np.int64), *(model.voxels for model in placed)])
    lower = voxels[:, :3].astype(np.float64)
    boxes = Boxes(lower, lower + 1.0, labels={"color": voxels[:, 3]})
    return Loaded(with_colors(boxes, palette[voxels[:, 3]]), skipped, up="z")


def read_grid(path: Path) -> GridCells:
    """Return the filled cells of a `.vox` file in a grid around all its models."""
    placed, palette, skipped = _placed_models(path)
    if not placed:
        raise file_error(path, "its scene places no model", _SAVE)
    for model in placed:
        if (model.size < 1).any() or (model.size > MAX_MODEL_SIZE).any():
            problem = f"a model of {_by(model.size)} cells, not 1 to {MAX_MODEL_SIZE} along each axis"
            raise file_error(path, problem, _SAVE)
    first = np.min([model.corner for model in placed], axis=0)
    shape = np.max([model.corner + model.size for model in placed], axis=0) - first
    if prod(shape.tolist()) > machine_bytes():  # models may be far from each other
        problem = f"its models lie in a grid of {_by(shape)} cells, more than fit into memory"
        raise file_error(path, problem, "move the models together, or load boxes: raybox.load")
    occupied, colors = np.zeros(shape, np.bool_), np.zeros((*shape, 4), np.uint8)
    for model in placed:
        cells = tuple((model.voxels[:, :3] - first).T)
        occupied[cells], colors[cells] = True, palette[model.voxels[:, 3]]
    return GridCells(occupied, tuple(first.tolist()), skipped=skipped, colors=colors.reshape(-1, 4))


def _by(shape: Cells) -> str:
    return " x ".join(map(str, shape.tolist()))


def announced(path: Path) -> Announced:
    """Return the number of voxels of the scene: those of a model as often as it is placed."""
    content = _content(path)
    if content.nodes:
        return Announced(_below(content, path)[0].voxels)
    return Announced(sum(len(model.voxels) for model in content.models[:1]))


def _content(path: Path) -> VoxContent:
    """Return the content of all chunks; each XYZI chunk has a SIZE chunk before it."""
    content, hidden, size = VoxContent([], {}, None, _default_palette()), set[int](), None
    for name, cursor in _chunks(path.read_bytes(), path):
        try:
            if name == b"PACK":
                content = content._replace(packed=cursor.number())
            elif name == b"SIZE" and size is None:
                size = np.array(struct.unpack_from("<3i", cursor.content), dtype=np.int64)
            elif name == b"XYZI" and size is not None:
                content.models.append(_model(cursor.content, size))
                size = None
            elif name in (b"SIZE", b"XYZI"):
                raise ValueError("models are pairs of a SIZE and an XYZI chunk")
            elif name in (b"nTRN", b"nGRP", b"nSHP"):
                node = cursor.number()
                content.nodes[node] = _node(name, cursor, cursor.mapping())
            elif name == b"RGBA":
                content = content._replace(palette=_palette(cursor.content))
            elif name == b"LAYR":
                layer = cursor.number()
                hidden.update([layer] if cursor.mapping().get(_HIDDEN) == b"1" else [])
        except (ValueError, struct.error) as error:
            reason = "it ends too early" if isinstance(error, struct.error) else error
            problem = f"its {name.decode()} chunk is broken ({reason})"
            raise file_error(path, problem, _SAVE, f"byte {cursor.start}") from error
    if size is not None:
        raise cut_off(path, f"byte {path.stat().st_size}, in model {len(content.models)}")
    for number, one in content.nodes.items():
        content.nodes[number] = one._replace(hidden=one.hidden or one.layer in hidden)
    return content


def _chunks(data: bytes, path: Path) -> "Iterator[tuple[bytes, _Cursor]]":
    """Yield the names and contents of MAIN and the chunks inside it, with checked sizes."""
    at = 8
    while at < len(data):
        head = data[at : at + 12].ljust(12, b"\xff")  # of one that is cut off, a size is negative
        name, size, inner = struct.unpack("<4sii", head)
        at += 12
        end = at + size + inner
        if size < 0 or inner < 0 or end > len(data):
            chunk = name.decode("ascii", errors="replace")
            raise cut_off(path, f"byte {len(data)}, in the {chunk} chunk")
        if at == 20:  # MAIN, which holds all others
            check_end(path, data[end:])
            data = data[:end]
        yield name, _Cursor(data[at : at + size], at)
        at += size


def _palette(content: bytes) -> Colors:
    """Return the colours of a chunk, whose first is number 1; zeros if there are not 256."""
    colors = np.frombuffer(content if len(content) == 1024 else bytes(1024), np.uint8)
    return np.roll(colors, 4).reshape(-1, 4) * _NUMBERED


def _default_palette() -> Colors:
    """Return the colours of a file without a palette: a cube of 6 levels, then red, green, blue and gray."""
    levels = np.arange(255, -1, -51)
    cube = np.stack(np.meshgrid(levels, levels, levels, indexing="ij"), axis=-1).reshape(-1, 3)[:-1]
    shades = np.array([238, 221, 187, 170, 136, 119, 85, 68, 34, 17])[:, np.newaxis]
    ramps = [shades * axes for axes in ([1, 0, 0], [0, 1, 0], [0, 0, 1], [1, 1, 1])]
    opaque = np.pad(np.concatenate([cube, *ramps]), ((1, 0), (0, 1)), constant_values=255)
    return opaque.astype(np.uint8) * _NUMBERED


def _model(content: bytes, size: Cells) -> VoxModel:
    (count,) = struct.unpack_from("<i", content)
    if 4 + 4 * count != len(content):
        raise ValueError(f"{count} voxels announced, room for {len(content) // 4 - 1}")
    voxels = np.frombuffer(content[4:], np.uint8).reshape(-1, 4).astype(np.int64)
    if (voxels[:, :3] >= size).any():
        raise ValueError(f"a voxel lies outside the model's {_by(size)} cells")
    return VoxModel(size, voxels)


class _Cursor:
    """A read position in the content of a chunk, which begins at byte `start` of the file."""

    def __init__(self, content: bytes, start: int) -> None:
        self.content, self.start, self.at = content, start, 0

    def number(self) -> int:
        (value,) = struct.unpack_from("<i", self.content, self.at)
        self.at += 4
        return int(value)

    def size(self) -> int:
        size = self.number()
        if not 0 <= size <= len(self.content) - self.at:
            raise ValueError(f"a text or a list of {size} ends beyond the chunk")
        return size

    def text(self) -> bytes:
        size = self.size()
        self.at += size
        return self.content[self.at - size : self.at]

    def mapping(self) -> dict[bytes, bytes]:
        return {self.text(): self.text() for _ in range(self.size())}


def _node(name: bytes, cursor: _Cursor, attributes: dict[bytes, bytes]) -> SceneNode:
    """Return the node of a chunk of the scene."""
    if name == b"nGRP":
        return SceneNode([cursor.number() for _ in range(cursor.size())], [])
    if name == b"nSHP":
        models = [(cursor.number(), cursor.mapping()) for _ in range(cursor.size())]
        return SceneNode([], _first_frame(models))
    child, _, layer, _ = (cursor.number() for _ in range(4))
    frame = cursor.mapping()
    shift = [_whole(word) for word in frame.get(b"_t", b"0 0 0").split()]
    if len(shift) != 3:
        raise ValueError(f"a translation of {len(shift)} numbers")
    matrix = _rotation(_whole(frame.get(b"_r", UPRIGHT)))
    matrix[:3, 3] = shift
    return SceneNode([child], [], matrix, attributes.get(_HIDDEN) == b"1", layer)


def _rotation(packed: int) -> Cells:
    """Return the matrix of a packed rotation.

    Bits 0-1 and 2-3 are the axes of rows 0 and 1, bits 4-6 the signs of the rows.
    """
    axes = [packed & 3, packed >> 2 & 3]
    axes.append(3 - sum(axes))
    if sorted(axes) != [0, 1, 2] or not 0 <= packed < 128:
        raise ValueError(f"{packed} is no rotation")
    signs = [1 - 2 * (packed >> bit & 1) for bit in (4, 5, 6)]
    found: Cells = STILL[[*axes, 3]] * np.array([*signs, 1])[:, np.newaxis]
    return found


def _first_frame(models: list[tuple[int, dict[bytes, bytes]]]) -> list[int]:
    """Return the models of a shape; of an animation only that of the lowest frame."""
    frames = [_whole(attributes.get(b"_f", b"0")) for _, attributes in models]
    is_animated = any(b"_f" in attributes for _, attributes in models)
    shown = [models[frames.index(min(frames))]] if is_animated else models
    return [model for model, _ in shown]


def _whole(word: bytes) -> int:
    if not re.fullmatch(rb"[+-]?[0-9]{1,9}", word):
        raise ValueError(f"{quoted(word.decode('ascii', errors='replace'))} is not a whole number")
    return int(word)


def _placed_models(path: Path) -> tuple[list[VoxModel], Colors, Counter[str]]:
    """Return the models of the scene, or without one the first, and the palette; count others."""
    content = _content(path)
    models, packed = content.models, content.packed
    if not models:
        raise file_error(path, "holds no model", "check that it is a MagicaVoxel file")
    if packed is not None and packed != len(models):
        problem = f"its PACK chunk announces {packed} models, the file holds {len(models)}"
        raise file_error(path, problem, "copy or download it again")
    lost = Counter({} if content.palette.any() else {"palettes that do not have 256 colours": 1})
    if content.nodes:
        placed, skipped = _scene_models(content, path)
        return placed, content.palette, skipped + lost
    if len(models) > 1 and packed is None:
        problem = f"holds {len(models)} models, but no scene with their places, and no PACK chunk of frames"
        raise file_error(path, problem, _SAVE)
    return models[:1], content.palette, lost


def _scene_models(content: VoxContent, path: Path) -> tuple[list[VoxModel], Counter[str]]:
    """Return all models of a scene, placed, but those that are hidden."""
    models, below, skipped = content.models, _below(content, path), Counter[str]()
    if below[0].voxels * _VOXEL_BYTES > machine_bytes():  # a small file can show a model many times
        raise MemoryError
    found, waiting, named = list[VoxModel](), [(0, STILL, False)], set[int]()
    while waiting:
        name, outer, is_hidden = waiting.pop()
        node = content.nodes[name]
        inner, is_hidden = outer @ node.matrix, is_hidden or node.hidden
        waiting += [(child, inner, is_hidden) for child in reversed(node.children) if below[child].visits]
        named.update(node.models)
        if is_hidden:
            skipped["models that are hidden"] += len(node.models)
        else:
            found += [_placed(models[k], inner) for k in node.models]
    skipped["models that the scene does not place"] += len(models) - len(named)
    return found, +skipped


def _placed(model: VoxModel, matrix: Cells) -> VoxModel:
    """Return a placed model; a cell turned round ends where it began."""
    rotation, shift = matrix[:3, :3], matrix[:3, 3] - (matrix[:3, :3].sum(axis=1) < 0)
    ends = np.array([model.corner, model.size - 1])
    cells, ends = ((cells - model.size // 2) @ rotation.T + shift for cells in (model.voxels[:, :3], ends))
    voxels = np.column_stack([cells, model.voxels[:, 3]])
    return VoxModel(np.abs(rotation) @ model.size, voxels, ends.min(axis=0))


def _below(content: VoxContent, path: Path) -> dict[int, Below]:
    """Return what is below each node; raise for a scene that is broken, or too large."""
    nodes, sizes, below = content.nodes, [len(model.voxels) for model in content.models], dict[int, Below]()
    broken = [] if 0 in nodes else [0]
    for name, node in nodes.items():
        if not nodes.keys() >= {*node.children} or any(not 0 <= k < len(sizes) for k in node.models):
            broken.append(name)
    order = TopologicalSorter({} if broken else {name: node.children for name, node in nodes.items()})
    try:
        for name in order.static_order():  # children before their parents
            node = nodes[name]
            visits = sum(below[child].visits for child in node.children)
            voxels = sum(sizes[k] for k in node.models) + sum(below[child].voxels for child in node.children)
            below[name] = Below(visits + 1 if visits or node.models else 0, 0 if node.hidden else voxels)
    except CycleError as error:
        broken = error.args[1]
    if broken:
        problem = f"its scene is broken at node {broken[0]}: it lacks a node or a model, or contains itself"
        raise file_error(path, problem, _SAVE)
    if (visits := below[0].visits) > MOST_VISITS:
        raise file_error(path, f"its scene has {visits:,} places", "save it with fewer shared groups")
    return below
