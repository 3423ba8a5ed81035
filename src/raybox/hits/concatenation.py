"""`concatenate`: rays, boxes, meshes or hits of one kind as one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

import numpy as np

from raybox.compiler.float_environment import in_default_environment
from raybox.errors import InvalidInput
from raybox.geometry import Boxes, Mesh, Rays
from raybox.geometry import boxes as box_lists
from raybox.geometry import mesh as meshes
from raybox.geometry.array_container import equal_values
from raybox.geometry.file_facts import joined_facts
from raybox.geometry.labels import joined_attributes, with_facts
from raybox.hits.all_hits import AllHits
from raybox.hits.hit_ids import Source
from raybox.hits.hits import Hits
from raybox.validation import Array

C = TypeVar("C", Rays, Boxes, Mesh, Hits, AllHits)


@in_default_environment
def concatenate(parts: Sequence[C]) -> C:
    """Return rays, boxes, meshes or hits of one kind as one, in their order.

    Parameters
    ----------
    parts : sequence of Rays, Boxes, Mesh, Hits or AllHits
        One at least, all of one kind and D. Rays and hits join along the first axis of their shapes, whose
        other axes must agree; hits must be of one scene, whole or in parts.

    Returns
    -------
    Rays, Boxes, Mesh, Hits or AllHits
        Numbers of objects of a mesh count through the objects of all. Ids and labels are joined; a label that
        a part lacks is missing there.

    Raises
    ------
    InvalidInput
        If there are no parts, kinds, shapes or scenes differ, some parts have ids and others none, or a label
        is of different kinds.

    Examples
    --------
    >>> import raybox as rb
    >>> boxes = rb.Boxes([[0, 0]], [[1, 1]], ids=["a"]), rb.Boxes([[2, 0]], [[3, 1]], ids=["b"])
    >>> rb.concatenate(boxes).ids
    array(['a', 'b'], dtype=object)
    >>> scene, rays = rb.Scene(boxes[0]), rb.Rays([[0.5, 5], [9, 5]], [0, -1])
    >>> rb.concatenate([scene.nearest(rays), scene.nearest(rays[:1])]).index
    array([ 0, -1,  0])
    """
    given = list(parts)
    kinds = {type(part) for part in given}
    if len(kinds) != 1 or (kind := kinds.pop()) not in _JOINERS:
        found = ", ".join(sorted({type(part).__name__ for part in given})) or "none"
        raise InvalidInput(
            f"concatenate joins a list of Rays, Boxes, Mesh, Hits or AllHits, of one kind; got {found}. "
            "A Scene takes a list of several kinds."
        )
    return cast("C", _JOINERS[kind](given))


def _check_spaces(parts: Sequence[Any]) -> None:
    if len(spaces := {part.ndim_space for part in parts}) > 1:
        raise InvalidInput(
            f"concatenate needs parts of the same D; got {sorted(spaces)}. Add or drop a coordinate."
        )


def _joined(arrays: Sequence[Array]) -> Any:
    """Return arrays joined along the first axis."""
    if len({values.shape[1:] for values in arrays}) > 1 or any(not values.ndim for values in arrays):
        shapes = ", ".join(str(values.shape) for values in arrays)
        raise InvalidInput(
            f"concatenate joins along the first axis, and other axes must agree; got shapes {shapes}. "
            "Reshape them first: rays.reshape(-1)."
        )
    return np.concatenate(arrays)


def _rays(parts: Sequence[Rays]) -> Rays:
    _check_spaces(parts)
    t_min = _joined([part.t_min for part in parts])  # checks the shapes, without the axis of coordinates
    origins = np.ascontiguousarray(np.concatenate([part.origins for part in parts]))  # of views, too
    directions = np.concatenate([part.directions for part in parts])
    joined = Rays._of(origins, directions, t_min, _joined([part.t_max for part in parts]))
    facts = joined_facts([part._facts for part in parts])
    return with_facts(joined, facts.skipped, units=facts.units, up=facts.up)


def _boxes(parts: Sequence[Boxes]) -> Boxes:
    _check_spaces(parts)
    lower = np.concatenate([part.lower for part in parts])
    upper = np.concatenate([part.upper for part in parts])
    rows = [len(part) for part in parts]
    attributes = joined_attributes([part._attributes for part in parts], rows, rows)
    return box_lists.restored(lower, upper, attributes)


def _meshes(parts: Sequence[Mesh]) -> Mesh:
    counts = [meshes.object_count(part) for part in parts]
    starts = np.cumsum([0, *(len(part.vertices) for part in parts)])
    first = np.cumsum([0, *counts])
    faces = np.concatenate([part.faces + start for part, start in zip(parts, starts[:-1], strict=True)])
    objects = None
    if any(meshes.stored_objects(part) is not None for part in parts):
        objects = np.concatenate([part.objects + k for part, k in zip(parts, first[:-1], strict=True)])
    vertices = np.concatenate([part.vertices for part in parts])
    rows = [len(part) for part in parts]
    attributes = joined_attributes([part._attributes for part in parts], counts, rows)
    return meshes.restored(vertices, faces, objects, attributes)


def _hits(parts: Sequence[Hits]) -> Hits:
    source = _common(parts)
    hit_id, t = _joined([part._hit_id for part in parts]), _joined([part._t for part in parts])
    usual = [part._source for part in parts if part._source.position is None and part._source.row == 1]
    if (
        len(usual) == len(parts)
        and len({(one.inner, one.column) for one in usual}) == 1
        and not source.column
    ):
        rays = _rays([cast("Rays", one.rays) for one in usual])
        return Hits(hit_id, t, source._replace(rays=rays))
    rays = _rays([cast("Rays", part._source.rays).reshape(-1)[part._ray_of] for part in parts])
    return Hits(hit_id, t, source._replace(rays=rays, inner=1, row=1, column=0, position=None))


def _all_hits(parts: Sequence[AllHits]) -> AllHits:
    source = _common(parts)._replace(rays=_rays([part._rays for part in parts]))
    starts = np.cumsum([0, *(len(part._hit_id) for part in parts)])
    offsets = [part.offsets[1:] + start for part, start in zip(parts, starts[:-1], strict=True)]
    hit_id, t = (np.concatenate([getattr(part, name) for part in parts]) for name in ("_hit_id", "_t"))
    return AllHits(np.concatenate([np.zeros(1, np.int64), *offsets]), hit_id, t, source)


def _common(parts: Sequence[Hits] | Sequence[AllHits]) -> Source:
    """Return the source of hits of rays and of one scene."""
    sources = [part._source for part in parts]
    first = sources[0]
    if not all(isinstance(source.rays, Rays) for source in sources):
        raise InvalidInput(
            "concatenate joins hits of rays; got those of a sweep. Join their arrays: "
            "np.concatenate([hits.t, ...])."
        )
    if not all(_same_rows(source.scene, first.scene) for source in sources):
        raise InvalidInput(
            "concatenate joins hits of one scene; got those of several, whose numbers mean other rows. "
            "Join their tables: pandas.concat([hits.to_pandas(), ...])."
        )
    return first


def _same_rows(one: Any, other: Any) -> bool:
    """Return whether two tuples have equal arrays; mostly they are one and the same."""
    if one is other:
        return True
    if type(one) is not type(other) or len(one) != len(other):
        return False
    pairs = zip(one, other, strict=True)
    return all(
        a is b or (_same_rows(a, b) if isinstance(a, tuple) else equal_values([a], [b])) for a, b in pairs
    )


_JOINERS: dict[type, Callable[..., Any]] = {
    Rays: _rays,
    Boxes: _boxes,
    Mesh: _meshes,
    Hits: _hits,
    AllHits: _all_hits,
}
