"""Labels of objects: columns by name, one row for each object."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from copy import copy
from importlib import import_module
from importlib.util import find_spec
from numbers import Integral, Real
from typing import Any, NamedTuple, Protocol, Self, TypeAlias, TypeVar, cast, final

import numpy as np
from numpy.typing import NDArray

from raybox.compiler.float_environment import guard_class
from raybox.errors import InvalidInput
from raybox.geometry.array_container import NOTHING, ReadOnly, equal_values
from raybox.geometry.colors import Colors, joined_colors
from raybox.geometry.file_facts import NO_FACTS, FromFile, SourceFacts, Up, joined_facts
from raybox.geometry.property_sets import PropertySets, joined_properties
from raybox.geometry.row_ids import Ids, IdsInput, RowIndex, checked_ids, chosen_ids
from raybox.validation import freeze, names_of

G = TypeVar("G")


class LabelTable(Protocol):
    """A table of columns by name, such as a data frame."""

    def __getitem__(self, name: str, /) -> Iterable[object]: ...


LabelsInput: TypeAlias = Mapping[str, Iterable[object]] | LabelTable | None
"""Labels as users pass them: a mapping of names to columns, a data frame or a table of Arrow."""

_TEXT = ("string", "large_string", "string_view", "null")  # types of Arrow
_SHOWN = 12  # names of labels in an error
_WAY_OUT = "Convert the column, for instance to text, or leave it out"


@final
class Labels(ReadOnly[NDArray[Any]]):
    """Columns by name, read-only arrays of one row for each object.

    Their dtype is float64 (NaN: missing), int64, bool or object: str, or int or bool, with None for missing.
    """

    __slots__ = ()

    def __init__(self, columns: Mapping[str, NDArray[Any]]) -> None:
        super().__init__(columns)
        freeze(*self._entries.values())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Labels) and equal_values([dict(self)], [dict(other)])

    __hash__ = None  # type: ignore[assignment]  # as of dict

    def __repr__(self) -> str:
        return f"Labels({', '.join(f'{name}: {values.dtype}' for name, values in self.items())})"

    def of_rows(self, index: RowIndex) -> Labels:
        """Return the rows at an index."""
        return Labels({name: np.asarray(values[index], order="C") for name, values in self.items()})


class Attributes(NamedTuple):
    """What a geometry's objects have, the facts of its file, and the colours of its primitives."""

    ids: Ids | None = None
    labels: Labels = Labels({})
    facts: SourceFacts = NO_FACTS
    colors: Colors | None = None
    properties: PropertySets | None = None

    def of_rows(self, index: RowIndex) -> Attributes:
        """Return the attributes of the primitives at an index, each of which is an object."""
        found = self.of_triangles(index)
        if self.ids is None and not self.labels and self.properties is None:
            return found
        labels = self.labels.of_rows(index) if self.labels else self.labels
        properties = None if self.properties is None else self.properties.of_rows(index)
        return found._replace(ids=chosen_ids(self.ids, index), labels=labels, properties=properties)

    def of_triangles(self, index: RowIndex) -> Attributes:
        """Return the attributes of triangles at an index, whose objects stay whole."""
        if self.colors is None:
            return self
        return frozen_attributes(self._replace(colors=np.asarray(self.colors[index], order="C")))


NO_ATTRIBUTES = Attributes()


@guard_class("ids", "labels", "colors", "properties")
class HasAttributes(FromFile):
    """The properties of geometries whose objects have ids and labels."""

    __slots__ = ()
    _attributes: Attributes

    @property
    def ids(self) -> Ids | None:
        """The ids of the objects, str or int; None without.

        Shape (n,), of dtype object, read-only.
        """
        return self._attributes.ids

    @property
    def labels(self) -> Labels:
        """The labels of the objects, a read-only mapping of names to columns.

        Columns are read-only arrays of n rows, of dtype float64, int64, bool or object; a missing value is
        NaN among floats, else None.
        """
        return self._attributes.labels

    @property
    def colors(self) -> Colors | None:
        """The colours of the primitives, as the file states them; None without.

        Red, green, blue and alpha (255: opaque): shape (len, 4), of dtype uint8, read-only. Four zeros where
        the file states no colour.
        """
        return self._attributes.colors

    @property
    def properties(self) -> PropertySets | None:
        """The property sets of the objects, as an IFC file states them; None without.

        A read-only sequence of n dicts: ``house.properties[3]["Pset_WallCommon"]["IsExternal"]``.
        """
        return self._attributes.properties

    @property
    def _facts(self) -> SourceFacts:  # type: ignore[override]
        return self._attributes.facts

    def _with(self, attributes: Attributes) -> Self:
        """Return the same geometry, whose arrays are shared, with other attributes."""
        made = copy(self)
        object.__setattr__(made, "_attributes", frozen_attributes(attributes))
        return made


