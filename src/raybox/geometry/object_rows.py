"""The objects of a geometry's primitives, with their ids and labels."""

from collections.abc import Sequence, Sized
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox import validation
from raybox.errors import InvalidInput
from raybox.geometry.instances import Instances
from raybox.geometry.labels import NO_ATTRIBUTES, Attributes, HasAttributes
from raybox.geometry.mesh import Mesh, stored_objects
from raybox.geometry.row_ids import Ids
from raybox.validation import Bools, Ints, MaskInput, freeze


class ObjectRows(NamedTuple):
    """The object of each primitive of a geometry, with ids and labels."""

    numbers: Ints | None = None
    """(F,): the object of each row; None if each row is an object"""
    attributes: Attributes = NO_ATTRIBUTES
    inner: "ObjectRows | None" = None
    """of instances, whose objects are the copies: those of their geometry"""

    def of_rows(self, index: Ints) -> Ints:
        """Return the object of each row; -1 for the row -1."""
        if self.numbers is None or not self.numbers.size:
            return index
        return np.where(index < 0, -1, self.numbers[index])

    @property
    def has_ids(self) -> bool:
        """Whether the objects, or those of the instanced geometry, have ids."""
        return self.attributes.ids is not None or (self.inner is not None and self.inner.has_ids)

    @property
    def label_names(self) -> list[str]:
        """Names of the labels of the objects; without, of those of the instanced geometry."""
        if self.attributes.labels or self.inner is None:
            return list(self.attributes.labels)
        return self.inner.label_names

    def ids(self, index: Ints, primitive: Ints) -> Ids | None:
        """Return the id of each row; None without ids.

        primitive: of instances, the rows of their geometry.
        """
        if self.attributes.ids is None and self.inner is not None:
            return self.inner.ids(primitive, primitive)
        return None if self.attributes.ids is None else taken(self.attributes.ids, self.of_rows(index))

    def count(self, rows: int) -> int:
        """Return the number of objects of a geometry of this many rows."""
        if self.numbers is None:
            return rows
        columns = [] if self.attributes.ids is None else [self.attributes.ids]
        lengths = [len(values) for values in (*columns, *self.attributes.labels.values())]
        return lengths[0] if lengths else int(self.numbers.max(initial=-1)) + 1

    def mask(self, expression: str, rows: int) -> Bools:
        """Return of which rows an expression of labels and ids is true."""
        from raybox.geometry import label_expression

        attributes = self.attributes
        ids = {} if attributes.ids is None else {"id": attributes.ids}
        found = label_expression.mask_of(expression, {**attributes.labels, **ids}, self.count(rows))
        mask = np.array(found) if self.numbers is None else found[self.numbers]
        freeze(mask)
        return mask

    def column(self, name: str) -> NDArray[Any] | None:
        """Return the values of a label, one for each object; None without."""
        if not self.attributes.labels and self.inner is not None:
            return self.inner.column(name)
        return self.attributes.labels.get(name)

    def label(self, name: str, index: Ints, primitive: Ints) -> NDArray[Any] | None:
        """Return the label of each row; None without that label."""
        if not self.attributes.labels and self.inner is not None:
            return self.inner.label(name, primitive, primitive)
        values = self.attributes.labels.get(name)
        return None if values is None else taken(values, self.of_rows(index))


NO_OBJECTS = ObjectRows()
"""Of a geometry whose primitives are the objects, without ids and labels."""


def object_rows(geometry: object) -> ObjectRows:
    """Return the objects of a geometry's rows."""
    if not isinstance(geometry, HasAttributes):
        return NO_OBJECTS
    numbers = stored_objects(geometry) if isinstance(geometry, Mesh) else None
    inner = object_rows(geometry.geometry) if isinstance(geometry, Instances) else None
    return ObjectRows(numbers, geometry._attributes, inner)


