"""What identifies a cast, and what a process needs to run a block of it."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from raybox._version import __version__
from raybox.cast.result_columns import rows_of
from raybox.io.formats.common import ReadOptions
from raybox.store import checksum
from raybox.store.checksum import Facts

SUMS, ROWS, ZARR = ".sums", ".rows", ".zarr"
_PART_FORMATS = {".parquet": ".parquet", ".csv": ".csv", ".npy": ROWS, ".npz": ROWS, ZARR: ROWS}


class CastJob(NamedTuple):
    """What a process needs for a cast, but for the scene and arrays: small, and made of plain values."""

    rays: tuple[Path, ...]
    options: ReadOptions
    query: str
    size: int
    """Rays in a block."""
    labels: tuple[str, ...] = ()
    carry: tuple[str, ...] = ()
    suffix: str = ".csv"
    """The format of the output."""
    is_dataset: bool = False
    """Whether the output is the folder of the parts."""
    id: str = ""
    """Of all parts; equal for equal outputs. Empty until the folder is open."""
    folder: Path = Path()
    """Of the cast: parts are in its subfolder `part.PARTS`."""

    @property
    def part_format(self) -> str:
        """The format of its parts."""
        return SUMS if rows_of(self.query) == "primitives" else self.rows_format

    @property
    def rows_format(self) -> str:
        """The format of parts that have rows of the output."""
        return self.suffix if self.is_dataset else _PART_FORMATS[self.suffix]


def job_id(facts: Facts, rays: Sequence[Facts]) -> str:
    """Return the id of a job: the checksum of its facts and of the files of rays."""
    return checksum.of_facts({"job": facts, "rays": rays})


def job_facts(job: CastJob, scene: str, given: Facts) -> Facts:
    """Return what determines an output, but for the rays: calls with equal facts continue each other.

    given: checksums of ids, labels and arguments, by name.
    """
    origin = job.options.origin
    return {
        "raybox": __version__,
        "query": job.query,
        "scene": scene,
        "origin": None if origin is None else list(origin),
        "invalid": job.options.invalid,
        "layout": job.options.layout,
        "chunk": job.size,
        "output": f"a dataset of {job.suffix[1:]}" if job.is_dataset else f"one file, {job.suffix[1:]}",
        "carry": list(job.carry),
        **given,
    }
