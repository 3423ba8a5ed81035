"""Files in, files out, in bounded memory: a file of rays is read, asked and answered chunk by chunk.

A chunk is so many rays in a row, numbered by its first; what is answered of one depends on nothing else.
One thread reads chunks, two ask them with the workers, one writes; between two of them one may wait.

==============  =================================================================================
module          does
==============  =================================================================================
``casting``     ``cast``: from arguments to a finished file
``pipeline``    the threads (``stages``), progress, what is left when one of them fails
``chunks``      pieces as files hold them, put together to chunks of one size
``sources``     which reader gives pieces: ``tables``, ``lines``, LAS, or all of it
``answers``     a chunk's results as columns
``writers``     which writer appends them to which format; ``parquet`` (``parquet_footer``)
``part_files``  files that grow
``begun``       the folder beside an output: whose it is, who may write, what survives the machine
``journal``     what was asked, how far it is done, for who resumes
==============  =================================================================================
"""

from raybox.io.chunked.casting import Summary, cast
from raybox.io.chunked.result_columns import QUERIES

__all__ = ["QUERIES", "Summary", "cast"]
