"""Which writer appends to which format, and whether an output can be written at all."""

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from raybox.files.common import broken, require
from raybox.files.saving import check_target
from raybox.stream.answers import Columns
from raybox.stream.columns import Npz, Zarr
from raybox.stream.journal import folder_of
from raybox.stream.parquet import Parquet
from raybox.stream.part_files import Parts
from raybox.stream.plain import Csv, Npy, Task


class Sink(Protocol):
    """Rows are added in order; ``finish`` makes a whole file of them, as often as it is asked to."""

    @property
    def parts(self) -> Parts:
        """The files that grow; cut back to lengths that were theirs, they hold what they held then."""
        ...

    def add(self, columns: Columns) -> None:
        """Append rows; the column ``id`` is the sink's to add."""
        ...

    def finish(self, rows: int) -> None:
        """Write what a whole file has and a growing one has not."""
        ...

    def close(self) -> None:
        """Close the files."""
        ...


SINKS: dict[str, Callable[[Task, dict[str, int]], Sink]] = {
    ".npz": Npz,
    ".npy": Npy,
    ".csv": Csv,
    ".parquet": Parquet,
    ".zarr": Zarr,
}


def check_out(path: Path) -> None:
    """Refuse, before any work, a place that cannot be written to."""
    if path.suffix.lower() != ".zarr":
        check_target(path, tuple(SINKS))
        return
    if path.exists() and not folder_of(path).exists():
        raise broken(path, "is there already", "remove it first, or give another name")
    if not path.resolve().parent.is_dir():
        raise broken(path, f"cannot be written: there is no folder {path.parent}", "make the folder first")
    require("zarr", "zarr", ".zarr")
