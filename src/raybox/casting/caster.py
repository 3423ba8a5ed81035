"""Cast a block: read its rays, run the query, write its part."""

from collections.abc import Collection, Iterator, Sequence
from contextlib import AbstractContextManager
from itertools import groupby
from typing import NamedTuple

import numpy as np

from raybox.casting import arguments as cast_arguments
from raybox.casting import blocks as ray_blocks
from raybox.casting.arguments import Arguments
from raybox.casting.blocks import BlockBuffers, BlockSpan, FileBlock, Position, RayFile
from raybox.casting.carried_columns import (
    CarriedColumns,
    carried,
    group_column,
    groups_of_block,
    rows_of_hits,
)
from raybox.casting.columns import (
    ObjectColumns,
    OutputSpec,
    as_array,
    object_columns,
    spec_of,
    with_labels,
)
from raybox.casting.job import SUMS, CastJob
from raybox.casting.part import BlockFacts, CastPart, PartFile, PartFolders
from raybox.casting.readers import open_ray_files
from raybox.casting.scenes import dimension_of, mapped_files
from raybox.casting.sums import Sums, sum_job
from raybox.casting.writers import WRITERS
from raybox.errors import InvalidInput
from raybox.geometry import Rays
from raybox.hits.file_columns import ChunkResults, Columns, FileRows, Scratch, row_count
from raybox.io.formats.common import file_error
from raybox.io.formats.tables import Column
from raybox.queries.table import GROUPS
from raybox.scene import file_queries as queries
from raybox.scene.scene import Scene
from raybox.store.checksum import Checksum
from raybox.store.identity import InputFiles
from raybox.validation import Array


class CastColumns(NamedTuple):
    """The columns of an output."""

    spec: OutputSpec
    objects: ObjectColumns
    carried: CarriedColumns | None
    groups: str | None
    """The column of the file of rays that holds their groups."""


class ReadBlock(NamedTuple):
    """All that the results of a block depend on, in memory."""

    block: FileBlock
    facts: BlockFacts
    rays: Rays | FileRows
    """Or points, or boxes."""
    per_ray: dict[str, Array]
    """Rows of arguments: weights, groups."""
    carried: dict[str, Column]


class _BlockRows(NamedTuple):
    """What a block has besides rays, and the checksums of all."""

    facts: BlockFacts
    per_ray: dict[str, Array]
    carried: dict[str, Column]


