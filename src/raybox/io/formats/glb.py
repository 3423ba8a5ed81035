"""glTF, in one file (`.glb`) or as JSON (`.gltf`): one object for each node that shows a mesh.

The nodes are those of the default scene (``scene``, else the first; without scenes, all) that are visible. A
mesh has the pose of its joints and the weights of its morph targets that the file gives, without animations.
Positions are in metres, and y is up. Base colours of materials and `COLOR_0` of vertices are linear numbers,
which become bytes of sRGB; textures are not read, but counted.
"""

from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np

from raybox.compiler.huge_pages import machine_bytes
from raybox.errors import FileFormatError
from raybox.geometry.colors import Colors, color_bytes, joined_colors
from raybox.geometry.transforms import of_unit_quaternions
from raybox.geometry.triangle_strips import strip_triangles
from raybox.io.formats.common import TEXTURES, Floats, Loaded, ReadOptions, quoted
from raybox.io.formats.gltf_document import UNSIGNED, Document, Item
from raybox.io.formats.mesh_parts import Ints, MeshPart, to_scene
from raybox.io.formats.tables import Announced
from raybox.validation import Bools

INSTANCES, DRACO, RTC = "EXT_mesh_gpu_instancing", "KHR_draco_mesh_compression", "CESIUM_RTC"
VISIBILITY = "KHR_node_visibility"
READ = {INSTANCES, RTC, VISIBILITY, "KHR_mesh_quantization"}
# Extensions that move, hide or multiply nothing; all of KHR_materials_… and the like are such ones
_PASSED = (
    "KHR_texture_transform KHR_texture_basisu KHR_lights_punctual KHR_xmp KHR_xmp_json_ld "
    "KHR_audio_emitter KHR_animation_pointer KHR_interactivity KHR_node_selectability "
    "KHR_node_hoverability KHR_implicit_shapes KHR_physics_rigid_bodies EXT_lights_image_based "
    "EXT_lights_ies EXT_mesh_features EXT_mesh_manifold EXT_structural_metadata EXT_feature_metadata "
    "EXT_instance_features EXT_texture_webp EXT_texture_avif EXT_texture_astc "
    "EXT_mesh_primitive_edge_visibility EXT_texture_video MSFT_texture_dds MSFT_lod "
    "MSFT_packing_normalRoughnessMetallic MSFT_packing_occlusionRoughnessMetallic "
    "CESIUM_primitive_outline FB_ngon_encoding GODOT_single_root VRM VRMC_vrm VRMC_springBone "
    "VRMC_materials_mtoon VRMC_node_constraint AGI_stk_metadata MAXAR_image_ortho"
)
PASSED = frozenset(_PASSED.split())
LOOKS = ("KHR_materials_", "EXT_materials_", "ADOBE_materials_", "NV_materials_")
# Compressions: refused where the file has no plain data beside the compressed ones
COMPRESSED = {DRACO, "EXT_meshopt_compression", "KHR_meshopt_compression"}
# Extensions that move, hide or join triangles, also in a file that does not require them
REFUSED = {"KHR_visibility", "WEB3D_quantized_attributes", "EXT_mesh_primitive_restart"}
COUNTED = {0: "primitives of points"} | dict.fromkeys((1, 2, 3), "primitives of lines")
_TRIANGLES, _STRIP, _FAN = 4, 5, 6
# Of nodes, and of instances with their types: translation, rotation, scale
_DEFAULTS = {"translation": [0.0, 0.0, 0.0], "rotation": [0.0, 0.0, 0.0, 1.0], "scale": [1.0, 1.0, 1.0]}


class Placement(NamedTuple):
    """The matrix of a node in the scene, and whether it shows its mesh."""

    matrix: Floats
    is_visible: bool


class MeshPrimitive(NamedTuple):
    """The vertices and the triangles of a primitive, with their colours."""

    vertices: Floats
    faces: Ints
    attributes: Item
    colors: Colors | None = None


