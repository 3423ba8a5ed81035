"""The interface of what runs the blocks of a cast: the threads of this process, or a cluster."""

from collections.abc import Generator, Iterable
from typing import Protocol

from raybox.casting.blocks import BlockSpan
from raybox.casting.job import CastJob
from raybox.casting.part import PartInfo


class Runner(Protocol):
    """Casts blocks, each into a part file."""

    def run(self, job: CastJob, spans: Iterable[BlockSpan]) -> Generator[PartInfo, None, None]:
        """Write a part for each block of some spans, and yield each part that is written, in any order.

        A span without a count ends with the file. If a block fails, those that have started are still
        written and yielded; then the error of the first is raised. Closing the iterator stops the runner.
        Parts that are yielded, and not yet removed by the caller, are a few blocks ahead at most.
        """
        ...
