"""Columns of tables by name: data frames, tables of Arrow, dicts of columns."""

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from raybox import validation
from raybox.errors import InvalidInput
from raybox.validation import ArrayInput, Floats, names_of

TableInput: TypeAlias = ArrayInput | Mapping[str, ArrayInput]
"""Rows of numbers, or a table of columns: a data frame, a table of Arrow, a dict."""


def column(table: Any, name: str) -> Any:
    """Return a column of a table; None without it, and of anything else."""
    return table[name] if name in (names_of(table) or ()) else None


def stacked(table: Any, names: list[str], prefixes: tuple[str, str], noun: str) -> Floats:
    """Return the columns of two vectors side by side, (M, 2 * D); in 2D without columns of z.

    prefixes: of the names of the two vectors' columns. noun: what the rows are, for errors.
    """
    named = {prefix + axis for prefix in prefixes for axis in "xyz"} & {*names}
    is_deep = any(name.endswith("z") for name in named) if named else len(names) >= 6
    wanted = [prefix + axis for prefix in prefixes for axis in ("xyz" if is_deep else "xy")]
    if missing := [name for name in wanted if name not in names]:
        found = f"{' '.join(missing)} missing among" if named else "got"
        array = "table.to_numpy()" if hasattr(table, "to_numpy") else f"an array of shape (M, {len(wanted)})"
        raise InvalidInput(
            f"a table of {noun} needs the columns {' '.join(wanted)}; {found} {' '.join(map(str, names))}. "
            f"Rename them, or pass them in this order: {array}."
        )
    columns = {name: validation.floats(table[name], name) for name in wanted}
    validation.same_shape(columns, "Give one number of each for every row.")
    return np.stack([values.reshape(-1) for values in columns.values()], axis=1)