class BaseColor(NamedTuple):
    """The linear base colour (4,) of a material."""

    factor: Floats
    is_opaque: bool


class GltfColors:
    """The colours of a document; those that are not read are counted."""

    def __init__(self, document: Document, skipped: Counter[str], left_out: Counter[str]) -> None:
        self.document, self.skipped, self.left_out = document, skipped, left_out
        self._materials = dict[object, BaseColor | None]()

    def of_faces(self, primitive: Item, vertex_count: int, faces: Ints) -> Colors | None:
        """Return the colours of the triangles of a primitive; None if it states none."""
        material, number = None, primitive.values.get("material")
        if type(number) is int:
            if number not in self._materials:
                self._materials[number] = self._material(primitive)
            material = self._materials[number]
        corners = self._corners(primitive.child("attributes"), vertex_count)
        if material is None and corners is None:
            return None
        factor, is_opaque = material or BaseColor(np.ones(4), is_opaque=True)
        linear = factor * (np.ones((len(faces), 4)) if corners is None else corners[faces].mean(axis=1))
        linear[:, 3] = 1.0 if is_opaque else linear[:, 3]
        x = np.clip(linear[:, :3], 0.0, 1.0)
        linear[:, :3] = np.where(x <= 0.0031308, 12.92 * x, 1.055 * x ** (1 / 2.4) - 0.055)  # sRGB
        return color_bytes(linear)

    def _material(self, primitive: Item) -> BaseColor | None:
        """Return the base colour of the material of a primitive; None if it is broken."""
        try:
            materials = self.document.root.children("materials", "material")
            number = primitive.whole("material")
            if number >= len(materials):
                primitive.refuse(f"refers to material {number}, the file has {len(materials)}")
            base = materials[number].child("pbrMetallicRoughness")
            factor = base.numbers("baseColorFactor", [1.0] * 4)
            is_opaque = materials[number].get("alphaMode", str, "OPAQUE") != "BLEND"
        except FileFormatError:
            self.skipped["materials that are broken"] += 1
            return None
        self.left_out[TEXTURES] += "baseColorTexture" in base.values
        return BaseColor(factor, is_opaque)

    def _corners(self, attributes: Item, vertex_count: int) -> Floats | None:
        """Return the linear colours of vertices (V, 4); None without."""
        if "COLOR_0" not in attributes.values:
            return None
        try:
            item = self.document.item("accessor", attributes.whole("COLOR_0"), attributes)
            kind = "VEC3" if item.get("type", str) == "VEC3" else "VEC4"
            found = self.document.accessor(attributes, "COLOR_0", kind, vertex_count)
        except FileFormatError:
            self.skipped["colours of vertices that are broken"] += 1
            return None
        clipped = np.clip(np.nan_to_num(found), 0.0, 1.0)
        return np.hstack([clipped, np.ones((vertex_count, 4 - clipped.shape[1]))])


@np.errstate(all="ignore")  # numbers that are not finite are refused where triangles use them
def read(path: Path, options: ReadOptions) -> Loaded:
    """Return the triangles of a glTF file."""
    document, skipped, left_out = Document(path), Counter[str](), Counter[str]()
    unknown, colors = _unknown_extensions(document.root), GltfColors(document, skipped, left_out)
    world, parts, size = _world(document), list[MeshPart](), 0
    meshes = dict[tuple[float, ...], list[MeshPrimitive]]()
    for number, node in enumerate(document.items["node"]):
        if "mesh" not in node.values:
            continue
        if number not in world:
            skipped["nodes outside of the default scene"] += 1
            continue
        if not world[number].is_visible:
            left_out["nodes that are hidden"] += 1
            continue
        mesh = document.item("mesh", node.whole("mesh"), node)
        weights = (node if "weights" in node.values else mesh).listed("weights", float, int)
        key = (node.whole("mesh"), *weights)
        if key not in meshes:
            meshes[key] = _mesh(colors, mesh, weights)
        primitives, matrices = meshes[key], world[number].matrix @ _instances(document, node)
        size += len(matrices) * sum(one.vertices.nbytes + one.faces.nbytes for one in primitives)
        if size > machine_bytes():  # a small file can show a mesh many times
            raise MemoryError
        if "skin" in node.values:  # its joints place the mesh, not the node
            joints, matrices = _joints(document, node, world), np.eye(4)[np.newaxis]
            primitives = [_posed(document, one, joints) for one in primitives]
        parts.append(_placed(node.get("name", str, "") or f"node {number}", primitives, matrices))
    left_out["animations"] = len(document.root.listed("animations", dict))
    found = to_scene(parts, path, options, +skipped, +left_out, may_be_empty=True)
    lost = {**found.skipped, **document.skipped, **unknown}
    return found._replace(skipped=lost, units="metre", up="y")