H = TypeVar("H", bound=HasAttributes)


def with_facts(
    geometry: G, skipped: Mapping[str, int] = NOTHING, *, units: str | None = None, up: Up | None = None
) -> G:
    """Return a geometry with the facts of its file, if there are any; arrays are shared."""
    facts = SourceFacts(ReadOnly(skipped), units, up)
    if facts == NO_FACTS:
        return geometry
    if isinstance(geometry, HasAttributes):
        return geometry._with(geometry._attributes._replace(facts=facts))
    made = copy(geometry)
    object.__setattr__(made, "_facts", facts)  # of rays
    return made


def with_colors(geometry: H, colors: Colors | None) -> H:
    """Return a geometry, whose arrays are shared, with colours of its primitives; zeros alone are none."""
    found = colors if colors is not None and colors.any() else None
    if found is geometry.colors:
        return geometry
    return geometry._with(geometry._attributes._replace(colors=found))


def with_properties(geometry: H, properties: PropertySets | None) -> H:
    """Return a geometry, whose arrays are shared, with property sets of its objects; empty ones are none."""
    found = properties if properties is not None and properties.texts.any() else None
    return geometry._with(geometry._attributes._replace(properties=found))


def without_ids(geometry: G) -> G:
    """Return a geometry, whose arrays are shared, without ids."""
    if not isinstance(geometry, HasAttributes):
        return geometry
    return geometry._with(geometry._attributes._replace(ids=None))


def checked_attributes(ids: IdsInput, labels: LabelsInput, count: int, noun: str) -> Attributes:
    """Return ids and labels, checked: one row for each of `count` objects.

    noun: what the rows are, for errors.
    """
    if ids is None and labels is None:
        return NO_ATTRIBUTES
    return Attributes(checked_ids(ids, count, noun), checked_labels(labels, count, noun))


def frozen_attributes(attributes: Attributes) -> Attributes:
    """Return attributes whose arrays are read-only."""
    freeze(*(values for values in (attributes.ids, attributes.colors) if values is not None))
    return attributes


def checked_labels(labels: LabelsInput, count: int | None, noun: str) -> Labels:
    """Return labels as read-only columns of `count` rows each.

    None: of any length, but all alike.

    Parameters
    ----------
    labels : mapping or table
        Columns by name, or a table: with the Arrow stream if pyarrow is installed, else one whose columns
        have ``to_numpy``.
    noun : str
        What the rows are, for errors.

    Raises
    ------
    InvalidInput
        If there is not one row for each object, or a column holds anything but numbers, bools or text.
    """
    if labels is None:
        return NO_ATTRIBUTES.labels
    columns = {name: _column(values, name) for name, values in _columns_of(labels)}
    for name, values in columns.items():
        if values.ndim != 1 or (count is not None and len(values) != count):
            wanted = f"{count}, one for each {noun}" if count is not None else f"one for each {noun}"
            raise InvalidInput(
                f"labels must have columns of shape ({wanted}); {name!r} has shape {values.shape}. "
                "Select the rows that belong to them."
            )
        count = len(values)
    return Labels(columns)


def column_of(values: Sequence[object]) -> NDArray[Any]:
    """Return values of a file as a column of one kind.

    Values of different kinds become text. None is a missing value.
    """
    try:
        return _of_objects(list(values), "")
    except InvalidInput:
        return _objects([None if value is None else str(value) for value in values])


