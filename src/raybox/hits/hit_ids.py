"""Map a hit id to its geometry, instance and row, and compute derived fields of hits.

A hit id is one number for each primitive of a scene: it counts through the rows of the first geometry, then
through those of the next. In `Instances` it counts through the first instance's rows, then through the next
one's. -1 is a miss.
"""

from collections.abc import Callable, Mapping
from math import prod
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from raybox.errors import InvalidInput
from raybox.geometry import (
    NO_OBJECTS,
    BoxRows,
    Ids,
    InstanceRows,
    MovingBoxes,
    ObjectRows,
    PrimitiveRows,
    RayRows,
    Rays,
    with_scratch,
)
from raybox.geometry.labels import shown_names
from raybox.geometry.object_rows import combined, label_type, shared_dtype
from raybox.geometry.rows import in_space
from raybox.hits.path_lengths import distances, write_exactly
from raybox.hits.point_kernel import write_points
from raybox.primitives import exact_table
from raybox.primitives.exact_table import FirstContact, instance_contact
from raybox.validation import Array, Floats, Ints, freeze

_ZERO, _ANY_ORIGIN = np.zeros(1), np.zeros((1, 3))
freeze(_ZERO, _ANY_ORIGIN)
_OBJECT = np.dtype(object)
H = TypeVar("H")
LabelColumns: TypeAlias = Mapping[str, NDArray[Any]]
"""Labels of hits by name."""
A = TypeVar("A", bound=Array)


class PrimitiveIds(NamedTuple):
    """Rows of a geometry, or instances and rows of the inner geometry; -1 for a miss."""

    index: Ints  # type: ignore[assignment]  # hides the method of tuples
    primitive: Ints


class SceneRows(NamedTuple):
    """The geometries whose primitives hit ids count."""

    parts: tuple[PrimitiveRows, ...]  # rows of each geometry, for kernels
    starts: tuple[int, ...] = (0,)  # first hit id of each geometry
    sizes: tuple[int, ...] = ()  # number of primitives, or instances, of each geometry; of all hits of rays
    objects: tuple[ObjectRows, ...] = (NO_OBJECTS,)  # of the primitives of each geometry

    @property
    def ids_are_rows(self) -> bool:
        """Whether hit ids are the rows of the only geometry."""
        parts = self.parts
        return len(parts) == 1 and type(parts[0]) is not InstanceRows

    def geometry_of(self, hit_id: Ints) -> Ints:
        """Return the geometry's number for each hit id; -1 for a miss."""
        if len(self.parts) == 1:
            return frozen(np.minimum(hit_id, 0))
        return frozen(np.searchsorted(self.starts, hit_id, side="right") - 1)

    def primitives_of(self, hit_id: Ints) -> PrimitiveIds:
        """Return index and primitive for each hit id."""
        if len(self.parts) == 1:
            return _index_and_primitive(self.parts[0], hit_id)
        geometry = self.geometry_of(hit_id)
        index, primitive = np.full(hit_id.shape, -1, np.int64), np.full(hit_id.shape, -1, np.int64)
        for k, rows in enumerate(self.parts):
            own = geometry == k
            index[own], primitive[own] = _index_and_primitive(rows, hit_id[own] - self.starts[k])
        return PrimitiveIds(frozen(index), frozen(primitive))

    def ids_of(self, hit_id: Ints) -> Ids:
        """Return the id of the object of each hit id.

        None for a miss, and of a geometry without ids.
        """
        if not self.has_ids:
            raise InvalidInput(
                "ids need a geometry with ids; this one has none. Pass them, Boxes(lower, upper, ids=names), "
                "or load a file that has them."
            )
        ids: Ids = self._of_objects(hit_id, lambda objects, *rows: objects.ids(*rows))  # type: ignore[assignment]
        return ids

    def objects_of(self, hit_id: Ints) -> Ints:
        """Return the object of each hit id, of its geometry; -1 for a miss."""
        index = self.primitives_of(hit_id).index
        if len(self.objects) == 1:
            return frozen(self.objects[0].of_rows(index))
        geometry, found = self.geometry_of(hit_id), index.copy()
        for k, objects in enumerate(self.objects):
            own = geometry == k
            found[own] = objects.of_rows(index[own])
        return frozen(found)

    def _of_objects(
        self,
        hit_id: Ints,
        values_of: Callable[[ObjectRows, Ints, Ints], Array | None],
        dtype: np.dtype[Any] = _OBJECT,
    ) -> Array:
        """Return a value of the object of each hit id; of several geometries, of this dtype."""
        index, primitive = self.primitives_of(hit_id)
        if len(self.objects) == 1:
            values = values_of(self.objects[0], index, primitive)
            return frozen(np.full(hit_id.shape, None) if values is None else values)
        geometry = self.geometry_of(hit_id).reshape(-1)
        index, primitive = index.reshape(-1), primitive.reshape(-1)
        parts = []
        for k, objects in enumerate(self.objects):
            own = np.flatnonzero(geometry == k)
            parts.append((own, values_of(objects, index[own], primitive[own])))
        return frozen(combined(parts, hit_id.size, dtype).reshape(hit_id.shape))

    @property
    def has_ids(self) -> bool:
        """Whether a geometry has ids."""
        return any(objects.has_ids for objects in self.objects)

    @property
    def label_names(self) -> list[str]:
        """The names of the labels of all geometries."""
        return list(dict.fromkeys(name for objects in self.objects for name in objects.label_names))

    def label_of(self, hit_id: Ints, name: str) -> NDArray[Any]:
        """Return the label of the object of each hit id.

        It is missing for a miss, and of a geometry without that label.
        """
        if name not in (known := self.label_names):
            found = shown_names(known)
            raise InvalidInput(
                f"there is no label {name!r}; labels of this geometry: {found}. Name one of them."
            )
        dtype = shared_dtype([objects.column(name) for objects in self.objects])
        # of several geometries, a miss must not change the dtype
        dtype = dtype if dtype.kind == "f" else _OBJECT
        return self._of_objects(hit_id, lambda objects, *rows: objects.label(name, *rows), dtype)

    def label_type(self, name: str) -> type:
        """Return the type of a label's values in all geometries."""
        return label_type(self.objects, name)


