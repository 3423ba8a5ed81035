"""What the reader of a file states about a geometry: counts, units, the axis that is up."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from raybox.compiler.float_environment import guard_class
from raybox.errors import InvalidInput
from raybox.geometry.array_container import NOTHING, ArrayContainer, ReadOnly
from raybox.validation import Floats

Up: TypeAlias = Literal["y", "z"]
_AXES: dict[tuple[float, ...], Up] = {(0.0, 1.0, 0.0): "y", (0.0, 0.0, 1.0): "z"}


class SourceFacts(NamedTuple):
    """Facts of a file; None: neither the file nor its format states it."""

    skipped: ReadOnly[int] = NOTHING
    """counts by reason of what its reader left out"""
    units: str | None = None
    """the unit of lengths, such as metre, millimetre, foot; degree, of coordinates that are angles"""
    up: Up | None = None

    def under(self, linear: Floats) -> SourceFacts:
        """Return the facts of the image under a linear map, (3, 3): units only if no length changes."""
        if not np.array_equal(linear @ linear.T, np.eye(3)) or not np.isin(linear, (-1.0, 0.0, 1.0)).all():
            return SourceFacts(self.skipped)
        old = next((axis for axis, name in _AXES.items() if name == self.up), (0.0, 0.0, 0.0))
        return self._replace(up=_AXES.get(tuple((linear @ old).tolist())))


NO_FACTS = SourceFacts()


def checked_up(up: str | None) -> Up | None:
    """Return an axis; raise `InvalidInput` for another text."""
    if up not in (None, "y", "z"):
        raise InvalidInput(f'up must be "y", "z" or None; got {up!r}. Leave it out.')
    return up  # type: ignore[return-value]  # one of the three


def joined_facts(parts: Sequence[SourceFacts]) -> SourceFacts:
    """Return the facts of several geometries as one: sums of counts; units and up if they all agree."""
    skipped = ReadOnly(sum((Counter(part.skipped) for part in parts), Counter[str]()))
    units, ups = {part.units for part in parts}, {part.up for part in parts}
    return SourceFacts(skipped, *(some.pop() if len(some) == 1 else None for some in (units, ups)))  # type: ignore[arg-type]


@guard_class("skipped", "units", "up")
class FromFile(ArrayContainer):
    """The properties of geometries that a file may have held."""

    __slots__ = ()
    _facts: SourceFacts

    @property
    def skipped(self) -> ReadOnly[int]:
        """What the reader of a file left out: counts by reason, read-only."""
        return self._facts.skipped

    @property
    def units(self) -> str | None:
        """The unit of lengths that the file or its format states, such as "metre"; None if neither does.

        "degree" of longitudes and latitudes, of which t and angles mean nothing.
        """
        return self._facts.units

    @property
    def up(self) -> Up | None:
        """The axis that is up, "y" or "z", by the file or its format; None if neither states it."""
        return self._facts.up
