"""Cast a block: read its rays, run the query, write its part."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from raybox.casting import blocks as ray_blocks
from raybox.casting import sums
from raybox.casting.arguments import Arguments
from raybox.casting.blocks import BlockBuffers, BlockRays, BlockSpan, RayFile
from raybox.casting.carried_columns import CarriedColumns, carried, rows_of_hits
from raybox.casting.checks import check_dimension
from raybox.casting.job import SUMS, CastJob
from raybox.casting.object_columns import ObjectColumns, object_columns, spec_of, with_labels
from raybox.casting.part import PARTS, PartFile, PartInfo
from raybox.casting.readers import open_ray_files
from raybox.casting.result_columns import OutputSpec, run_one_ray, run_query
from raybox.casting.scenes import AnyScene
from raybox.casting.sums import SumJob
from raybox.casting.writers import WRITERS
from raybox.compiler.fork import fork_safe_lock
from raybox.io.formats.common import file_error
from raybox.queries.columns import ChunkResults, Columns, Scratch, row_count
from raybox.store.folder import Folder, open_folder


class CastColumns(NamedTuple):
    """The columns of an output."""

    spec: OutputSpec
    objects: ObjectColumns
    carried: CarriedColumns | None


class _Rows(NamedTuple):
    """Rows of the output."""

    columns: Columns
    hit_count: int
    """Hits, or rays that hit."""


class BlockCaster:
    """All that a process needs to cast blocks of a job; several threads may use it at once.

    job: without its id and folder, as long as it only describes the output; ids: of all objects, None for
    those of the scene; sum_job: how sums are computed, if another process has found that out.
    """

    def __init__(
        self,
        job: CastJob,
        scene: AnyScene,
        arguments: Arguments,
        ids: Sequence[str] | None = None,
        sum_job: SumJob | None = None,
    ) -> None:
        self.job, self.scene, self.arguments, self.ids = job, scene, arguments, ids
        self.source: RayFile = open_ray_files(job.rays, job.options)
        self.columns = _columns_of(job, scene, self.source, arguments, ids)
        check_dimension(scene, self.source)
        self.sums = sum_job
        if job.part_format == SUMS and sum_job is None:
            self.sums = sums.sum_job(scene, self.source.dimension, job.size, arguments)
        self.buffers = BlockBuffers()
        self.fraction: float | None = None
        """Of the file that is read; None: unknown, or the number of rays is known."""
        self._scratch: list[Scratch] = []
        self._folder: Folder | None = None
        self._opening = fork_safe_lock()

    @property
    def folder(self) -> Folder:
        """The folder of the parts, opened once."""
        with self._opening:
            if self._folder is None:
                with open_folder(self.job.folder) as folder:
                    self._folder = folder.subfolder(PARTS)
            return self._folder

    def close(self) -> None:
        """Close the folder of the parts."""
        if self._folder is not None:
            self._folder.close()
        self._folder = None

    def check(self) -> None:
        """Run the query for one ray, which raises for wrong arguments before any work."""
        if not self.sums:
            run_one_ray(self.scene, self.job.query, self.source.dimension, **self.arguments)

    def read(self, span: BlockSpan) -> Iterator[BlockRays]:
        """Yield the blocks of a span."""
        others = [*self.columns.carried.names] if self.columns.carried else []
        for block in ray_blocks.read(self.source, self.job.size, span, self.buffers, others):
            self.fraction = block.fraction
            yield block

    def results(self, block: BlockRays, workers: int) -> Iterator[ChunkResults]:
        """Yield the results of a block, in the order of its rays."""
        if self.sums:
            return sums.results(self.scene, block, self.sums, workers, self.arguments)
        return run_query(self.scene, self.job.query, block.rays, block.first, workers, **self.arguments)

    def cast_block(self, block: BlockSpan, workers: int, lock: AbstractContextManager[object]) -> PartInfo:
        """Write the part of a span of one block, and return what it says about itself; lock: of queries."""
        for rays in self.read(block):
            return self.write_part(rays, workers, lock)
        problem = f"no ray is at row {block.position.first:,}: it has become shorter"
        raise file_error(self.source.path, problem, "cast it again")

    def write_part(self, block: BlockRays, workers: int, lock: AbstractContextManager[object]) -> PartInfo:
        """Query a block, and write its part; lock: of queries."""
        file = PartFile(self.folder, block.number)
        try:
            writer = WRITERS[self.job.part_format](self.columns.spec, file)
            rows = hit_count = 0
            for some in self._rows(block, workers, lock):
                writer.add(some.columns)
                rows, hit_count = rows + row_count(some.columns), hit_count + some.hit_count
            body = writer.finish()
            job, end, found = self.job, block.end, block.checksum
            return file.complete(
                PartInfo(
                    job.id, block.number, block.first, end, job.part_format, rows, hit_count, found, body
                )
            )
        finally:
            self.buffers.release(block.buffers)
            file.discard()

    def _rows(self, block: BlockRays, workers: int, lock: AbstractContextManager[object]) -> Iterator[_Rows]:
        """Yield the rows of a block, in the order of its rays."""
        results, carried = self.results(block, workers), self.columns.carried
        more = carried.of_block(block.others, self.source.path) if carried else {}
        scratch: Scratch = self._scratch.pop() if self._scratch else {}
        while True:
            with lock:
                some = next(results, None)
            if some is None:
                self._scratch.append(scratch)
                return
            columns = self.columns.objects.with_rows(some.columns(scratch))
            if more and row_count(columns):
                columns = columns | rows_of_hits(more, columns, block.first)
            yield _Rows(columns, some.hit)


def _columns_of(
    job: CastJob, scene: AnyScene, source: RayFile, arguments: Arguments, ids: Sequence[str] | None
) -> CastColumns:
    """Return the columns of an output; raise for labels and carried columns that are not possible."""
    objects = object_columns(scene, ids)
    given = {name: value for name, value in arguments.items() if name != "where"}
    spec = spec_of(job.query, source.dimension, objects, job.suffix, **given)._replace(size=job.size)
    if job.labels:
        objects = with_labels(objects, scene, job.labels, spec)
        spec = spec.with_columns(objects.dtypes, objects.arrow_types)
    more = carried(source, job, list(spec.dtypes))
    if more:
        spec = spec.with_columns(more.dtypes, more.arrow_types)
    return CastColumns(spec, objects, more)