def row_mask(where: MaskInput, objects: ObjectRows, rows: int, shape: tuple[int, ...] | None = None) -> Bools:
    """Return a frozen mask of rows, from a mask or an expression."""
    return objects.mask(where, rows) if isinstance(where, str) else validation.mask(where, rows, shape)


def row_masks(
    where: MaskInput | Sequence[MaskInput], geometries: Sequence[Sized], objects: Sequence[ObjectRows] = ()
) -> list[Bools]:
    """Return a frozen mask of rows for each geometry, empty for all rows.

    where: one for each geometry, or an expression or None for all; objects: those of the geometries' rows.
    """
    count = len(geometries)
    if where is None or isinstance(where, str):
        where = [where] * count
    if not isinstance(where, list | tuple) or len(where) != count:
        raise InvalidInput(
            f"where must be a list of {count}, a mask, an expression or None for each geometry of the scene; "
            f"got {type(where).__name__}. Split a long mask: np.split(mask, np.cumsum(lengths)[:-1])."
        )
    rows = objects or [object_rows(one) for one in geometries]
    return [_one_mask(*one, count) for one in zip(where, geometries, rows, strict=True)]


def _one_mask(where: MaskInput, geometry: Sized, objects: ObjectRows, geometries: int) -> Bools:
    """Return the mask of a geometry; errors of an expression name it."""
    try:
        return row_mask(where, objects, len(geometry), getattr(geometry, "shape", None))
    except InvalidInput as error:
        if not isinstance(where, str) or geometries == 1:
            raise
        raise InvalidInput(f"{error} (labels of {geometry!r}; give a list for other masks)") from error


def label_type(objects: Sequence[ObjectRows], name: str) -> type:
    """Return the type of a label's values in all geometries; raise `InvalidInput` for several types."""
    columns = [own.column(name) for own in objects]
    kinds = {kind_of(column) for column in columns if column is not None} - {None}
    if kinds == {int, float}:
        return float
    if len(kinds) > 1:
        raise InvalidInput(
            f"label {name!r} has values of several types in the geometries of this scene. "
            "Use to_dict, or convert them to text."
        )
    return next(iter(kinds), None) or str


def kind_of(column: NDArray[Any]) -> type | None:
    """Return the type of a column's values; None if all are missing."""
    kinds: dict[str, type] = {"f": float, "i": int, "b": bool}
    if column.dtype.kind in kinds:
        return kinds[column.dtype.kind]
    return next((type(value) for value in column if value is not None), None)


def taken(values: NDArray[Any], numbers: Ints) -> NDArray[Any]:
    """Return values by their numbers; a missing one for -1.

    It is NaN among floats, else None, in an array of objects.
    """
    missed = numbers < 0
    if not missed.any():
        return values[numbers]
    if values.dtype.kind != "f":
        values = values.astype(object)
    missing = np.array([np.nan if values.dtype.kind == "f" else None], dtype=values.dtype)
    return np.concatenate([values, missing])[numbers]


def shared_dtype(columns: Sequence[NDArray[Any] | None]) -> np.dtype[Any]:
    """Return a dtype for the values of columns of several geometries, some of which may lack it.

    float64 if all columns are; another dtype if no column lacks and all have it; else object.
    """
    dtypes = {None if column is None else column.dtype for column in columns}
    if dtypes - {None} == {np.dtype(np.float64)}:
        return np.dtype(np.float64)
    found = dtypes.pop() if len(dtypes) == 1 else None
    return np.dtype(object) if found is None else found


def combined(
    parts: Sequence[tuple[NDArray[np.intp], NDArray[Any] | None]], size: int, dtype: np.dtype[Any]
) -> NDArray[Any]:
    """Return values of several geometries as one array, NaN or None where there are none.

    parts: positions in the result, and values there, or None. Of dtypes but float64 and object, every
    position has a value.
    """
    missing = {"f": np.nan, "O": None}.get(dtype.kind, 0)
    result = np.full(size, missing, dtype)
    for positions, values in parts:
        if values is not None:
            result[positions] = values
    return result