def _unknown_extensions(root: Item) -> Counter[str]:
    """Count extensions that are not known; raise for those that must be read, and are not."""
    unknown = Counter[str]()
    required = root.listed("extensionsRequired", str)
    for name in dict.fromkeys([*required, *root.listed("extensionsUsed", str)]):
        if name in READ | PASSED or name.startswith(LOOKS):
            continue
        if name in REFUSED or name in required:
            verb = "requires" if name in required else "uses"
            root.refuse(f"{verb} the extension {name}, which raybox does not read", "export it without")
        if name not in COMPRESSED:
            unknown[f"uses of the extension {quoted(name)}, which raybox does not know"] += 1
    return unknown


def _world(document: Document) -> dict[int, Placement]:
    """Return the placements of the nodes of the default scene."""
    nodes, user = document.items["node"], document.root
    if document.items["scene"]:
        user = document.item("scene", user.whole("scene", 0), user)
        roots = user.listed("nodes", int)
    else:
        inner = {child for node in nodes for child in node.listed("children", int)}
        roots = [number for number in range(len(nodes)) if number not in inner]
    found, base = dict[int, Placement](), np.eye(4)
    extension = document.root.child("extensions").child(RTC)
    base[:3, 3] = extension.numbers("center", [0.0, 0.0, 0.0])
    waiting = [(number, Placement(base, is_visible=True), user) for number in roots]
    while waiting:
        number, parent, user = waiting.pop()
        node = document.item("node", number, user)
        if number in found:
            user.refuse(f"leads to node {number} a second time: the nodes are no tree")
        is_visible = node.child("extensions").child(VISIBILITY).get("visible", bool, True)
        found[number] = Placement(parent.matrix @ _local(node), parent.is_visible and is_visible)
        waiting += [(child, found[number], node) for child in node.listed("children", int)]
    return found


def _local(node: Item) -> Floats:
    """Return the matrix of a node in its parent."""
    if "matrix" in node.values:
        return node.numbers("matrix", [0.0] * 16).reshape(4, 4).T
    given = [node.numbers(key, value)[np.newaxis] for key, value in _DEFAULTS.items()]
    return _matrices(given, node).reshape(4, 4)


def _instances(document: Document, node: Item) -> Floats:
    """Return the matrices (N, 4, 4) of the instances of a node."""
    if INSTANCES not in node.child("extensions").values:
        return np.eye(4)[np.newaxis]
    attributes = node.child("extensions").child(INSTANCES).child("attributes")
    found = {
        key: document.accessor(attributes, key.upper(), f"VEC{len(default)}")
        for key, default in _DEFAULTS.items()
        if key.upper() in attributes.values
    }
    sizes = {len(rows) for rows in found.values()}
    if len(sizes) != 1:
        attributes.refuse("has no TRANSLATION, ROTATION or SCALE, or of different lengths")
    (count,) = sizes
    given = [found.get(key, np.tile(default, (count, 1))) for key, default in _DEFAULTS.items()]
    return _matrices(given, attributes)


