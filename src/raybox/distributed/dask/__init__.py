"""Casts of files and queries of Dask collections on a cluster of dask.distributed.

A task casts some chunks of rays, each into a part of its own; parts are joined in order. Tasks do not carry
the scene: workers map its files. The parts of a worker that dies are valid; those it was writing are written
again.

=================  ==========================================================================
module             does
=================  ==========================================================================
``casting``        ``cast``: from arguments to a complete file
``collections``    ``ask``: Dask arrays and data frames of rays in, the same of results out
``cluster``        the connection; checks of the workers and of shared folders
``tasks``          where each chunk begins; tasks submitted, parts collected
``worker``         what runs on workers
``worker_timers``  fewer samples of busy workers
``part_folder``    the folder of parts, and what makes a part valid
``join_parts``     parts appended to the output
=================  ==========================================================================
"""

from raybox.distributed.dask.casting import cast
from raybox.distributed.dask.collections import ask

__all__ = ["ask", "cast"]
