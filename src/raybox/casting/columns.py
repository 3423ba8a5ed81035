"""The columns of an output: those of the results, and of the objects that are hit, with ids and labels."""

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybox.casting import column_kernels
from raybox.casting.arguments import Value
from raybox.casting.scenes import SceneObjects, objects_of
from raybox.errors import InvalidInput
from raybox.geometry import ObjectRows
from raybox.geometry.labels import shown_names
from raybox.geometry.object_rows import label_type
from raybox.hits.file_columns import Column, Columns, RowsOf, Sparse, row_count
from raybox.hits.tables import label_column
from raybox.io.formats.common import checked_texts, require
from raybox.scene import file_queries as table
from raybox.scene.scene import Scene
from raybox.store import checksum
from raybox.store.checksum import Facts
from raybox.validation import Array, Dtype, Ints

if TYPE_CHECKING:
    import pyarrow

QUERIES = table.file_queries()
ALL = "all"
OBJECT, GEOMETRY, PRIMITIVE = "object", "geometry", "primitive"
SLICE_ROWS = 1 << 14  # rows that are laid out at once: a megabyte, which stays in a core's cache
_MAX_EXACT = 2**53

Dtypes: TypeAlias = dict[str, Dtype]
"""The columns of an output, and their dtypes."""


def rows_of(query: str) -> RowsOf:
    """Return what the rows of a query's output are of."""
    return table.columns_of(query).rows


def as_array(column: Column) -> NDArray[Any]:
    """Return a column as an array, with NaN where a sparse one has no number."""
    if isinstance(column, Sparse):
        out = np.empty(len(column))
        column_kernels.expand_sparse(column.there, column.numbers, out)
        return out
    return np.arange(column.start, column.stop, dtype=np.int64) if isinstance(column, range) else column


class OutputSpec(NamedTuple):
    """The columns of an output, and their types."""

    dtypes: Dtypes
    ids: list[str] | None
    query: str = ""
    arrow_types: "dict[str, pyarrow.DataType]" = {}  # noqa: RUF012 - a default that is never written to
    """Of columns that come as Arrow arrays, or as text to write as such."""

    suffix: str = ".csv"

    def with_columns(self, dtypes: Dtypes, arrow_types: "dict[str, pyarrow.DataType]") -> "OutputSpec":
        """Return the same with more columns at the end."""
        return self._replace(dtypes=self.dtypes | dtypes, arrow_types=self.arrow_types | arrow_types)


def row_slices(columns: Columns, spec: OutputSpec, ids: Array | None) -> Iterator[dict[str, Array]]:
    """Yield columns some rows at a time, in the order of the output; ids in place of their numbers.

    ids: those of the objects, and last that of a miss.
    """
    full = {
        name: as_array(column) if isinstance(column, Sparse) else column for name, column in columns.items()
    }
    for start in range(0, row_count(columns), SLICE_ROWS):
        part = {name: as_array(column[start : start + SLICE_ROWS]) for name, column in full.items()}
        if ids is not None and "id" in spec.dtypes:
            part["id"] = ids[part["id" if "id" in part else "index"]]
        yield {name: part[name] for name in spec.dtypes}


class _Named(NamedTuple):
    """Objects of one geometry, and where their ids or labels begin in those of all geometries."""

    objects: ObjectRows
    rows: str = "index"
    """the column of results that numbers their primitives; `PRIMITIVE` for names of what is instanced"""
    start: int = 0


class LabelColumn(NamedTuple):
    """A label of all objects, and last of a miss."""

    values: Any
    """an array, or one of Arrow"""
    dtype: Dtype
    arrow_type: "pyarrow.DataType | None" = None


