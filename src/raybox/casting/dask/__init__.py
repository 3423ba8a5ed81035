"""Casts on a cluster of dask.distributed: its tasks cast blocks, as `raybox.casting.cast_blocks` does.

Dask itself runs lost tasks again, and moves them. The client finishes the output.

==============  =============================================================
module          does
==============  =============================================================
``connection``  the connection; checks of the workers and of shared folders
``runner``      tasks submitted, a limited number at a time, parts collected
``worker``      what runs on workers
==============  =============================================================
"""
