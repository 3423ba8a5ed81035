"""Hits as columns: dicts of arrays, tables of Arrow, frames of pandas, and HTML."""

from __future__ import annotations

from collections.abc import Container, Iterable, Sequence
from importlib import import_module
from importlib.util import find_spec
from math import prod
from types import ModuleType
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from raybox.compiler.float_environment import guard_class, in_default_environment
from raybox.errors import RayboxError
from raybox.geometry import Ids, InstanceRows
from raybox.geometry.array_container import ArrayContainer, ReadOnly
from raybox.hits.hit_ids import LabelColumns, SceneRows, Source, frozen
from raybox.validation import Array, Ints

if TYPE_CHECKING:
    import pandas
    import pyarrow

HTML_ROWS = 8  # that a notebook shows
Columns = dict[str, NDArray[Any]]
LabelNames: TypeAlias = bool | str | Sequence[str]
"""True for all labels, False for none, or their names."""


@guard_class()
class HitTables(ArrayContainer):
    """Methods that return hits as columns."""

    _AS_ARRAY = "hits.index and hits.t, or hits.to_pandas()"

    @property
    def _columns(self) -> Columns:
        """The columns of all hits, flat."""
        raise NotImplementedError

    @property
    def _first_columns(self) -> tuple[Columns, int]:
        """The columns of the first hits, `HTML_ROWS` or more if there are, and the number of all."""
        raise NotImplementedError

    _source: Source
    _hit_id: Ints

    @property
    def _scene_rows(self) -> SceneRows:
        """The geometries whose primitives were hit."""
        return self._source.scene

    @property
    def _named(self) -> tuple[Ids | None, LabelColumns]:
        """Ids and labels of what was hit, for `equals`."""
        ids = self._scene_rows.ids_of(self._hit_id) if self._scene_rows.has_ids else None
        return ids, self.labels()

    @overload
    def labels(self, name: str, /) -> NDArray[Any]: ...
    @overload
    def labels(self) -> LabelColumns: ...
    @overload
    def labels(self, name: str, other: str, /, *names: str) -> LabelColumns: ...
    def labels(self, *names: str) -> NDArray[Any] | LabelColumns:
        """Return labels of the object of each hit, in the shape of the hits.

        Parameters
        ----------
        *names : str
            One name gives an array, several a mapping of arrays, none a mapping of all labels.

        Returns
        -------
        ndarray, or mapping of str to ndarray
            A missing label, as that of a miss, is NaN among floats, else None. Integers and bools are an
            array of dtype int64 or bool if none is missing, else of dtype object. Of a list of geometries,
            the dtype is float64 if all their columns of that name are, else object, whatever is hit.

        Raises
        ------
        InvalidInput
            If no geometry of the scene has that label.

        Examples
        --------
        >>> import raybox as rb
        >>> labels = {"storey": ["ground", "first"], "cost": [2.5, 4.0]}
        >>> scene = rb.Scene(rb.Boxes([[2, -1], [5, -1]], [[3, 1], [6, 1]], labels=labels))
        >>> hits = scene.nearest(rb.Rays([[0, 0], [4, 0], [0, 9]], [1, 0]))
        >>> hits.labels("storey"), hits.labels("cost")
        (array(['ground', 'first', None], dtype=object), array([2.5, 4. , nan]))
        """
        if len(names) == 1:
            return self._scene_rows.label_of(self._hit_id, names[0])
        found = names or self._scene_rows.label_names
        return ReadOnly({name: self._scene_rows.label_of(self._hit_id, name) for name in found})

    def to_dict(self, *, labels: LabelNames = False) -> Columns:
        """Return the hits as named columns, with the names of files that `raybox cast` writes.

        Parameters
        ----------
        labels : bool, str or sequence of str
            True for all labels of what was hit, or names of some: a column each, after the others. One that
            is named like another column, such as ``t``, becomes ``object_t``.

        Returns
        -------
        dict of ndarray, of one length, read-only
            Of `Hits` ``ray index t x y [z]``: a row for each ray (and each of k hits), flat; for a miss index
            is -1, t +inf and the point NaN. ``ray`` is the flat number of the ray in the query. Of `AllHits`
            ``ray index t t_enter t_exit length``: a row for each hit. Of `ObjectHits` ``ray object t_first
            t_last contacts``. After ``index`` follow ``object`` where a mesh has objects, ``geometry`` in a
            scene of several, ``primitive`` with `Instances`, and ``id`` where there are ids.

        Raises
        ------
        InvalidInput
            If no geometry has a label of these names.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([[2, -1], [5, -1]], [[3, 1], [6, 1]]))
        >>> scene.nearest(rb.Rays([[0, 0], [0, 9]], [1, 0])).to_dict()["x"]
        array([ 2., nan])
        """
        columns = self._columns
        names = self._label_names(labels, columns)
        return columns | {own: self.labels(name).reshape(-1) for own, name in names.items()}

    def _label_names(self, labels: LabelNames, columns: Columns) -> dict[str, str]:
        """Return the label of each added column; names differ from other columns'."""
        listed = [labels] if isinstance(labels, str) else labels
        if isinstance(listed, bool):
            listed = self._scene_rows.label_names if listed else []
        names: dict[str, str] = {}
        for name in listed:
            names[label_column(name, {*columns, *names})] = name
        return names

    def to_arrow(self, *, labels: LabelNames = False) -> pyarrow.Table:
        """Return the hits as a table of Arrow, with nulls in place of NaN and None.

        Columns and parameters are those of `to_dict`. Libraries that read streams of Arrow
        (``__arrow_c_stream__``) take hits themselves: ``polars.DataFrame(hits)``,
        ``duckdb.sql("from hits")``, ``pyarrow.table(hits)``.

        Returns
        -------
        pyarrow.Table

        Raises
        ------
        RayboxError
            If pyarrow is not installed.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([[2, -1], [5, -1]], [[3, 1], [6, 1]]))
        >>> scene.all(rb.Rays([0, 0], [1, 0])).to_arrow()["length"].to_pylist()
        [1.0, 1.0]
        """
        arrow = _required("pyarrow", "arrow", "to_arrow")
        columns, made = self._columns, {}
        for name, values in columns.items():
            if name == "id":
                made[name] = _arrow_ids(arrow, values)
            else:
                mask = columns["index"] < 0 if name in ("x", "y", "z") else None
                made[name] = arrow.array(values, mask=mask)
        for own, name in self._label_names(labels, columns).items():
            made[own] = _arrow_labels(arrow, self.labels(name).reshape(-1), self._scene_rows.label_type(name))
        return arrow.table(made)

    @in_default_environment
    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        """Return the table of `to_arrow` as a stream of Arrow; a requested schema casts its columns."""
        arrow = _required("pyarrow", "arrow", "a stream of Arrow")
        table = self.to_arrow()
        if requested_schema is not None:  # pyarrow 15 does not cast streams
            table = table.cast(arrow.schema(_Schema(requested_schema)))
        return table.__arrow_c_stream__()

    def to_pandas(self, *, labels: LabelNames = False) -> pandas.DataFrame:
        """Return the hits as a data frame. Columns and parameters are those of `to_dict`.

        Returns
        -------
        pandas.DataFrame

        Raises
        ------
        RayboxError
            If pandas is not installed.

        Examples
        --------
        >>> import raybox as rb
        >>> scene = rb.Scene(rb.Boxes([[2, -1], [5, -1]], [[3, 1], [6, 1]]))
        >>> scene.nearest(rb.Rays([[0, 0], [0, 9]], [1, 0])).to_pandas()
           ray  index    t    x    y
        0    0      0  2.0  2.0  0.0
        1    1     -1  inf  NaN  NaN
        """
        return _required("pandas", "pandas", "to_pandas").DataFrame(self.to_dict(labels=labels))

    @in_default_environment
    def _repr_html_(self) -> str:
        from html import escape

        columns, count = self._first_columns
        shown = [values[:HTML_ROWS].tolist() for values in columns.values()]
        rows = [_row(map(_text, row), "td") for row in zip(*shown, strict=True)]
        rest = count - len(rows)
        more = f"<p>{rest:,} more rows</p>" if rest else ""
        table = f"<table>{_row(columns, 'th')}{''.join(rows)}</table>"
        return f"<div><p>{escape(repr(self))}</p>{table}{more}</div>"