class BlockCaster:
    """All that a process needs to cast blocks of a job; several threads may use it at once.

    ids: of all objects, None for those of the scene.
    """

    def __init__(
        self, job: CastJob, scene: Scene, arguments: Arguments, ids: Sequence[str] | None = None
    ) -> None:
        self.job, self.scene, self.arguments, self.ids = job, scene, arguments, ids
        self.source: RayFile = open_ray_files(job.rays, job.options)
        self.columns = _columns_of(job, scene, self.source, arguments, ids)
        dimension, of_scene = self.source.dimension, dimension_of(scene)
        if dimension != of_scene:
            raise InvalidInput(
                f"{self.source.files[0].path}: holds {job.reads} in {dimension}D, while the scene is in "
                f"{of_scene}D; add or drop a coordinate"
            )
        is_sum = job.part_format == SUMS
        self.sums = sum_job(scene, self.source.dimension, job.size, arguments) if is_sum else None
        self.buffers = BlockBuffers()
        self._scene_files = InputFiles(mapped_files(scene))
        self._scratch: list[Scratch] = []

    def check(self) -> None:
        """Run the query for one ray, point or box, which raises for wrong arguments before any work."""
        if self.sums:
            return
        example = ray_blocks.example_of(self.job.reads, self.source.dimension)
        names = [*self._per_ray, *([GROUPS] if self.columns.groups else [])]
        one_row = dict.fromkeys(names, np.ones(1, np.int64))
        for results in self._query(example, 0, 1, self.arguments | one_row):
            for column in results.columns({}).values():
                as_array(column)

    def _query(
        self, rays: Rays | FileRows, first: int, workers: int, arguments: Arguments
    ) -> Iterator[ChunkResults]:
        columns = queries.columns_of(self.job.query)
        return columns.chunks(self.scene, rays, first, workers, **arguments)

    @property
    def _per_ray(self) -> dict[str, Array]:
        return cast_arguments.per_ray(self.job.query, self.arguments)

    def read(self, span: BlockSpan) -> Iterator[ReadBlock]:
        """Yield the blocks of a span."""
        for block in self._blocks(span):
            rays, rows = ray_blocks.content_of(self.source, block), self._rows_of(block)
            yield ReadBlock(block, rows.facts, rays, rows.per_ray, rows.carried)

    def facts(self, span: BlockSpan) -> Iterator[BlockFacts]:
        """Yield the facts of the blocks of a span; their rays may be invalid."""
        for block in self._blocks(span):
            yield self._rows_of(block).facts
            self.buffers.release(block.buffers)

    def facts_of(self, numbers: Collection[int]) -> Iterator[BlockFacts]:
        """Yield the facts of blocks of some numbers that the files have, and of others."""
        for span in self._runs_of(sorted(set(numbers))):
            yield from self.facts(span)

    def _runs_of(self, numbers: Sequence[int]) -> Iterator[BlockSpan]:
        """Yield spans that hold the blocks of some numbers; all before the last one without an index."""
        if numbers and not self._is_indexed:
            yield BlockSpan(0, Position(), numbers[-1] + 1)
            return
        for _, some in groupby(enumerate(numbers), lambda found: found[1] - found[0]):
            run = [number for _, number in some]
            if span := next(self.spans_in(BlockSpan(run[0], Position(), 1)), None):
                yield span._replace(blocks=len(run))

    @property
    def _is_indexed(self) -> bool:
        """Whether blocks can be found without reading those before them."""
        return self.source.total is not None and self.source.block_at(0) is not None

    def spans_of(self, numbers: Collection[int]) -> Iterator[BlockSpan]:
        """Yield a span for each block of some numbers that the files have, in order."""
        wanted = set(numbers)
        spans = self.spans_in(BlockSpan(0, Position(), max(wanted, default=-1) + 1))
        return (span for span in spans if span.number in wanted)

    def spans_in(self, span: BlockSpan) -> Iterator[BlockSpan]:
        """Yield a span for each block of one; rows of text have no index: they are read here."""
        source, size = self.source, self.job.size
        if self._is_indexed:
            count = source.block_count(size) or 0
            for number in range(span.number, count if span.end is None else min(span.end, count)):
                first = number * size
                yield BlockSpan(number, Position(first, *(source.block_at(first) or ())), 1)
            return
        position = span.position
        for block in self._blocks(span):
            yield BlockSpan(block.number, position, 1)
            position = block.end
            self.buffers.release(block.buffers)

    def _blocks(self, span: BlockSpan) -> Iterator[FileBlock]:
        others = [*self.columns.carried.names] if self.columns.carried else []
        others += [self.columns.groups] if self.columns.groups else []
        return ray_blocks.read(self.source, self.job.size, span, self.buffers, list(dict.fromkeys(others)))

    def _rows_of(self, block: FileBlock) -> _BlockRows:
        """Return the rows of arguments and carried columns of a block, copied, and its facts."""
        checksum, columns = Checksum(), self.columns.carried
        per_ray = {
            name: cast_arguments.rows_of_block(array, name, block.first, block.size)
            for name, array in self._per_ray.items()
        }
        if self.columns.groups:
            name, path = self.columns.groups, self.source.path
            per_ray[GROUPS] = groups_of_block(block.others, name, block.first, path)
        for name, rows in per_ray.items():
            checksum.update(f"{name} {rows.dtype.str} {rows.shape} ".encode())
            checksum.update(rows)
        carried = columns.of_block(block.others, self.source.path) if columns else {}
        if columns:
            checksum.update(columns.checksum_of(carried).encode())
        of_rows = checksum.text() if per_ray or columns else ""
        facts = BlockFacts(block.number, block.first, block.end, block.checksum(), of_rows)
        return _BlockRows(facts, per_ray, carried)

    def write_part(
        self, block: ReadBlock, folders: PartFolders, workers: int, lock: AbstractContextManager[object]
    ) -> CastPart:
        """Query a block, and write its part; lock: of queries."""
        form = self.job.part_format
        try:
            with PartFile(folders) as file:
                writer = WRITERS[form](self.columns.spec, file)
                rows = hit_count = 0
                for columns, hits in self._results(block, workers, lock):
                    writer.add(columns)
                    rows, hit_count = rows + row_count(columns), hit_count + hits
                body = writer.finish()
                self.check_scene()
                return file.complete(self.job, form, [block.facts], counts=(rows, hit_count), body=body)
        finally:
            self.buffers.release(block.block.buffers)

    def check_scene(self) -> None:
        """Raise `FileFormatError` if a file was changed that a part does not have the checksum of."""
        if changed := self._scene_files.changed():
            raise file_error(changed[0], "was changed while it was cast", "cast again")

    def add_to(self, total: Sums, block: ReadBlock, workers: int) -> None:
        """Add the terms of a block to sums."""
        try:
            assert isinstance(block.rays, Rays)
            total.add_block(self.scene, block.rays, workers, self.arguments | block.per_ray)
        finally:
            self.buffers.release(block.block.buffers)

    def _results(
        self, block: ReadBlock, workers: int, lock: AbstractContextManager[object]
    ) -> Iterator[tuple[Columns, int]]:
        """Yield rows of a block, in the order of its rays, with the number of hits, or of rays that hit."""
        given = self.arguments | block.per_ray
        results = self._query(block.rays, block.block.first, workers, given)
        scratch: Scratch = self._scratch.pop() if self._scratch else {}
        while True:
            with lock:
                some = next(results, None)
            if some is None:
                self._scratch.append(scratch)
                return
            columns = self.columns.objects.with_rows(some.columns(scratch))
            if block.carried and row_count(columns):
                columns = columns | rows_of_hits(block.carried, columns, block.block.first)
            yield columns, some.hit


def _columns_of(
    job: CastJob, scene: Scene, source: RayFile, arguments: Arguments, ids: Sequence[str] | None
) -> CastColumns:
    """Return the columns of an output; raise for labels and carried columns that are not possible."""
    objects = object_columns(scene, ids, job.query)
    given = {name: value for name, value in arguments.items() if name not in ("where", GROUPS)}
    spec = spec_of(job.query, source.dimension, objects, job.suffix, **given)
    if job.labels:
        objects, spec = with_labels(objects, scene, job.labels, spec)
    more = carried(source, job, list(spec.dtypes))
    if more:
        spec = spec.with_columns(more.dtypes, more.arrow_types)
    return CastColumns(spec, objects, more, group_column(source, job, arguments.get(GROUPS)))
