"""From a cast to the rows of its output: results appended chunk by chunk, or sums written at the end."""

from collections.abc import Callable
from contextlib import closing

from raybox.io.chunked import cast_arguments, pipeline
from raybox.io.chunked.chunks import Position
from raybox.io.chunked.journal import CastProgress, Journal
from raybox.io.chunked.pipeline import CastJob
from raybox.io.chunked.result_columns import OutputSpec, rows_of
from raybox.io.chunked.sum_stage import Sums, SumStage
from raybox.io.chunked.writer_stage import WriterStage
from raybox.io.chunked.writers import Writer


def write_output(
    job: CastJob, spec: OutputSpec, open_writer: Callable[[], Writer], journal: Journal | None
) -> CastProgress:
    """Cast the rest of a file, and complete the output; return the progress."""
    if rows_of(job.query) == "primitives":
        return _write_sums(job, spec, open_writer, journal)
    with closing(open_writer()) as writer:
        if journal:
            writer.files.add_checksums(journal.progress.checksums)
        start = journal.progress.position if journal else Position()
        carried = job.carried.open(start) if job.carried else None
        done = pipeline.run(job, WriterStage(writer, journal, job.buffers, carried, job.objects))
        writer.finish(done.rows)
    return done


def _write_sums(
    job: CastJob, spec: OutputSpec, open_writer: Callable[[], Writer], journal: Journal | None
) -> CastProgress:
    """Add up the rest of a file, and write a row for each primitive; return the progress."""
    sums = Sums(spec.dtypes, len(job.scene))
    done = pipeline.run(job, SumStage(sums, journal, job.buffers))
    cast_arguments.check_end(job.query, job.arguments, done.position.first)
    with closing(open_writer()) as writer:
        rows, hit_count = sums.write(writer)
        writer.finish(rows)
    return done._replace(rows=rows, hit_count=hit_count)