class ObjectColumns(NamedTuple):
    """The columns of a scene that follow from the primitives of hits."""

    objects: tuple[_Named, ...]
    """of each geometry; none without a column `object`"""
    ids: list[str] | None
    """of all objects that have names"""
    named: tuple[_Named | None, ...]
    """where the ids of each geometry are"""
    after_index: tuple[str, ...]
    """the columns of results after `index`"""
    labeled: tuple[_Named | None, ...] = ()
    labels: dict[str, LabelColumn] = {}  # noqa: RUF012 - a default that is never written to
    """by their names in the output"""

    def with_rows(self, columns: Columns) -> Columns:
        """Return results with the object, the number of the id, and the labels of each row, if of hits."""
        found: dict[str, Any] = {}
        if "index" not in columns:
            return columns
        if self.objects:
            found[OBJECT] = _numbers(self.objects, columns, -1)
        if self.ids is not None:
            found["id"] = _numbers(self.named, columns, len(self.ids))
        if self.labels:
            size = len(next(iter(self.labels.values())).values)
            places = _numbers(self.labeled, columns, size - 1)
            found |= {name: column.values.take(places) for name, column in self.labels.items()}
        return columns | found

    def facts(self) -> Facts:
        """Return what identifies the columns: casts of equal ones resume each other."""
        found: Facts = {}
        if self.objects:
            numbers = [own.objects.numbers for own in self.objects if own.objects.numbers is not None]
            found["objects"] = f"checksum {checksum.of_arrays(*numbers)[:16]}"
        if self.labels:
            texts = (str(value) for column in self.labels.values() for value in column.values.tolist())
            found["labels"] = f"checksum {checksum.of_texts(*self.labels, *texts)[:16]}"
        return found


def _numbers(named: Sequence[_Named | None], columns: Columns, missing: int) -> Ints:
    """Return the number of the object of each row of results, `missing` where there is none."""
    found = np.full(row_count(columns), missing)
    geometry = as_array(columns[GEOMETRY]) if len(named) > 1 else None
    for k, own in enumerate(named):
        if own is not None:
            rows: Any = slice(None) if geometry is None else np.flatnonzero(geometry == k)
            numbers = own.objects.of_rows(as_array(columns[own.rows])[rows])
            found[rows] = np.where(numbers < 0, missing, numbers + own.start)
    return found


def _parts(scene: Scene, query: str) -> list[SceneObjects]:
    """Return the objects of each geometry; for points and boxes, without what is instanced."""
    parts = objects_of(scene)
    if table.columns_of(query).reads == "rays":
        return parts
    return [own._replace(objects=own.objects._replace(inner=None)) for own in parts]


def object_columns(scene: Scene, ids: Sequence[str] | None, query: str) -> ObjectColumns:
    """Return the columns of a scene's objects, without labels.

    ids: of all objects; by default, those of the geometries.
    """
    parts = _parts(scene, query)
    objects = [_Named(own.objects) for own in parts]
    has_object = any(own.objects.numbers is not None for own in parts)
    has_copies = any(own.objects.inner is not None for own in parts)
    there = {OBJECT: has_object, GEOMETRY: len(parts) > 1, PRIMITIVE: has_copies}
    if ids is None:
        named = _places([own.objects for own in parts], _id_count)
        values = [own.objects.attributes.ids for own in named if own is not None]
        names = [name for own in values if own is not None for name in own.tolist()] if values else None
    else:
        starts = np.cumsum([0, *(own.objects.count(own.size) for own in parts)]).tolist()
        named = tuple(own._replace(start=start) for own, start in zip(objects, starts, strict=False))
        names = [*ids]
    return ObjectColumns(
        tuple(objects) if has_object else (),
        None if names is None else checked_texts(names),
        named,
        tuple(name for name, is_there in there.items() if is_there),
    )


def _id_count(objects: ObjectRows) -> int | None:
    return None if objects.attributes.ids is None else len(objects.attributes.ids)


def _label_count(objects: ObjectRows) -> int | None:
    return next((len(values) for values in objects.attributes.labels.values()), None)


def _places(
    parts: Sequence[ObjectRows], count_of: Callable[[ObjectRows], int | None]
) -> tuple[_Named | None, ...]:
    """Return where names of each geometry begin, if they follow one another: its own, or of its copies."""
    found, start = list[_Named | None](), 0
    for own in parts:
        inner = own.inner if count_of(own) is None else None
        holder = own if inner is None else inner
        count = count_of(holder)
        named = _Named(holder, "index" if inner is None else PRIMITIVE, start)
        found.append(None if count is None else named)
        start += count or 0
    return tuple(found)


def spec_of(
    query: str, dimension: int, objects: ObjectColumns, suffix: str, **arguments: Value
) -> OutputSpec:
    """Return the columns of a query's results, those of objects included; labels are not."""
    ids, after_index = objects.ids, objects.after_index
    if rows_of(query) == "primitives":
        after_index = ()
        if not all(own is not None and own.rows == "index" for own in objects.named):
            ids = None  # they are of what is instanced
    dtypes = table.columns_of(query).dtypes(dimension, ids, **arguments)
    names = [new for name in dtypes for new in ((name, *after_index) if name == "index" else (name,))]
    return OutputSpec(
        {name: dtypes.get(name, np.dtype(np.int64)) for name in names}, ids, query, suffix=suffix
    )