def _matrices(given: list[Floats], user: Item) -> Floats:
    """Return matrices (N, 4, 4) of translations, quaternions and scales."""
    translations, quaternions, scales = given
    norms = np.linalg.norm(quaternions, axis=1, keepdims=True)
    if not (np.isfinite(norms) & (norms > 0)).all():
        user.refuse("has a rotation that is no quaternion of length 1")
    rotations = of_unit_quaternions((quaternions / norms)[:, [3, 0, 1, 2]])
    found = np.tile(np.eye(4), (len(scales), 1, 1))
    found[:, :3, :3] = rotations * scales[:, np.newaxis]
    found[:, :3, 3] = translations
    return found


def _joints(document: Document, node: Item, world: dict[int, Placement]) -> Floats:
    """Return what the joints of a node's skin do to its vertices: affine maps (J, 3, 4)."""
    skin = document.item("skin", node.whole("skin"), node)
    numbers = skin.listed("joints", int)
    if not numbers or not world.keys() >= {*numbers}:
        skin.refuse(f"has the joints {quoted(numbers)}, which are no nodes of the scene")
    found = np.stack([world[number].matrix for number in numbers])
    if "inverseBindMatrices" in skin.values:
        columns = document.accessor(skin, "inverseBindMatrices", "MAT4")[: len(numbers)]
        if len(columns) < len(numbers):
            skin.refuse(f"has {len(columns)} inverseBindMatrices for {len(numbers)} joints")
        found = found @ columns.reshape(-1, 4, 4).transpose(0, 2, 1)
    return found[:, :3]


def _posed(document: Document, one: MeshPrimitive, joints: Floats) -> MeshPrimitive:
    """Return a primitive moved by joints; normals of what they mirror stay outward."""
    attributes, faces, count = one.attributes, one.faces, len(one.vertices)
    blend, k = np.zeros((count, 3, 4)), 0
    while not k or f"JOINTS_{k}" in attributes.values:
        numbers = document.accessor(attributes, f"JOINTS_{k}", "VEC4", count, UNSIGNED).astype(np.int64)
        weights = document.accessor(attributes, f"WEIGHTS_{k}", "VEC4", count)
        if numbers.max(initial=0) >= len(joints):
            attributes.refuse(f"uses joint {numbers.max()}, there are {len(joints)}, from 0 on")
        for number, weight in zip(numbers.T, weights.T, strict=True):
            blend += weight[:, np.newaxis, np.newaxis] * joints[number]
        k += 1
    x, y, z = one.vertices.T[:, :, np.newaxis]
    moved = blend[:, :, 0] * x + blend[:, :, 1] * y + blend[:, :, 2] * z + blend[:, :, 3]
    mirrored = _mirrored(blend[:, :, :3])[faces[:, :1]]
    return one._replace(vertices=moved, faces=np.where(mirrored, faces[:, ::-1], faces))


def _mesh(colors: GltfColors, mesh: Item, weights: list[float]) -> list[MeshPrimitive]:
    """Return the triangles of each primitive of a mesh, with weights of its morph targets."""
    document, skipped, found = colors.document, colors.skipped, list[MeshPrimitive]()
    for primitive in mesh.children("primitives", "primitive"):
        mode = primitive.whole("mode", _TRIANGLES)
        if mode in COUNTED:
            skipped[COUNTED[mode]] += 1
            continue
        attributes = primitive.child("attributes")
        if "POSITION" not in attributes.values:
            skipped["primitives without POSITION"] += 1
            continue
        number = attributes.whole("POSITION")
        is_draco = DRACO in primitive.child("extensions").values
        if is_draco and "bufferView" not in document.item("accessor", number, attributes).values:
            primitive.refuse(f"is compressed by {DRACO}, which raybox does not read", "export it without")
        vertices = document.accessor(attributes, "POSITION", "VEC3")
        corners = np.arange(len(vertices))
        if "indices" in primitive.values:
            given = document.accessor(primitive, "indices", "SCALAR", codes=UNSIGNED)
            corners = given.ravel().astype(np.int64)
        if corners.size and corners.max() >= len(vertices):
            primitive.refuse(f"uses vertex {corners.max()}, there are {len(vertices)}, from 0 on")
        for weight, target in zip(weights, primitive.children("targets", "target"), strict=False):
            if weight and "POSITION" in target.values:
                moves = document.accessor(target, "POSITION", "VEC3", len(vertices))
                vertices = vertices + float(str(weight)) * moves
        faces = _faces(primitive, mode, corners)
        own = colors.of_faces(primitive, len(vertices), faces)
        found.append(MeshPrimitive(vertices, faces, attributes, own))
    return found


