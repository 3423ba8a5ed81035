"""Casts of files of rays in bounded memory: blocks of rays to parts, parts to the output.

A block is a number of consecutive rays. Its results depend on no other block; they are a *part*, a file that
says which rays of which job it is of. The threads of this process, or a cluster, write the parts. The output
is the folder of the parts, or one file joined of them; where it has a row for each primitive, the parts are
added up. To continue is to skip the parts that are there, whole and right.

====================  ==================================================================================
module                does
====================  ==================================================================================
``casting``           `cast`: from arguments to a complete output, on this machine
``call``              the same for every runner: checks, then the run, errors and the summary
``arguments``         what a query takes besides rays: values, weights, options
``checks``            checks of arguments, before any work
``job``               what identifies a cast
``engine``            whole parts skipped, missing ones cast, all joined
``runner``            the interface of what runs blocks
``thread_runner``     threads that run them (``threads``): one reads, two query and write
``block_caster``      a block: read, queried, written
``blocks``            rows of a file of rays as blocks
``readers``           files of rays; several as one
``result_columns``    the results of a block as columns
``object_columns``    objects, ids and labels of what is hit
``carried_columns``   other columns of the file, carried to the output
``part``              part files, and the record at their end
``writers``           the writer of parts for each format (``parquet``, ``zarr_parts``, ``sums``)
``output``            the interface of outputs
``join``              one file (``join_formats``, ``append_file``, ``parquet_footer``)
``dataset``           the folder of parts
``sum_output``        sums of parts
``stream_output``     CSV to an open file
``cast_folder``       the folder of an unfinished output
``place``             the complete output, moved to its place
``steps``             the steps that change what is on the disk, for tests that stop there
``scenes``            what scenes are made of, and what identifies them
====================  ==================================================================================
"""

from raybox.casting.call import Summary
from raybox.casting.casting import cast
from raybox.casting.result_columns import QUERIES

__all__ = ["QUERIES", "Summary", "cast"]
