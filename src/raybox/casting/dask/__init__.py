"""Casts of files and queries of Dask collections on a cluster of dask.distributed.

A task casts some blocks of rays, each into a part; the client joins the parts. Tasks do not carry the scene:
workers map its files. The parts of a worker that dies are valid; those it was writing are written again.

=================  ==========================================================================
module             does
=================  ==========================================================================
``casting``        ``cast``: from arguments to a complete file
``collections``    ``ask``: Dask arrays and data frames of rays in, the same of results out
``connection``     the connection to a cluster; checks of the workers and of shared folders
``runner``         where each block begins, tasks submitted, parts collected
``job_files``      the scene, ids and arrays, in files for the workers
``job_plugin``     loads a scene on workers that join, and unloads it; slower timers meanwhile
``worker``         what runs on workers
=================  ==========================================================================
"""

from raybox.casting.dask.casting import cast
from raybox.casting.dask.collections import ask

__all__ = ["ask", "cast"]
