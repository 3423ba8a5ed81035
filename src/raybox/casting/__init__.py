"""Casts of files of rays in bounded memory: blocks of rays to parts, and one pass to the output.

Three nouns. A *job* is a scene, a query with its arguments, and options. A *part* is the results of a block
of rays: a file that is whole or not there, with a record of all that it was made of. An *output* is what the
parts become. Two verbs: blocks are cast, by threads of this process, a cluster, or any other scheduler, and
the output is finished. To continue is to skip the parts that count.

=================  ====================================================================================
module             does
=================  ====================================================================================
``casting``        `cast`, `cast_blocks`, `finish`
``call``           a checked call (``arguments``, ``job``, ``scenes``)
``engine``         parts that count are kept, missing ones cast, all finished
``runner``         threads that cast blocks: one reads, two query and write; ``cluster``: Dask
``caster``         a block: read (``readers``, ``blocks``), queried, written
``columns``        the results of a block as columns; ``carried_columns``: those of the file of rays
``part``           part files, and their records; ``sums``: those of sums
``writers``        the bytes of parts in each format
``finishing``      the output of the parts (``parquet_footer``)
``pair_files``     pairs of boxes as a file, by the same parts
``cast_folder``    the folder of an unfinished output; ``job_files``: what other processes need
=================  ====================================================================================
"""

from raybox.casting.casting import cast, cast_blocks, finish
from raybox.casting.columns import QUERIES
from raybox.casting.finishing import Summary

__all__ = ["QUERIES", "Summary", "cast", "cast_blocks", "finish"]
