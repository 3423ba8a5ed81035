"""Scenes and rays spread over a cluster of dask.distributed: files in and out, or Dask's own collections.

A task is one chunk of rays, written to a part of its own; parts are put together in order. The scene does not
travel with tasks: workers map its files. What a worker had done when it died is done; what it was at is done
again.

===============  ============================================================================
module           does
===============  ============================================================================
``casting``      ``cast``: from arguments to a finished file
``collections``  ``ask``: Dask arrays and data frames of rays in, the same of answers out
``crew``         the cluster: is it there, has it raybox, does it see the files
``running``      where each chunk begins; tasks handed out, parts taken in
``worker``       what is done at workers
``parts``        the folder of parts, and what makes a part whole
``joining``      parts put together
===============  ============================================================================
"""

from raybox.distributed.dask.casting import cast
from raybox.distributed.dask.collections import ask

__all__ = ["ask", "cast"]
