"""Files on the disk, and not in the system's memory as well.

Where a machine is a guest, pages that nobody had before are dear: copying answers into them took 27 % of all
processor time of a cast of 2 * 10^8 rays (profiled). Those of what is on the disk serve what is written next:
half as many rays again a second.
"""

import os

CACHED = 1 << 28  # bytes: a file so short stays, for whoever reads it next


def put_away(file: int) -> None:
    """Wait until a file would survive the machine; have the system let go of a long one's memory."""
    os.fsync(file)
    if os.fstat(file).st_size > CACHED and hasattr(os, "posix_fadvise"):
        os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