def shown_names(names: Collection[str]) -> str:
    """Return names of labels for an error: all, or the first of many."""
    first = ", ".join(map(repr, list(names)[:_SHOWN])) or "none"
    return first if len(names) <= _SHOWN else f"{first} and {len(names) - _SHOWN} more"


def joined_attributes(parts: Sequence[Attributes], counts: Sequence[int], rows: Sequence[int]) -> Attributes:
    """Return the attributes of several geometries as those of one.

    counts, rows: the numbers of objects and of primitives of each.
    """
    ids = joined_ids([part.ids for part in parts], counts)
    labels = joined_labels([part.labels for part in parts], counts)
    colors = joined_colors([part.colors for part in parts], rows)
    properties = joined_properties([part.properties for part in parts], counts)
    return Attributes(ids, labels, joined_facts([part.facts for part in parts]), colors, properties)


def joined_labels(tables: Sequence[Labels], counts: Sequence[int]) -> Labels:
    """Return the rows of several tables; labels that a table lacks are missing."""
    names = list(dict.fromkeys(name for table in tables for name in table))
    return Labels({name: _joined(tables, counts, name) for name in names})


def joined_ids(all_ids: Sequence[Ids | None], counts: Sequence[int]) -> Ids | None:
    """Return the ids of several geometries; None if none has any.

    Raise `InvalidInput` if some have ids and others objects without, or one has str and another int.
    """
    own = [ids for ids, count in zip(all_ids, counts, strict=True) if count]
    if all(ids is None for ids in own):
        return None
    if any(ids is None for ids in own):
        raise InvalidInput("either all geometries have ids or none; some have none here. Pass ids to all.")
    return checked_ids([id_ for ids in own if ids is not None for id_ in ids.tolist()], sum(counts), "object")


def _joined(tables: Sequence[Labels], counts: Sequence[int], name: str) -> NDArray[Any]:
    """Return one column of several tables."""
    parts = [table.get(name) for table in tables]
    found = [part for part in parts if part is not None]
    if len(found) == len(parts) and len({part.dtype for part in found}) == 1 and found[0].dtype != object:
        return np.concatenate(found)
    values = (
        [None] * count if part is None else part.tolist() for part, count in zip(parts, counts, strict=True)
    )
    return _of_objects([value for some in values for value in some], name)


def _columns_of(labels: Any) -> Iterator[tuple[str, Any]]:
    """Yield names and columns of a mapping or a table."""
    table, names = labels, names_of(labels)
    if names is None:
        table = _arrow_table(labels)
        names = names_of(table)
    if names is None:
        raise InvalidInput(
            f"labels must be a mapping of names to columns, or a table; got {type(labels).__name__}. "
            "Put the columns into a dict."
        )
    _check_names(names)
    table = _arrow_table(table)
    yield from ((name, table[name]) for name in names)


def _check_names(names: list[Any]) -> None:
    for name, count in Counter(names).items():
        if not isinstance(name, str):
            raise InvalidInput(f"names of labels must be str; got {name!r}. Rename that column.")
        if count > 1:
            raise InvalidInput(f"labels have more than one column named {name!r}. Rename one of them.")


def _arrow_table(table: Any) -> Any:
    """Return a table of Arrow where pyarrow can make one, else the table itself."""
    if isinstance(table, Mapping) or not _streams(table):
        return table
    arrow = import_module("pyarrow")
    try:
        return arrow.table(table)
    except (arrow.ArrowException, TypeError) as error:
        problem = str(error).splitlines()[0].rstrip(".")
        raise InvalidInput(f"labels cannot be read: {problem}. {_WAY_OUT}.") from error


def _streams(values: object) -> bool:
    """Return whether pyarrow can read this by the Arrow stream."""
    return hasattr(values, "__arrow_c_stream__") and find_spec("pyarrow") is not None


def _column(values: Any, name: str) -> NDArray[Any]:
    """Return a column, an array or a list in a dtype of labels."""
    if hasattr(values, "to_pylist"):
        return _of_arrow(values, name)
    if _streams(values):
        return _of_arrow(import_module("pyarrow").chunked_array(values), name)
    if isinstance(values, np.ma.MaskedArray) and values.mask.any():
        return _of_objects(values.tolist(), name)
    if isinstance(values, np.ndarray):
        return _of_array(values, name)
    if hasattr(values, "to_numpy"):
        return _of_array(values.to_numpy(), name)
    if isinstance(values, str | bytes) or not isinstance(values, Iterable):
        raise InvalidInput(
            f"labels must be columns; {name!r} is {type(values).__name__}. Put its values into a list."
        )
    return _of_objects(list(values), name)