def label_column(name: str, used: Container[str]) -> str:
    """Return the name of a label's column: ``object_NAME`` for one that other columns use."""
    while name in used:
        name = f"object_{name}"
    return name


class _Schema(NamedTuple):
    """A schema that is requested through the C interface of Arrow."""

    capsule: object

    def __arrow_c_schema__(self) -> object:
        return self.capsule


class _NumberedHits(Protocol):
    """`Hits` or `AllHits`: the numbers of what was hit."""

    @property
    def index(self) -> Ints: ...

    @property
    def object(self) -> Ints: ...

    @property
    def geometry(self) -> Ints: ...

    @property
    def primitive(self) -> Ints: ...

    @property
    def ids(self) -> Ids: ...


def number_columns(source: Source, hits: _NumberedHits, ray: Ints) -> Columns:
    """Return ray and index of hits; object, geometry, primitive and id where there are any."""
    columns: Columns = {"ray": frozen(ray), "index": hits.index.reshape(-1)}
    if any(objects.numbers is not None for objects in source.objects):
        columns["object"] = hits.object.reshape(-1)
    columns |= part_columns(source, hits)
    if source.scene.has_ids:
        columns["id"] = hits.ids.reshape(-1)
    return columns


def part_columns(source: Source, hits: _NumberedHits) -> Columns:
    """Return the geometry of hits in a scene of several, and the primitive with `Instances`."""
    columns: Columns = {}
    if len(source.parts) > 1:
        columns["geometry"] = hits.geometry.reshape(-1)
    if any(isinstance(rows, InstanceRows) for rows in source.parts):
        columns["primitive"] = hits.primitive.reshape(-1)
    return columns


