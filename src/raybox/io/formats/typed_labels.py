"""Labels of tables: float64, int64, bool, or text with None."""

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from raybox.io.formats.common import require
from raybox.validation import Array

if TYPE_CHECKING:
    import pyarrow

ID_NAMES = ("id", "uuid", "guid", "globalid", "global_id", "gml_id", "token")
"""Columns of ids, the first that a table has, in small letters or not."""
TEXT = {*ID_NAMES, "storey"}  # columns that are text, also of digits alone; in small letters or not
_MAX_EXACT = 2**53
_INTEGER = re.compile(r"0|-?[1-9][0-9]*")
_FLOAT = re.compile(r"(?:-?(?:0|[1-9][0-9]*)(?:\.[0-9]*)?|-?\.[0-9]+)(?:[eE][+-]?[0-9]+)?|-?inf|nan")
_POINT = re.compile(r"[.eE]")


def label(name: str, parts: Sequence[Any]) -> NDArray[Any]:
    """Return a column as a label, of its blocks: texts, or typed arrays of NumPy or of Arrow."""
    if not parts:
        return np.empty(0, object)
    if not isinstance(parts[0], np.ndarray):
        return _of_arrow(name, parts)
    column = np.concatenate(parts)
    if column.dtype == object:
        texts = [text or None for text in column.tolist()]
        return objects(texts) if name.lower() in TEXT else _typed(texts)
    return _of_numpy(name, column)


def is_label(dtype: np.dtype[Any]) -> bool:
    """Return whether columns of a dtype can be labels."""
    return not dtype.shape and (dtype.kind == "U" or (dtype.kind in "biuf" and dtype.itemsize <= 8))


def is_arrow_label(kind: "pyarrow.DataType") -> bool:
    """Return whether columns of an Arrow type can be labels."""
    return not re.search("binary|list|struct|map|union|interval", str(kind))


def objects(values: Sequence[object]) -> NDArray[np.object_]:
    """Return values as an array of objects."""
    return np.fromiter(values, dtype=object, count=len(values))


def _texts(values: Sequence[object]) -> NDArray[np.object_]:
    """Return values as text, None where there is none."""
    return objects([None if value is None else str(value) for value in values])


def _typed(texts: list[str | None]) -> NDArray[Any]:
    """Return texts as numbers if all are such, not codes as 007."""
    there = {text for text in texts if text is not None}
    if not there or not all(map(_FLOAT.fullmatch, there)):
        return objects(texts)
    whole = {text: int(text) for text in there if _INTEGER.fullmatch(text)}
    largest = max(map(abs, whole.values()), default=0)
    if len(whole) == len(there) and largest < 2**63:
        numbers = [None if text is None else whole[text] for text in texts]
        return objects(numbers) if None in numbers else np.array(numbers, np.int64)
    if largest > _MAX_EXACT or not any(map(_POINT.search, there)):
        return objects(texts)
    found = np.array([np.nan if text is None else float(text) for text in texts])
    is_inf = ["inf" in (text or "") for text in texts]
    return found if (np.isinf(found) == is_inf).all() else objects(texts)  # 1e400 is no float64


def _of_numpy(name: str, column: Array) -> NDArray[Any]:
    """Return a typed array as a label."""
    if column.dtype.kind == "U":
        return objects([text or None for text in column.tolist()])
    if name.lower() in TEXT or (column.dtype.kind == "u" and column.size and column.max() >= 2**63):
        return _texts(column.tolist())
    kinds: dict[str, type] = {"b": np.bool_, "f": np.float64}
    return column.astype(kinds.get(column.dtype.kind, np.int64))


def _of_arrow(name: str, parts: "Sequence[pyarrow.Array]") -> NDArray[Any]:
    """Return a typed column as a label; null is missing."""
    arrow = require("pyarrow", "io", ".parquet")
    column, types = arrow.chunked_array(parts), arrow.types
    kind, is_text = column.type, name.lower() in TEXT
    if types.is_decimal(kind) and not is_text:
        values = column.to_pylist()
        exact = all(value is None or float(value) == value for value in values)
        return np.array(values, float) if exact else _texts(values)
    is_number = types.is_integer(kind) or types.is_floating(kind)
    if is_text or not (is_number or types.is_boolean(kind)):
        return _texts((column if is_number else column.cast(arrow.string())).to_pylist())
    is_whole = types.is_floating(kind) or not column.null_count
    return _of_numpy(name, column.to_numpy()) if is_whole else objects(column.to_pylist())
