"""What a ray does not hit: one primitive, or all of one object, exactly and without an epsilon."""

from typing import Any, NamedTuple

import numpy as np

from raybox import validation
from raybox.errors import InvalidInput
from raybox.geometry import InstanceRows
from raybox.geometry.rows import NO_EXCLUDED
from raybox.hits import Hits
from raybox.hits.hit_ids import SceneRows
from raybox.queries.query import ExcludeInput, ExcludeObjectInput
from raybox.validation import ArrayInput, Bools, Ints, freeze

_NONE = -1
_WITH_HITS = "Pass the hits of the query before"


class Exclusion(NamedTuple):
    """What rays do not hit, and of each geometry the owners of its primitives."""

    excluded: Ints = NO_EXCLUDED
    """(0,), (1,) or (N,): hit ids, or numbers of owners; -1: none"""
    owners: tuple[Ints, ...] = ()
    """none: each primitive is its own, by its hit id"""


def exclusion_of(
    exclude: ExcludeInput, exclude_object: ExcludeObjectInput, rows: SceneRows, shape: tuple[int, ...]
) -> Exclusion:
    """Return what rays of a shape do not hit."""
    if exclude_object is None:
        return Exclusion(_primitives(exclude, rows, shape))
    if exclude is None:
        return _objects(exclude_object, rows, shape)
    raise InvalidInput(
        "give exclude, a primitive for each ray, or exclude_object, an object for each; got both. Leave one "
        "out: an object has all of its primitives."
    )


def _primitives(exclude: Any, rows: SceneRows, shape: tuple[int, ...]) -> Ints:
    """Return the hit id of what each ray does not hit."""
    names = ["geometry", "index", "primitive"]
    if isinstance(exclude, Hits):
        exclude = exclude.geometry, exclude.index, exclude.primitive
    elif len(rows.parts) == 1 and not isinstance(rows.parts[0], InstanceRows):
        exclude, names = (0, exclude, _NONE), ["", "exclude", ""]
    elif not isinstance(exclude, tuple) or len(exclude) != 3:
        raise InvalidInput(
            "exclude must be Hits, or (geometry, index, primitive), in a scene of Instances or of a list, "
            f"where an index alone names no primitive; got {type(exclude).__name__}. {_WITH_HITS}: "
            "exclude=hits."
        )
    arrays = [_spread(one, name, shape) for one, name in zip(exclude, names, strict=True)]
    geometry, index, primitive = np.broadcast_arrays(*arrays)
    named, count = index != _NONE, len(rows.parts)
    _require(~named | ((geometry >= 0) & (geometry < count)), geometry, names[0], f"from 0 to {count - 1}")
    excluded = np.full(index.shape, _NONE, np.int64)
    for k, (part, start, size) in enumerate(zip(rows.parts, rows.starts, rows.sizes, strict=True)):
        inner = part.size if isinstance(part, InstanceRows) else 1
        own = named & (geometry == k)
        i, j = index[own], primitive[own] if inner > 1 else np.zeros(1, np.int64)
        _require((i >= 0) & (i < size), i, names[1], f"-1, or from 0 to {size - 1}")
        _require((j >= 0) & (j < inner), j, names[2], f"from 0 to {inner - 1}")
        excluded[own] = start + i * inner + j
    freeze(excluded)
    return excluded


def _objects(exclude_object: Any, rows: SceneRows, shape: tuple[int, ...]) -> Exclusion:
    """Return the number of the object that each ray does not hit, among those of all geometries."""
    owners, starts, end = list[Ints](), list[int](), 0
    for part, size, objects in zip(rows.parts, rows.sizes, rows.objects, strict=True):
        numbers = np.arange(size) if objects.numbers is None else objects.numbers
        if isinstance(part, InstanceRows) or (objects.numbers is None and len(rows.parts) == 1):
            raise InvalidInput(
                "exclude_object needs a Mesh with objects: of other geometries each row is one, of Instances "
                "each copy. Name what a ray leaves by exclude=, a row or hits."
            )
        owners.append(numbers + end)
        starts.append(end)
        end += objects.count(size)
    if isinstance(exclude_object, Hits):
        geometry, number = exclude_object.geometry, exclude_object.object
    elif len(rows.parts) == 1:
        geometry, number = np.zeros((), np.int64), exclude_object
    else:
        raise InvalidInput(
            "exclude_object must be Hits in a scene of a list, where a number alone names no object; got "
            f"{type(exclude_object).__name__}. {_WITH_HITS}: exclude_object=hits."
        )
    geometry, number = (_spread(one, "exclude_object", shape) for one in (geometry, number))
    excluded = np.where(number == _NONE, _NONE, number + np.array(starts)[np.maximum(geometry, 0)])
    _require((number >= _NONE) & (excluded < end), number, "exclude_object", f"-1, or from 0 to {end - 1}")
    freeze(excluded, *owners)
    return Exclusion(excluded, tuple(owners))


def _spread(values: ArrayInput, name: str, shape: tuple[int, ...]) -> Ints:
    return validation.spread(validation.integers(values, name), name, shape)


def _require(valid: Bools, numbers: Ints, name: str, rule: str) -> None:
    if not valid.all():
        validation.refuse_rows(~valid, f"{name} must be {rule}", {name: numbers}, "ray", "Use -1 for none")
