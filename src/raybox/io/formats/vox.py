"""MagicaVoxel `.vox`: a unit box for each voxel, or a grid.

Boxes are in the file's order. A box has the label ``color``, an index of the palette from 1 to 255.

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


class VoxChunk(NamedTuple):
    """A chunk: name, content, and the byte where the content begins."""

    name: bytes
    content: bytes
    start: int


class VoxModel(NamedTuple):
    """The size of a model, its filled cells, colors, lower corner."""

    size: Cells
    cells: Cells
    colors: Cells
    corner: Cells = np.zeros(3, dtype=np.int64)


class SceneNode(NamedTuple):
    """A node of the scene: matrix, children, models, what hides it."""

    matrix: Cells
    children: list[int]
    models: list[int]
    hidden: bool = False
    layer: int = -1


class VoxContent(NamedTuple):
    """Models, nodes of the scene, hidden layers, the number after PACK."""

    models: list[VoxModel]
    nodes: dict[int, SceneNode]
    hidden: set[int]
    packed: int | None


def read(path: Path, options: ReadOptions) -> Loaded:
    """Return the voxels of a `.vox` file as boxes of edge 1."""
    skipped = Counter[str]()
    placed = _placed_models(_content(path.read_bytes(), path), path, skipped)
    cells = np.concatenate([np.zeros((0, 3), np.int64), *(model.cells for model in placed)])
    lower = cells.astype(np.float64)
    colors = np.concatenate([np.zeros(0, np.int64), *(model.colors for model in placed)])
    return Loaded(Boxes(lower, lower + 1.0, labels={"color": colors}), +skipped)


def read_grid(path: Path) -> GridCells:
    """Return the filled cells of a `.vox` file in a grid around all its models."""
    skipped = Counter[str]()
    placed = _placed_models(_content(path.read_bytes(), path), path, skipped)
    _check_extents(placed, path)
    first = np.min([model.corner for model in placed], axis=0)
    last = np.max([model.corner + model.size for model in placed], axis=0)
    occupied = _no_cells(tuple((last - first).tolist()), path)
    for model in placed:
        occupied[tuple((model.cells - first).T)] = True
    return GridCells(occupied, tuple(first.tolist()), skipped=+skipped)


def _no_cells(shape: tuple[int, ...], path: Path) -> NDArray[np.bool_]:
    """Return a mask of this shape without a filled cell."""
    if prod(shape) > machine_bytes():  # models may be far from each other
        size = " x ".join(map(str, shape))
        problem = f"its models lie in a grid of {size} cells, more than fit into memory"
        raise file_error(path, problem, "move the models together, or load boxes: raybox.load")
    return np.zeros(shape, np.bool_)


def _check_extents(placed: list[VoxModel], path: Path) -> None:
    """Raise `FileFormatError` unless there are models, of sizes that voxels can fill."""
    if not placed:
        raise file_error(path, "its scene places no model", "save it again in MagicaVoxel")
    for model in placed:
        if (model.size < 1).any() or (model.size > MAX_MODEL_SIZE).any():
            size = " x ".join(map(str, model.size.tolist()))
            problem = f"a model of {size} cells, not 1 to {MAX_MODEL_SIZE} along each axis"
            raise file_error(path, problem, "save it again in MagicaVoxel")


def _content(data: bytes, path: Path) -> VoxContent:
    """Return the content of all chunks; each XYZI chunk has a SIZE chunk before it."""
    content, size = VoxContent([], {}, set(), None), None
    for chunk in _chunks(data, path):
        try:
            if chunk.name == b"PACK":
                content = content._replace(packed=_Cursor(chunk.content).number())
            elif chunk.name == b"SIZE" and size is None:
                size = np.array(struct.unpack_from("<3i", chunk.content), dtype=np.int64)
            elif chunk.name == b"XYZI" and size is not None:
                content.models.append(_model(chunk.content, size))
                size = None
            elif chunk.name in (b"SIZE", b"XYZI"):
                raise ValueError("models are pairs of a SIZE and an XYZI chunk")
            elif chunk.name in (b"nTRN", b"nGRP", b"nSHP"):
                content.nodes.update([_node(chunk)])
            elif chunk.name == b"LAYR":
                cursor = _Cursor(chunk.content)
                layer, attributes = cursor.number(), cursor.mapping()
                content.hidden.update([layer] if attributes.get(_HIDDEN) == b"1" else [])
        except (ValueError, struct.error) as error:
            reason = "it ends too early" if isinstance(error, struct.error) else error
            problem = f"its {chunk.name.decode()} chunk is broken ({reason})"
            raise file_error(path, problem, "save it again in MagicaVoxel", f"byte {chunk.start}") from error
    if size is not None:
        raise cut_off(path, f"byte {len(data)}, in model {len(content.models)}")
    return content


def _placed_models(content: VoxContent, path: Path, skipped: Counter[str]) -> list[VoxModel]:
    """Return the models of the scene; without one, the first model."""
    models = content.models
    if not models:
        raise file_error(path, "holds no model", "check that it is a MagicaVoxel file")
    if content.packed is not None and content.packed != len(models):
        problem = f"its PACK chunk announces {content.packed} models, the file holds {len(models)}"
        raise file_error(path, problem, "copy or download it again")
    if content.nodes:
        return _scene_models(content, path, skipped)
    if len(models) > 1 and content.packed is None:
        problem = f"holds {len(models)} models, but no scene with their places, and no PACK chunk of frames"
        raise file_error(path, problem, "save it again in MagicaVoxel")
    return [models[0]]


def _chunks(data: bytes, path: Path) -> Iterator[VoxChunk]:
    """Yield MAIN and the chunks inside it, with checked sizes."""
    at, end = 8, len(data)
    main_end = at + 12 + sum(struct.unpack_from("<ii", data, at + 4)) if end >= at + 12 else end
    if at < main_end < end:
        check_end(path, data[main_end:])
        end = main_end
    while at < end:
        if at + 12 > end:
            raise cut_off(path, f"byte {end}")
        name, size, inner = data[at : at + 4], *struct.unpack_from("<ii", data, at + 4)
        at += 12
        if size < 0 or inner < 0 or at + size + inner > end:
            raise cut_off(path, f"byte {end}, in the {name.decode('ascii', errors='replace')} chunk")
        yield VoxChunk(name, data[at : at + size], at)
        at += size


def _model(content: bytes, size: Cells) -> VoxModel:
    (count,) = struct.unpack_from("<i", content)
    if 4 + 4 * count != len(content):
        raise ValueError(f"{count} voxels announced, room for {len(content) // 4 - 1}")
    voxels = np.frombuffer(content[4:], np.uint8).reshape(-1, 4).astype(np.int64)
    if (voxels[:, :3] >= size).any():
        raise ValueError(f"a voxel lies outside the model's {' x '.join(map(str, size.tolist()))} cells")
    return VoxModel(size, voxels[:, :3], voxels[:, 3])


class _Cursor:
    """A read position in the content of a scene node."""

    def __init__(self, content: bytes) -> None:
        self.content, self.at = content, 0

    def number(self) -> int:
        (value,) = struct.unpack_from("<i", self.content, self.at)
        self.at += 4
        return int(value)

    def text(self) -> bytes:
        size = self.number()
        if size < 0 or self.at + size > len(self.content):
            raise ValueError("a text ends beyond the chunk")
        self.at += size
        return self.content[self.at - size : self.at]

    def mapping(self) -> dict[bytes, bytes]:
        return {self.text(): self.text() for _ in range(self.count())}

    def numbers(self) -> list[int]:
        return [self.number() for _ in range(self.count())]

    def count(self) -> int:
        count = self.number()
        if not 0 <= count <= len(self.content):
            raise ValueError(f"a list of {count} items")
        return count


def _node(chunk: VoxChunk) -> tuple[int, SceneNode]:
    """Return the number and the node of a chunk of the scene."""
    cursor = _Cursor(chunk.content)
    name, attributes = cursor.number(), cursor.mapping()
    if chunk.name == b"nGRP":
        return name, SceneNode(STILL, cursor.numbers(), [])
    if chunk.name == b"nSHP":
        frames = [(cursor.number(), cursor.mapping()) for _ in range(cursor.count())]
        return name, SceneNode(STILL, [], _first_frame(frames))
    child, _, layer, _ = (cursor.number() for _ in range(4))
    frame = cursor.mapping()
    shift = [_whole(word) for word in frame.get(b"_t", b"0 0 0").split()]
    if len(shift) != 3:
        raise ValueError(f"a translation of {len(shift)} numbers")
    matrix = _rotation(_whole(frame.get(b"_r", UPRIGHT)))
    matrix[:3, 3] = shift
    return name, SceneNode(matrix, [child], [], attributes.get(_HIDDEN) == b"1", layer)


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
    if not any(b"_f" in attributes for _, attributes in models):
        return [model for model, _ in models]
    return [models[frames.index(min(frames))][0]]


def _whole(word: bytes) -> int:
    if not re.fullmatch(rb"[+-]?[0-9]{1,9}", word):
        raise ValueError(f"{quoted(word.decode('ascii', errors='replace'))} is not a whole number")
    return int(word)


def _scene_models(content: VoxContent, path: Path, skipped: Counter[str]) -> list[VoxModel]:
    """Return all models of a scene, placed, but those that are hidden."""
    models, visits = content.models, _visits(content, path)
    found, waiting, shown, voxels = list[VoxModel](), [(0, STILL, False)], set[int](), 0
    while waiting:
        name, outer, is_hidden = waiting.pop()
        node = content.nodes[name]
        inner, is_hidden = outer @ node.matrix, is_hidden or node.hidden or node.layer in content.hidden
        waiting += [(child, inner, is_hidden) for child in reversed(node.children) if visits[child]]
        shown.update(node.models)
        if is_hidden:
            skipped["models that are hidden"] += len(node.models)
            continue
        voxels += sum(len(models[k].cells) for k in node.models)
        if voxels * _VOXEL_BYTES > machine_bytes():  # a small file can show a model many times
            raise MemoryError
        found += [_placed(models[k], inner) for k in node.models]
    skipped["models that the scene does not place"] += len(models) - len(shown)
    return found


def _placed(model: VoxModel, matrix: Cells) -> VoxModel:
    """Return a placed model; a cell turned round ends where it began."""
    rotation, shift = matrix[:3, :3], matrix[:3, 3] - (matrix[:3, :3].sum(axis=1) < 0)
    ends = np.array([model.corner, model.size - 1])
    cells, ends = ((cells - model.size // 2) @ rotation.T + shift for cells in (model.cells, ends))
    return VoxModel(np.abs(rotation) @ model.size, cells, model.colors, ends.min(axis=0))


def _visits(content: VoxContent, path: Path) -> dict[int, int]:
    """Return the visits below each node: none without models."""
    nodes, count, visits = content.nodes, len(content.models), dict[int, int]()
    broken = [] if 0 in nodes else [0]
    for name, node in nodes.items():
        if not nodes.keys() >= {*node.children} or any(not 0 <= model < count for model in node.models):
            broken.append(name)
    order = TopologicalSorter({} if broken else {name: node.children for name, node in nodes.items()})
    try:
        for name in order.static_order():
            below = sum(visits[child] for child in nodes[name].children)
            visits[name] = below + 1 if below or nodes[name].models else 0
    except CycleError as error:
        broken = error.args[1]
    if broken:
        problem = f"its scene is broken at node {broken[0]}: it lacks a node or a model, or contains itself"
        raise file_error(path, problem, "save it again in MagicaVoxel")
    if visits[0] > MOST_VISITS:
        raise file_error(path, f"its scene has {visits[0]:,} places", "save it with fewer shared groups")
    return visits


def announced(path: Path) -> Announced:
    """Return the number of voxels of the scene: those of a model as often as it is placed."""
    content = _content(path.read_bytes(), path)
    sizes, totals = [len(model.cells) for model in content.models], dict[int, int]()
    for name in _visits(content, path) if content.nodes else ():  # children come before their parents
        node = content.nodes[name]
        shown = not (node.hidden or node.layer in content.hidden)
        totals[name] = shown * (sum(sizes[k] for k in node.models) + sum(totals[k] for k in node.children))
    return Announced(totals.get(0, sum(sizes[:1])))