def first_indices(shape: tuple[int, ...], count: int) -> tuple[NDArray[np.intp], ...] | None:
    """Return an index over a shape that gives its first `count` elements, flat."""
    if not shape:
        return None
    return np.unravel_index(np.arange(min(count, prod(shape))), shape)


def _required(module: str, extra: str, method: str) -> ModuleType:
    """Return an optional package; raise `RayboxError` with the command that installs it."""
    if find_spec(module) is None:
        raise RayboxError(
            f"{method} needs {module}, which is not installed; run: pip install 'raybox[{extra}]'"
        )
    return import_module(module)


def _arrow_ids(arrow: ModuleType, ids: Array) -> pyarrow.Array:
    """Return ids as a column of numbers if they are only such, else as one of texts."""
    values = ids.tolist()
    if {type(value) for value in values if value is not None} == {int}:
        return arrow.array(values, arrow.int64())
    return arrow.array([None if value is None else str(value) for value in values], arrow.string())


def _arrow_labels(arrow: ModuleType, values: Array, kind: type) -> pyarrow.Array:
    """Return labels as a column of the label's type."""
    types = {float: arrow.float64(), int: arrow.int64(), bool: arrow.bool_(), str: arrow.string()}
    mask = np.isnan(values) if values.dtype.kind == "f" else None
    return arrow.array(values, types[kind], mask=mask)


def _text(value: float | str | None) -> str:
    if value is None:
        return ""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _row(cells: Iterable[str], tag: str) -> str:
    from html import escape

    return f"<tr>{''.join(f'<{tag}>{escape(cell)}</{tag}>' for cell in cells)}</tr>"