def _of_arrow(column: Any, name: str) -> NDArray[Any]:
    """Return an Arrow column as an array.

    Integers with nulls become Python objects, so that none is rounded.
    """
    types = import_module("pyarrow").types
    kind = column.type.value_type if types.is_dictionary(column.type) else column.type
    if types.is_floating(kind):
        return _of_array(column.to_numpy(), name)
    if (types.is_integer(kind) or types.is_boolean(kind)) and not column.null_count:
        return _of_array(column.to_numpy(), name)
    if str(kind) in _TEXT or types.is_integer(kind) or types.is_boolean(kind):
        return _of_objects(column.to_pylist(), name)
    raise _not_labels(name, str(column.type))


def _of_array(values: NDArray[Any], name: str) -> NDArray[Any]:
    """Return an array as a new one of a dtype of labels."""
    kind = values.dtype.kind
    if kind == "b":
        return np.array(values, order="C")
    if kind == "f" and values.dtype.itemsize <= 8:
        return np.array(values, dtype=np.float64, order="C")
    if kind == "i" or (kind == "u" and (not values.size or values.max() <= np.iinfo(np.int64).max)):
        return np.array(values, dtype=np.int64, order="C")
    if kind in "UTO" and values.ndim == 1:
        return _of_objects(values.tolist(), name)
    if kind in "UTO":
        return values
    raise _not_labels(name, str(values.dtype))


def _of_objects(values: list[object], name: str) -> NDArray[Any]:
    """Return Python objects of one kind as a column; None and NaN are missing."""
    kinds = {type(value) for value in values}
    missing = {kind for kind in kinds if kind is type(None) or kind.__name__ in ("NAType", "NaTType")}
    given = kinds - missing
    if given and all(issubclass(kind, Real) and not issubclass(kind, bool | np.bool_) for kind in given):
        return _of_numbers(values, missing, name)
    if missing or float in given:  # NaN is a missing text of pandas
        values = [None if type(value) in missing or value != value else value for value in values]
        given = {type(value) for value in values if value is not None}
    if given == {str}:
        return _objects(values)
    if all(issubclass(kind, str) for kind in given):
        return _objects([None if value is None else str(value) for value in values])
    if all(issubclass(kind, bool | np.bool_) for kind in given):
        bools = [None if value is None else bool(value) for value in values]
        return _objects(bools) if None in bools else np.array(bools, dtype=np.bool_)
    row, value = next((k, v) for k, v in enumerate(values) if v is not None and type(v) is not str)
    raise _not_labels(name, f"{type(value).__name__}, {value!r:.40}, in row {row}")


def _of_numbers(values: list[object], missing: set[type], name: str) -> NDArray[Any]:
    """Return numbers as int64 or float64.

    Integers and missing values become Python objects, so that none is rounded.
    """
    kinds = {type(value) for value in values} - missing
    if all(issubclass(kind, Integral) for kind in kinds):
        whole = [None if type(value) in missing else int(cast("Any", value)) for value in values]
        if any(value is not None and not -(2**63) <= value < 2**63 for value in whole):
            raise _not_labels(name, "an integer beyond 64 bits")
        return _objects(whole) if missing else np.array(whole, dtype=np.int64)
    found = np.array([np.nan if type(value) in missing else float(cast("Any", value)) for value in values])
    for value, number in zip(values, found.tolist(), strict=True):
        if isinstance(value, Integral) and int(value) != number:
            raise _not_labels(name, f"floats, and the integer {value}, which is not exact among them")
    return found


def _objects(values: Sequence[object]) -> NDArray[Any]:
    return np.fromiter(values, dtype=object, count=len(values))


def _not_labels(name: str, what: str) -> InvalidInput:
    return InvalidInput(
        f"labels must be numbers, bools or text, of one kind in a column; {name!r} holds {what}. {_WAY_OUT}."
    )
