"""Outputs: what parts are added to, and what becomes of them."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import NamedTuple

from raybox.casting.part import PartInfo


class Totals(NamedTuple):
    """Totals of an output."""

    rays: int = 0
    rows: int = 0
    hit_count: int = 0
    """Rays that hit anything; of queries with a row for each hit: hits."""

    def plus(self, part: PartInfo) -> "Totals":
        """Return the totals with those of a part."""
        return Totals(self.rays + part.rays, self.rows + part.rows, self.hit_count + part.hit_count)


class Outcome(NamedTuple):
    """What a cast has done."""

    totals: Totals
    resumed: int
    """Rays that an earlier call had done."""


class Output(ABC):
    """Collects parts, each once and in any order, and makes the output of them."""

    name = ""
    """Of the complete output in the folder of the cast."""

    def __init__(self, parts: Sequence[PartInfo] = ()) -> None:
        self.parts = [*parts]
        """The parts that were added, in order; at first those whose files are no longer needed."""
        self._waiting: dict[int, PartInfo] = {}

    @property
    def totals(self) -> Totals:
        """Those of all parts."""
        totals = Totals()
        for part in self.parts:
            totals = totals.plus(part)
        return totals

    def cut(self, count: int) -> None:
        """Forget all but the first `count` parts."""
        del self.parts[count:]

    def add(self, part: PartInfo) -> None:
        """Add a part whose file is whole, and those after it that wait for it; or let it wait."""
        self._waiting[part.number] = part
        while (following := self._waiting.pop(len(self.parts), None)) is not None:
            self._append(following)
            self.parts.append(following)

    @abstractmethod
    def _append(self, part: PartInfo) -> None:
        """Append the next part."""

    @abstractmethod
    def sync(self) -> None:
        """Make what was added durable, and remove files of parts that are no longer needed.

        Another thread may call `add` meanwhile.
        """

    @abstractmethod
    def finish(self) -> Totals:
        """Complete the output, after all parts; it is durable then."""

    def close(self) -> None:  # noqa: B027 - most outputs have no file that stays open
        """Close all files."""