class Source(NamedTuple):
    """Rays and geometries of the hits of a query.

    Hit k is of ray ``(k // inner) * row + (k % inner) * column``.
    """

    rays: Rays | MovingBoxes
    scene: SceneRows
    inner: int = 1
    row: int = 1
    column: int = 0
    position: Ints | None = None  # k of each hit, if these are some of a query's hits

    @property
    def parts(self) -> tuple[PrimitiveRows, ...]:
        """Rows of each geometry, for kernels."""
        return self.scene.parts

    @property
    def starts(self) -> tuple[int, ...]:
        """The first hit id of each geometry."""
        return self.scene.starts

    @property
    def objects(self) -> tuple[ObjectRows, ...]:
        """The objects of the primitives of each geometry."""
        return self.scene.objects

    def positions(self, size: int) -> Ints:
        """Return k of each hit, its number among all hits of the query."""
        return np.arange(size, dtype=np.int64) if self.position is None else self.position

    def ray_of(self, size: int) -> Ints:
        """Return the number of each hit's ray."""
        k = self.positions(size)
        if self.inner == 1:  # a division of integers takes as long as all of a hit's point
            return k if self.row == 1 else k * self.row
        return (k // self.inner) * self.row + (k % self.inner) * self.column

    def freeze(self) -> None:
        """Set the arrays read-only, of a source that was pickled or copied."""
        freeze_all((self.scene, self.position))


def source_of(rays: Rays, scene: SceneRows) -> Source:
    """Return the source of one hit for each ray, in half the time of `Source`."""
    return tuple.__new__(Source, (rays, scene, 1, 1, 0, None))


def _index_and_primitive(rows: PrimitiveRows, hit_id: Ints) -> PrimitiveIds:
    """Return index and primitive for hit ids of one geometry: both are the id except for instances."""
    if not isinstance(rows, InstanceRows):
        return PrimitiveIds(hit_id, hit_id)
    size = max(1, rows.size)
    missed = hit_id < 0
    return PrimitiveIds(frozen(hit_id // size), frozen(np.where(missed, -1, hit_id % size)))


def frozen(values: A) -> A:
    """Return an array, read-only."""
    array: Any = np.asarray(values)  # NumPy returns a scalar for a single ray
    freeze(array)
    return array  # type: ignore[no-any-return]


def restored(kind: Callable[..., H], source: Source, *arrays: Array) -> H:
    """Return hits that were pickled or copied, read-only again."""
    source.freeze()
    return kind(*arrays, source)


def freeze_all(values: tuple[object, ...]) -> None:
    """Set all arrays in nested tuples read-only."""
    for value in values:
        if isinstance(value, tuple):
            freeze_all(value)
        elif isinstance(value, np.ndarray):
            freeze(value)


def spans(source: Source, ray_of: Ints, hit_id: Ints) -> tuple[Floats, Floats]:
    """Return t_enter and t_exit of each hit; NaN for a miss."""
    near, far = np.full(hit_id.size, np.nan), np.full(hit_id.size, np.nan)
    derive(source, ray_of, hit_id, "spans_of", near, far)
    freeze(near, far)
    return near, far


def derive(source: Source, ray_of: Ints, hit_id: Ints, loop: str, *out: Floats) -> None:
    """Write a derived field of hits into `out`; rows of misses are left unchanged.

    loop: name of a compiled loop of `raybox.primitives.pairs`, or a field of `derive_exactly`.
    """
    rays, ray_of = _only_rays(source.rays, ray_of)
    if len(source.parts) == 1:
        _derive(rays, source.parts[0], (ray_of, hit_id), loop, *out)
        return
    for rows, start, stop in zip(source.parts, source.starts, (*source.starts[1:], 2**63 - 1), strict=True):
        own = np.flatnonzero((hit_id >= start) & (hit_id < stop))
        parts = [array[own] for array in out]
        _derive(rays, rows, (ray_of[own], hit_id[own] - start), loop, *parts)
        for array, part in zip(out, parts, strict=True):
            array[own] = part


def derive_exactly(source: Source, ray_of: Ints, hit_id: Ints, field: str, some: Ints, out: Floats) -> None:
    """Write a derived field of some hits into `out`, by exact times: those of other hits are kept.

    field: lengths_of, points_of or distances_of. Primitives without exact times are left unchanged.
    """
    part = out[some]
    derive(source, ray_of[some], hit_id[some], field, part)
    out[some] = part


def distances_of(source: Source, ray_of: Ints, hit_id: Ints, t: Floats) -> Floats:
    """Return t times the direction's length for each hit; +inf for a miss."""
    rays, hit = source.rays, hit_id >= 0
    rows = RayRows(_ANY_ORIGIN, in_space(rays.directions), _ZERO, _ZERO)
    found, lost = distances(rows, ray_of, np.where(hit, t, 0.0))
    lost = lost[hit[lost]]
    if lost.size and isinstance(rays, Rays):
        derive_exactly(source, ray_of, hit_id, "distances_of", lost, found)
    found[~hit] = np.inf
    return found


def points_of(source: Source, ray_of: Ints, hit_id: Ints, t: Floats) -> Floats:
    """Return the point o + t d of each hit, shape (hits, D); NaN for a miss."""
    rays = source.rays
    rows = rays._rows() if isinstance(rays, Rays) else _centre_rows(rays)
    points, inexact = np.empty((hit_id.size, rays.ndim_space)), np.empty(hit_id.size, np.int64)
    count = write_points(rows, ray_of, hit_id, t, points, inexact)
    if count and isinstance(rays, Rays):
        derive_exactly(source, ray_of, hit_id, "points_of", inexact[:count], points)
    return points


def _centre_rows(boxes: MovingBoxes) -> RayRows:
    """Return the lines along which the centres of boxes move."""
    return RayRows(in_space(boxes.origins), in_space(boxes.directions), _ZERO, _ZERO)


def normals_of(source: Source, ray_of: Ints, hit_id: Ints) -> Floats:
    """Return the unit normal at the first contact of each hit, shape (hits, D); NaN for a miss."""
    normals = np.empty((hit_id.size, 3))
    if len(source.parts) > 1:
        normals[...] = np.nan  # of misses, which are of no geometry
    derive(source, ray_of, hit_id, "normals_of", normals)
    return frozen(np.ascontiguousarray(normals[:, : source.rays.ndim_space]))


def _only_rays(rays: Rays | MovingBoxes, ray_of: Ints) -> tuple[Rays | MovingBoxes, Ints]:
    """Return the rays of some hits and their numbers; all rays where kernels read them without a copy."""
    if not isinstance(rays, Rays) or rays.ndim_space == 3 or ray_of.size >= prod(rays.shape):
        return rays, ray_of
    return rays.reshape(-1)[ray_of], np.arange(ray_of.size, dtype=np.int64)


def _derive(
    rays: Rays | MovingBoxes, rows: PrimitiveRows, hits: tuple[Ints, Ints], loop: str, *out: Floats
) -> None:
    """Write a derived field for hits of one geometry; hits: numbers of rays and of primitives."""
    if isinstance(rays, Rays) and loop in _EXACT:
        _EXACT[loop](rays._rows(), rows, hits, *out)
        return
    from raybox.primitives import box_spans, pairs

    ray_of, number = hits
    if loop == "spans_of" and isinstance(rows, BoxRows) and isinstance(rays, Rays):
        box_spans.write_spans(rays._rows(), rows, ray_of, number, *out)  # eight by eight
    else:
        getattr(pairs, loop)(rays._rows(), with_scratch(rows, 0), ray_of, number, *out)
    if isinstance(rays, MovingBoxes) or not isinstance(rows, InstanceRows):
        return
    if loop == "weights_of" and isinstance(rows.rows, BoxRows):
        return
    undecided = np.isnan(np.column_stack(out)).any(axis=1)
    for k in np.flatnonzero((number >= 0) & undecided):
        contact = instance_contact(rows, exact_table.ray_at(rays._rows(), ray_of[k]), number[k])
        assert contact is not None  # it is a hit
        _WRITERS[loop](contact, k, *out)


def _set_span(contact: FirstContact, k: int, near: Floats, far: Floats) -> None:
    near[k], far[k] = contact.crossing.t_enter, contact.crossing.t_exit


def _set_normal(contact: FirstContact, k: int, out: Floats) -> None:
    out[k] = contact.normal


def _set_weights(contact: FirstContact, k: int, out: Floats) -> None:
    out[k] = contact.weights


def _write_points(rays: RayRows, rows: PrimitiveRows, hits: tuple[Ints, Ints], points: Floats) -> None:
    """Write the points of first contact by exact times; those without exact times stay."""
    for k, (ray, number) in enumerate(zip(*(numbers.tolist() for numbers in hits), strict=True)):
        point = exact_table.contact_point(rows, exact_table.ray_at(rays, ray), number)
        if point is not None:
            points[k] = point[: points.shape[1]]


def _write_distances(rays: RayRows, rows: PrimitiveRows, hits: tuple[Ints, Ints], distances: Floats) -> None:
    """Write the distances of first contacts by exact times; those without exact times stay."""
    for k, (ray, number) in enumerate(zip(*(numbers.tolist() for numbers in hits), strict=True)):
        distance = exact_table.contact_distance(rows, exact_table.ray_at(rays, ray), number)
        if distance is not None:
            distances[k] = distance


_EXACT: dict[str, Callable[[RayRows, PrimitiveRows, tuple[Ints, Ints], Floats], None]] = {
    "distances_of": _write_distances,
    "lengths_of": write_exactly,
    "points_of": _write_points,
}
_WRITERS: dict[str, Any] = {"spans_of": _set_span, "normals_of": _set_normal, "weights_of": _set_weights}
