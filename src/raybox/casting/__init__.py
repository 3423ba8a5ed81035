"""Casts of files of rays in bounded memory: blocks of rays to parts, and one pass to the output.

Three nouns. A *job* is a scene, a query with its arguments, and options. A *part* is the results of a block
of rays: a file that is whole or not there, with a record of all that it was made of. An *output* is what the
parts become. Two verbs: blocks are cast, by threads of this process, a cluster, or any other scheduler, and
the output is finished. To continue is to skip the parts that count.

===================  ==================================================================================
module               does
===================  ==================================================================================
``casting``          `cast`, `cast_blocks`, `finish`
``call``             the arguments of a call, checked (``checks``, ``arguments``)
``engine``           parts that count are kept, missing ones cast, all finished
``stored_parts``     which parts of earlier calls count
``runner``           threads that cast blocks: one reads, two query and write; ``dask``: a cluster
``caster``           a block: read, queried, written
``blocks``           rows of a file of rays as blocks
``readers``          files of rays; several as one
``result_columns``   the results of a block as columns
``object_columns``   objects, ids and labels of what is hit
``carried_columns``  other columns of the file, carried to the output
``part``             part files, and their records
``writers``          the writer of parts for each format (``parquet``)
``sum_parts``        parts of sums (``sums``)
``finishing``        the output of the parts (``outputs``, ``parquet_footer``)
``cast_folder``      the folder of an unfinished output
``job_files``        what other processes need of a cast
``job``, ``scenes``  what identifies a cast
``errors``           errors of the system in words
===================  ==================================================================================
"""

from raybox.casting.casting import cast, cast_blocks, finish
from raybox.casting.engine import Summary
from raybox.casting.result_columns import QUERIES

__all__ = ["QUERIES", "Summary", "cast", "cast_blocks", "finish"]