def with_labels(
    columns: ObjectColumns, scene: Scene, labels: Sequence[str], spec: OutputSpec
) -> tuple[ObjectColumns, OutputSpec]:
    """Return columns with labels, in types of the output; raise `InvalidInput` where there are none."""
    query = spec.query
    parts = [own.objects for own in _parts(scene, query)]
    if "index" not in spec.dtypes or rows_of(query) == "primitives":
        raise InvalidInput(
            f"labels are of hits; {query!r} has no row for a hit. Leave them out, or take nearest or all."
        )
    places, found = _places(parts, _label_count), dict[str, LabelColumn]()
    for name in chosen_labels(label_names(parts), labels):
        values = [value for own in places if own is not None for value in _values(own.objects, name)]
        typed = _Values(name, label_type(parts, name), values, can_miss=rows_of(query) == "rays")
        found[label_column(name, {*spec.dtypes, *found})] = _TYPED.get(spec.suffix, _array)(typed)
    spec = spec.with_columns(
        {name: column.dtype for name, column in found.items()},
        {name: column.arrow_type for name, column in found.items() if column.arrow_type},
    )
    return columns._replace(labeled=places, labels=found), spec


def label_names(parts: Sequence[ObjectRows]) -> list[str]:
    """Return the names of the labels of geometries."""
    return list(dict.fromkeys(name for own in parts for name in own.label_names))


def chosen_labels(known: Sequence[str], labels: Sequence[str]) -> list[str]:
    """Return the labels that names choose; raise `InvalidInput` for a name that is not known."""
    chosen = known if [*labels] == [ALL] and ALL not in known else dict.fromkeys(labels)
    for name in chosen:
        if name not in known:
            problem = f"there is no label {name!r}; labels of this scene: {shown_names(known)}"
            raise InvalidInput(f"{problem}. Name one of them.")
    return [*chosen]


def _values(objects: ObjectRows, name: str) -> list[Any]:
    """Return the values of a label, None for a missing one."""
    column = objects.attributes.labels.get(name)
    if column is None:
        return [None] * (_label_count(objects) or 0)
    return [None if value != value else value for value in column.tolist()]


class _Values(NamedTuple):
    name: str
    kind: type
    values: list[Any]
    can_miss: bool
    """whether rows of misses have no label"""


def _text(label: _Values) -> LabelColumn:
    """Return a label as text, "" for a missing value; bools are 1 and 0."""
    texts = [
        "" if value is None else str(int(value) if label.kind is bool else label.kind(value))
        for value in label.values
    ]
    return LabelColumn(np.array([*texts, ""], dtype=object), np.dtype(object))


def _arrow(label: _Values) -> LabelColumn:
    """Return a label in its type of Arrow, null for a missing value."""
    arrow = require("pyarrow", "io", ".parquet")
    types = {float: arrow.float64(), int: arrow.int64(), bool: arrow.bool_(), str: arrow.string()}
    kind = types[label.kind]
    return LabelColumn(arrow.array([*label.values, None], kind), np.dtype(object), kind)


def _array(label: _Values) -> LabelColumn:
    """Return a label as numbers, NaN for a missing value, or as text of one width, "" for that."""
    if label.kind is str:
        texts = checked_texts([*(value or "" for value in label.values), ""], f"values of {label.name!r}")
        return LabelColumn(np.array(texts, dtype=object), np.array(texts, dtype=str).dtype)
    if label.kind is not float and not label.can_miss and None not in label.values:
        array: NDArray[Any] = np.array([*label.values, 0], dtype=label.kind)
        return LabelColumn(array, array.dtype)
    if any(value is not None and abs(value) > _MAX_EXACT for value in label.values if label.kind is int):
        problem = f"label {label.name!r} holds integers that are not exact in float64"
        raise InvalidInput(f"{problem}. Write .parquet or .csv.")
    floats = np.array([*(np.nan if value is None else value for value in label.values), np.nan], np.float64)
    return LabelColumn(floats, floats.dtype)


def id_column(ids: Sequence[str], suffix: str) -> LabelColumn:
    """Return ids as a column of an output of this format."""
    return _TYPED.get(suffix, _array)(_Values("id", str, [*ids], can_miss=False))


_TYPED: dict[str, Callable[[_Values], LabelColumn]] = {".csv": _text, ".parquet": _arrow}