def _faces(primitive: Item, mode: int, corners: Ints) -> Ints:
    """Return the triangles of the corners of a primitive."""
    if mode == _STRIP:
        return strip_triangles(corners)
    if mode == _FAN:
        inner = corners[1:]
        return np.stack([np.broadcast_to(corners[:1], inner[1:].shape), inner[:-1], inner[1:]], axis=-1)
    if mode != _TRIANGLES:
        primitive.refuse(f"has mode {mode}, which is none of glTF")
    if len(corners) % 3:
        primitive.refuse(f"has {len(corners)} corners, which are no triangles")
    return corners.reshape(-1, 3)


def _placed(name: str, mesh: list[MeshPrimitive], matrices: Floats) -> MeshPart:
    """Return the instances of a mesh; normals of mirrored ones stay outward."""
    mirrored = _mirrored(matrices[:, :3, :3])[:, np.newaxis, np.newaxis]
    points, triangles, first = [np.zeros((0, 3))], [np.zeros((0, 3), np.int64)], 0
    columns = matrices[:, :3, :, np.newaxis]
    for (x, y, z), faces in ((one.vertices.T, one.faces) for one in mesh):
        moved = columns[:, :, 0] * x + columns[:, :, 1] * y + columns[:, :, 2] * z + columns[:, :, 3]
        points.append(moved.transpose(0, 2, 1).reshape(-1, 3))
        starts = first + len(x) * np.arange(len(matrices))[:, np.newaxis, np.newaxis]
        triangles.append((np.where(mirrored, faces[:, ::-1], faces) + starts).reshape(-1, 3))
        first += len(points[-1])
    own = [None if one.colors is None else np.tile(one.colors, (len(matrices), 1)) for one in mesh]
    colors = joined_colors(own, [len(matrices) * len(one.faces) for one in mesh])
    return MeshPart(name, np.concatenate(points), np.concatenate(triangles), colors=colors)


def _mirrored(maps: Floats) -> Bools:
    """Return which linear maps (N, 3, 3) have a negative determinant."""
    exponents = np.frexp(np.abs(maps).max(axis=1, keepdims=True, initial=0.0))[1]
    x, y, z = np.moveaxis(np.ldexp(maps, -exponents), 2, 0)  # columns of lengths about 1: products are finite
    found: Bools = (np.cross(x, y) * z).sum(axis=-1) < 0
    return found


def announced(path: Path) -> Announced:
    """Return the number of triangles of all nodes and instances: several may show one mesh."""
    document, triangles = Document(path), 0
    for number, placement in _world(document).items():
        node = document.items["node"][number]
        if "mesh" not in node.values or not placement.is_visible:
            continue
        instances = node.child("extensions").child(INSTANCES).child("attributes")
        copies = max(_counts(document, instances, *map(str.upper, _DEFAULTS)), default=1)
        for one in document.item("mesh", node.whole("mesh"), node).children("primitives", "primitive"):
            vertices = one.child("attributes")
            corners = max(_counts(document, one, "indices") or _counts(document, vertices, "POSITION") or [0])
            is_list = one.whole("mode", _TRIANGLES) == _TRIANGLES
            triangles += copies * (corners // 3 if is_list else corners)
    return Announced(triangles)


def _counts(document: Document, user: Item, *keys: str) -> list[int]:
    """Return the lengths of those accessors of an object that are there."""
    numbers = [user.whole(key) for key in keys if key in user.values]
    return [document.item("accessor", number, user).whole("count") for number in numbers]
