"""What identifies a cast, and what a process needs to run a block of it."""

from pathlib import Path
from typing import NamedTuple

from raybox.casting.columns import rows_of
from raybox.hits.file_columns import Reads
from raybox.io.formats.common import ReadOptions
from raybox.scene.file_queries import columns_of

SUMS, ROWS, ZARR = ".sums", ".rows", ".zarr"
SUFFIXES = (".npy", ".csv", ".npz", ".parquet", ZARR)
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
    """Whether the output is a folder: of Parquet, that of the parts."""
    digest: str = ""
    """Of all that determines the results, but for the rays and other rows of blocks."""
    folder: Path = Path()
    """Of the cast."""

    @property
    def reads(self) -> Reads:
        """What the files of rays hold."""
        return columns_of(self.query).reads

    @property
    def part_format(self) -> str:
        """The format of its parts."""
        return SUMS if rows_of(self.query) == "primitives" else self.rows_format

    @property
    def is_parts(self) -> bool:
        """Whether the output is the folder of the parts."""
        return self.is_dataset and self.suffix != ZARR

    @property
    def rows_format(self) -> str:
        """The format of parts that have rows of the output."""
        return _PART_FORMATS[self.suffix]
