"""The interface of outputs: what parts are added to, and what becomes of them."""

from typing import NamedTuple, Protocol

from raybox.cast.part import PartInfo


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


class Output(Protocol):
    """Collects parts, each once and in any order, and makes the output of them."""

    @property
    def parts(self) -> list[PartInfo]:
        """The first parts, whose files are no longer needed, in order."""
        ...

    def cut(self, count: int) -> None:
        """Forget all but the first `count` of `parts`."""
        ...

    def add(self, part: PartInfo) -> None:
        """Add a part whose file is whole."""
        ...

    def sync(self) -> None:
        """Make what was added durable, and remove files of parts that are no longer needed.

        Another thread may call `add` meanwhile.
        """
        ...

    def finish(self) -> Totals:
        """Complete the output, after all parts; it is durable then."""
        ...

    def close(self) -> None:
        """Close all files."""
        ...

    @property
    def name(self) -> str:
        """The name of the complete output in the folder of the cast."""
        ...
