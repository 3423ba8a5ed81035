"""Ids of the rows of a geometry: an array of texts or whole numbers, one for each row."""

import operator
from collections.abc import Iterable, Sequence
from contextlib import suppress
from types import EllipsisType
from typing import SupportsIndex, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybox.errors import InvalidInput
from raybox.validation import freeze

Ids = NDArray[np.object_]
IdsInput: TypeAlias = Iterable[str | int] | None
"""Ids as users pass them: a list, an array or a column of a table."""

RowIndex: TypeAlias = SupportsIndex | slice | Sequence[int] | Sequence[bool] | NDArray[np.integer | np.bool_]
"""Rows of a flat list: one integer, a slice, a mask or a list of integers."""

ArrayIndex: TypeAlias = RowIndex | EllipsisType | tuple[RowIndex | EllipsisType | None, ...] | None
"""Any index of an array."""


def checked_ids(ids: IdsInput, count: int, noun: str) -> Ids | None:
    """Return ids as a read-only array of str or of int, shape (count,); None for None.

    noun: what the rows are, for errors.
    """
    if ids is None:
        return None
    values = listed_ids(ids, noun)
    if len(values) != count:
        raise InvalidInput(
            f"ids must have one id for each {noun}: {count}; got {len(values)}. Pass None for no ids."
        )
    found = np.fromiter(_of_one_type(values, noun), dtype=object, count=count)
    freeze(found)
    return found


def chosen_ids(ids: Ids | None, index: RowIndex) -> Ids | None:
    """Return the ids of the rows at an index; None for None."""
    if ids is None:
        return None
    found: Ids = np.asarray(ids[index], order="C")
    freeze(found)
    return found


def listed_rows(index: RowIndex) -> RowIndex:
    """Return the index that keeps the axis of rows: of an integer, a list of it."""
    with suppress(TypeError):
        return [operator.index(index)]  # type: ignore[arg-type]
    return index


def listed_ids(ids: Iterable[str | int], noun: str) -> list[str | int]:
    """Return ids as a list of Python objects: of an array or a column, its elements."""
    for name in ("to_pylist", "tolist"):  # of Arrow; of NumPy and pandas
        if hasattr(ids, name):
            ids = getattr(ids, name)()
            break
    if isinstance(ids, str | bytes) or not hasattr(ids, "__iter__"):
        raise InvalidInput(
            f"ids must be a sequence, one id for each {noun}; got {type(ids).__name__}. Put it into a list."
        )
    return list(ids)


def _of_one_type(values: list[str | int], noun: str) -> list[str | int]:
    """Return ids that are all str or all int; refuse others."""
    kinds = set(map(type, values))
    if all(issubclass(kind, str) for kind in kinds):
        return values
    if all(issubclass(kind, int | np.integer) and kind is not bool for kind in kinds):
        return list(map(int, values))
    wrong = next(k for k, value in enumerate(values) if not isinstance(value, str))
    raise InvalidInput(
        f"ids must be all str or all int; the id of {noun} {wrong} is {values[wrong]!r:.60}. "
        "Convert them: list(map(str, ids))."
    )
