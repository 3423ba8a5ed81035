"""Property sets of objects, such as those of IFC products: stored as JSON, parsed when they are read."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias, final

import numpy as np
from numpy.typing import NDArray

from raybox.compiler.float_environment import guard_class
from raybox.errors import InvalidInput
from raybox.geometry.row_ids import RowIndex
from raybox.validation import Array, freeze

Properties: TypeAlias = dict[str, dict[str, Any]]
"""Sets by name, each of values by name: text, numbers, bools, None, or lists and dicts of these."""


@final
@guard_class("texts", "of_rows", "lines")
class PropertySets(Sequence[Properties]):
    """The property sets of each object: a read-only sequence of dicts, empty for an object without sets."""

    __slots__ = ("_texts",)

    def __init__(self, texts: Sequence[str] | NDArray[Any]) -> None:
        self._texts = np.fromiter(texts, object, len(texts))
        freeze(self._texts)

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, index: Any) -> Any:
        found = self._texts[index]
        return json.loads(found or "{}") if isinstance(found, str) else PropertySets(found)

    def __iter__(self) -> Iterator[Properties]:
        return (json.loads(text or "{}") for text in self._texts)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, PropertySets) and np.array_equal(self._texts, other._texts)

    __hash__ = None  # type: ignore[assignment]  # as of dict

    def __repr__(self) -> str:
        return f"PropertySets({len(self)} objects, {np.count_nonzero(self._texts)} with sets)"

    def __reduce__(self) -> tuple[object, tuple[object, ...]]:
        return PropertySets, (self._texts,)

    @property
    def texts(self) -> NDArray[Any]:
        """The JSON of each object, a read-only array of str; "" without sets."""
        return self._texts

    def of_rows(self, index: RowIndex) -> PropertySets:
        """Return the rows at an index."""
        return PropertySets(np.atleast_1d(self._texts[index]))

    def lines(self) -> bytes:
        """Return the JSON of all objects, a line for each."""
        return "\n".join(self._texts).encode("utf-8", "replace")


def of_lines(lines: Array, count: int) -> PropertySets:
    """Return property sets from `PropertySets.lines`; raise `InvalidInput` for others, or not as many."""
    try:
        found = PropertySets(lines.tobytes().decode().split("\n"))
        is_valid = len(found) == count and all(
            isinstance(one, dict) for sets in found for one in sets.values()
        )
    except (ValueError, AttributeError, RecursionError):
        is_valid = False
    if not is_valid:
        raise InvalidInput(f"property sets must be a line of JSON for each of {count} objects. Correct them.")
    return found


def joined_properties(parts: Sequence[PropertySets | None], counts: Sequence[int]) -> PropertySets | None:
    """Return the property sets of several geometries with these numbers of objects; None if none has any."""
    if all(part is None for part in parts):
        return None
    pairs = zip(parts, counts, strict=True)
    return PropertySets([text for part, n in pairs for text in ([""] * n if part is None else part.texts)])
