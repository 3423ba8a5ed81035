"""Casts of files of rays in bounded memory: read, query and write chunk by chunk.

A chunk is a number of consecutive rays, numbered by its first; its results depend on no other chunk. Where
the output has a row for each primitive, those of all chunks are added up.
One thread reads chunks, two run the query with the workers of the call, one writes; queues of one chunk
connect them.

==================  ===================================================================================
module              does
==================  ===================================================================================
``casting``         ``cast``: from arguments to a complete file
``cast_checks``     checks of its arguments, and what identifies a cast
``cast_arguments``  what a query takes beside rays: values, weights, options
``output``          rows appended chunk by chunk (``writer_stage``), or sums of all (``sum_stage``)
``pipeline``        the threads (``stages``), progress, what is stored when one of them fails
``chunks``          row blocks of a file, put together to chunks of one size
``readers``         files of rays: blocks of a table of ``io/formats``, or the whole file
``joined_files``    several files of rays as one
``object_columns``  objects, ids and labels of what is hit
``carried_columns`` other columns of the file, carried to the output
``result_columns``  a chunk's results as columns
``writers``         the writer for each format; ``parquet``
``part_files``      files that are appended to
``output_folder``   the folder beside an output: its job, durable writes
``output_lock``     the lock of that folder: one process at a time
``journal``         the job and its progress, for the call that resumes it
``partitioned``     the interface of a scene in parts
==================  ===================================================================================
"""

from raybox.io.chunked.casting import Summary, cast
from raybox.io.chunked.result_columns import QUERIES

__all__ = ["QUERIES", "Summary", "cast"]
