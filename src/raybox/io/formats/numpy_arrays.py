"""NumPy's own formats: `.npz` with named arrays, `.npy` with one table. Nothing is unpickled.

========  =============================================================================================
.npz      boxes: ``lower upper [id]``; rays: ``origins directions [t_min t_max]``; points: ``points``
.npy      boxes: (M, 6) or (M, 4), rows ``lower, upper``;
          rays: (N, 6) or (N, 4), rows ``origin, direction``, or (N, 8) with ``t_min, t_max`` after;
          points: (N, 3) or (N, 2), or (N, 4) with a fourth number that is not read, as of KITTI;
          or (N,) with named columns, those of CSV
========  =============================================================================================
"""

import lzma
import math
import re
import struct
import tokenize
import zipfile
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np

from raybox.errors import FileFormatError
from raybox.io.formats.columns import (
    ACCEPTED,
    KINDS,
    RANGES,
    TableColumns,
    choose_kind,
    column_names,
    has_kind,
    is_flat,
)
from raybox.io.formats.common import FileArrays, Floats, Labels, ReadOptions, file_error, quoted
from raybox.io.formats.tables import (
    BLOCK_ROWS,
    LEFT_OUT,
    Announced,
    Column,
    RowBlock,
    Table,
    Wanted,
    exact_floats,
    whole,
)
from raybox.io.formats.typed_labels import is_label, label
from raybox.validation import Array, Dtype

NAMES = ("lower", "upper", "origins", "directions", *RANGES, "points")
WIDTHS = {"scene": (6, 4), "rays": (6, 4, 8, 3, 2), "points": (3, 2, 4)}
_LOCAL_HEADER = 30  # bytes of the header before a member of an archive
_LENGTHS = 26  # where it has the lengths of the name and of the extra field that follow it


class Header(NamedTuple):
    """The header of a `.npy` array, and where its numbers begin."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: Dtype
    start: int = 0


class NpyTable(Table):
    """The table of an `.npy` file, with named columns or without."""

    has_names = False

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            self._header = header(file, path.stat().st_size, path, "")
        shape, fields = self._header.shape, self._header.dtype.names
        self._is_named = fields is not None and len(shape) == 1
        self.rows = math.prod(shape[:-1] if len(shape) > 1 else shape)
        self.names = (
            list(fields or ())
            if self._is_named
            else [str(k) for k in range(shape[1] if len(shape) == 2 else 0)]
        )

    def announced(self) -> Announced:
        """Return the number of rows, and the bytes of all numbers."""
        return Announced(self.rows or 0, math.prod(self._header.shape) * self._header.dtype.itemsize)

    def layout(self, options: ReadOptions) -> TableColumns:
        """Return which columns to read; of columns without names, `options` decide."""
        if not self._is_named:
            check_numbers(self._header.dtype, self.path, "")
            return _unnamed(self._header.shape, self.path, options)
        return super().layout(options)

    def has_label(self, column: str) -> bool:
        """Return whether a column is of a type that labels have."""
        fields: Mapping[str, tuple[Any, ...]] = self._header.dtype.fields or {}
        return is_label(fields[column][0])

    def place(self, row: int, column: str) -> str:
        """Return the indices of a number."""
        return f"row {row} (the first is 0), column {column}" if self._is_named else f"[{row}, {column}]"

    def blocks(self, wanted: Wanted, row: int = 0, offset: int = 0) -> Iterator[RowBlock]:
        """Yield rows; columns are views of them."""
        length = self._header.shape[0]
        step = max(1, length) if wanted.at_once else BLOCK_ROWS
        with self.path.open("rb") as file:
            for start in range(offset, length, step):
                end = min(length, start + step)
                rows = _rows(file, self._header, start, end)
                columns = {name: self._column(rows, name) for name in (*wanted.numbers, *wanted.others)}
                columns |= {name: self.floats(columns[name], name, start) for name in wanted.numbers}
                yield RowBlock(start, start, end - start, columns)

    def _column(self, rows: Array, name: str) -> Array:
        """Return a column of rows."""
        found: Array = rows[name] if self._is_named else rows[:, int(name)]  # type: ignore[call-overload]
        return found


def _unnamed(shape: tuple[int, ...], path: Path, options: ReadOptions) -> TableColumns:
    """Return the columns of a table without names, by its width."""
    kind = "points" if options.origin is not None else options.kind
    width = shape[1] if len(shape) == 2 else 0
    if kind is None and width > 3:
        raise file_error(
            path,
            "does not say whether its rows are boxes or rays",
            'say kind "scene" or "rays" (kind=, --kind)',
        )
    if width not in WIDTHS[kind or "rays"]:
        known = ", ".join(map(str, sorted(WIDTHS[kind or "rays"])))
        for_kind = "for a scene" if kind == "scene" else f"for {kind or 'points'}"
        raise file_error(
            path, f"has shape {shape}", f"{for_kind}, give a table whose width is one of {known}"
        )
    names = [str(k) for k in range(width)]
    if width < 4 or kind == "points":
        return TableColumns("points", {"points": names[:3]}, {})
    half, of_kind = 3 if width > 4 else 2, ACCEPTED[kind][0]
    arrays = dict(zip(KINDS[of_kind], (names[:half], names[half : 2 * half]), strict=True))
    return TableColumns(
        of_kind, arrays | {name: [names[6 + k]] for k, name in enumerate(RANGES) if width == 8}, {}
    )


def _rows(file: BinaryIO, header: Header, begin: int, end: int) -> Array:
    """Return some rows of an array."""
    (length, *width), dtype = header.shape, header.dtype
    columns = width[0] if width else 1
    if not header.fortran:
        return _numbers(file, dtype, header.start + begin * columns * dtype.itemsize, (end - begin, *width))
    starts = (header.start + (k * length + begin) * dtype.itemsize for k in range(columns))
    return np.stack([_numbers(file, dtype, start, (end - begin,)) for start in starts], axis=-1)


def _numbers(file: BinaryIO, dtype: Dtype, start: int, shape: tuple[int, ...]) -> Array:
    file.seek(start)
    return np.fromfile(file, dtype, math.prod(shape)).reshape(shape)


Read = Callable[[str, int, int], Array]
"""(array, first row, end) -> some rows of it"""


class ArraysTable(Table):
    """Arrays with a row for each ray: ``lower`` has columns ``min_x min_y min_z``."""

    has_names = False

    def __init__(self, path: Path, shapes: Mapping[str, tuple[int, ...]], read: Read, step: int = 0) -> None:
        self.path, self._read, self._step = path, read, step or BLOCK_ROWS
        self._arrays = {name: column_names(name, *shape[1:]) for name, shape in shapes.items()}
        self.names = [name for names in self._arrays.values() for name in names]
        self.rows = next(iter(shapes.values()))[0]

    def place(self, row: int, column: str) -> str:
        """Return the array and the indices of a number."""
        array, names = next((array, names) for array, names in self._arrays.items() if column in names)
        return f"{array}{[row] if is_flat(array) else [row, names.index(column)]}"

    def blocks(self, wanted: Wanted, row: int = 0, offset: int = 0) -> Iterator[RowBlock]:
        """Yield rows; columns are views of the arrays."""
        needed = {*wanted.numbers, *wanted.others}
        for start in range(offset, self.rows or 0, self._step):
            end, columns = min(self.rows or 0, start + self._step), dict[str, Column]()
            for array, names in self._arrays.items():
                if needed.intersection(names):
                    rows = self._read(array, start, end)
                    columns |= {name: rows if is_flat(array) else rows[:, k] for k, name in enumerate(names)}
            columns |= {name: self.floats(columns[name], name, start) for name in wanted.numbers}
            yield RowBlock(start, start, end - start, columns)


def rows_match(shapes: Mapping[str, tuple[int, ...]]) -> bool:
    """Return whether all arrays have a row for each ray.

    Their shape is (N, 2) or (N, 3), and (N,) of flat ones.
    """
    lengths = {shape[:1] for shape in shapes.values()}
    widths = {shape[1:] for name, shape in shapes.items() if not is_flat(name)}
    flat = {shape[1:] for name, shape in shapes.items() if is_flat(name)}
    return len(lengths) == 1 and lengths != {()} and flat <= {()} and widths in (set(), {(2,)}, {(3,)})


def arrays_of(members: Iterable[str], path: Path, options: ReadOptions) -> list[str]:
    """Return the arrays of a kind of content, else all, as columns."""
    members = list(members)
    if not kinds_of(members):
        return members
    kind = choose_kind(kinds_of(members), path, options)
    return [name for name in (*KINDS[kind], *RANGES * (kind == "rays")) if name in members]


def kinds_of(arrays: Iterable[str]) -> list[str]:
    """Return the kinds of content that arrays make."""
    return [kind for kind in ("boxes", "rays", "points") if KINDS[kind].keys() <= set(arrays)]


def open_npz(path: Path, options: ReadOptions) -> Table | None:
    """Return the table of rays of an archive.

    None if it is compressed, or an array has not a row for each ray: then it is read whole.
    """
    with open_archive(path) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        if not members or any(info.compress_type for info in members.values()):
            return None
        places = {name: _place(path, members[name]) for name in arrays_of(members, path, options)}
        for name, place in places.items():
            if name in NAMES:
                check_numbers(place.dtype, path, name)
        if not rows_match(shapes := {name: place.shape for name, place in places.items()}):
            return None
        if any(place.fortran for place in places.values()) or archive.testzip():
            return None  # loaded whole, it raises an error that names the damaged member

    def read(name: str, begin: int, end: int) -> Array:
        with path.open("rb") as file:
            return _rows(file, places[name], begin, end)

    return ArraysTable(path, shapes, read)


@contextmanager
def open_archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """Yield an archive; its faults become errors in plain words."""
    try:
        with zipfile.ZipFile(path) as archive:
            yield archive
    except (NotImplementedError, RuntimeError) as error:
        problem = "is encrypted, or compressed by a method that Python does not have"
        raise file_error(path, problem, "save it with numpy.savez") from error
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, struct.error, UnicodeError) as error:
        member = re.search(r"'([^']*)\.npy'", str(error))
        place = member[1] if member else ""
        raise file_error(path, "its archive is damaged or cut off", "copy or save it again", place) from error


def _place(path: Path, info: zipfile.ZipInfo) -> Header:
    """Return the header of a member that is not compressed."""
    with path.open("rb") as file:
        file.seek(info.header_offset)
        local = file.read(_LOCAL_HEADER)
        name, extra = (int.from_bytes(local[_LENGTHS + k : _LENGTHS + k + 2], "little") for k in (0, 2))
        with open_archive(path) as archive, archive.open(info) as inside:
            found = header(inside, info.file_size, path, info.filename)
            return found._replace(start=found.start + info.header_offset + _LOCAL_HEADER + name + extra)


def announced_npz(path: Path) -> Announced:
    """Return the rows of the largest array, and the bytes of all."""
    sizes = [Announced()]
    with open_archive(path) as archive:
        for info in archive.infolist():
            name = info.filename.removesuffix(".npy").rpartition("/")[2]
            is_own = name in (*NAMES, "id", "vertices", "faces")
            with archive.open(info) as member, suppress(*() if is_own else (FileFormatError, ValueError)):
                shape = header(member, info.file_size, path, info.filename).shape
                rows = math.prod(shape[:-1] if len(shape) > 1 else shape) if is_own else 0
                sizes.append(Announced(rows, info.file_size))
    return Announced(max(size.rows for size in sizes), sum(size.bytes for size in sizes))


def read_npz(path: Path, options: ReadOptions) -> FileArrays:
    """Return the arrays of an `.npz` file.

    Others with a value for each box are labels.
    """
    members, loaded = load_members(path, (*NAMES, "id"))
    if not kinds_of(loaded):
        columns = open_npz(path, options) if has_kind({*map(str.lower, members)}) else None
        if columns is not None:
            return whole(columns, options)
        problem = f"has no arrays of boxes, rays or points, but {quoted(' '.join(members))}"
        raise file_error(path, problem, "name them lower, upper or origins, directions or points")
    arrays = {name: as_floats(loaded[name], path, name) for name in NAMES if name in loaded}
    labels = _labels(path, members, loaded, arrays["lower"].shape[:1]) if "lower" in arrays else {}
    others = len(members) - len({*arrays, *labels}) if "lower" in arrays else 0
    left_out = {LEFT_OUT: others} if others else {}
    return FileArrays(arrays, lambda array, index: f"{array}{list(index)}", labels, left_out=left_out)


def _labels(path: Path, members: list[str], loaded: dict[str, Array], count: tuple[int, ...]) -> Labels:
    """Return the ids, and other arrays with a value a box."""
    ids = loaded.get("id")
    if ids is not None and ids.shape != count:
        problem = f"has {ids.size} ids for {count[0]} boxes"
        raise file_error(path, problem, "give one id for each box", "id")
    with open_archive(path) as archive:
        rest = [name for name in members if name not in NAMES and _is_label(archive, name, count)]
    return {name: label(name, [array]) for name, array in load_members(path, rest)[1].items()}


def _is_label(archive: zipfile.ZipFile, name: str, count: tuple[int, ...]) -> bool:
    """Return whether an array has a value for each box."""
    info = archive.NameToInfo.get(f"{name}.npy")
    if info is None:
        return False
    with archive.open(info) as file:
        try:
            found = header(file, info.file_size, Path(name), name)
        except (FileFormatError, ValueError):
            return False  # an array that raybox does not read
    return found.shape == count and is_label(found.dtype)


def load_members(path: Path, names: Iterable[str]) -> tuple[list[str], dict[str, Array]]:
    """Return the names of all arrays of an `.npz` file, and those arrays of the given names that it has."""
    with open_archive(path) as archive:
        members = {info.filename.removesuffix(".npy"): info for info in archive.infolist()}
        for info in members.values():
            archive.open(info).close()  # compares the two names of a member: a damaged one would be ignored
        return list(members), {n: _member(archive, members[n], path) for n in names if n in members}


def _member(archive: zipfile.ZipFile, info: zipfile.ZipInfo, path: Path) -> Array:
    """Return one array of an archive, after a check of its header against its size."""
    with archive.open(info) as file:
        header(file, info.file_size, path, info.filename)
    with archive.open(info) as file:
        array = np.asarray(np.lib.format.read_array(file, allow_pickle=False))
        file.read()  # at the end of a member its checksum is compared
    return array


def load_array(path: Path) -> Array:
    """Return the array of an `.npy` file, after a check of its header against its size."""
    with path.open("rb") as file:
        header(file, path.stat().st_size, path, "")
        file.seek(0)
        return np.asarray(np.lib.format.read_array(file, allow_pickle=False))


def map_array(path: Path) -> Array:
    """Return the numbers of an `.npy` file, mapped, after a check of its header."""
    with path.open("rb") as file:
        if file.read(6) != np.lib.format.MAGIC_PREFIX:
            raise file_error(path, "is no .npy file", "write it with np.save")
        file.seek(0)
        check_numbers(header(file, path.stat().st_size, path, "").dtype, path, "")
    return np.asarray(np.load(path, allow_pickle=False, mmap_mode="r"))


def header(file: IO[bytes], size: int, path: Path, name: str) -> Header:
    """Return an array's header, checked against the bytes that follow before memory is allocated."""
    try:
        (version, minor), start = np.lib.format.read_magic(file), file.tell()
        length = int.from_bytes(file.read(2 if version == 1 else 4), "little")
        if version not in (1, 2, 3) or minor or length > size:
            raise ValueError
        file.seek(start)
        read = np.lib.format.read_array_header_1_0 if version == 1 else np.lib.format.read_array_header_2_0
        shape, fortran, dtype = read(file)
    except (ValueError, TypeError, SyntaxError, OverflowError, RecursionError, tokenize.TokenError) as error:
        problem = "has a damaged header" if size > file.tell() else "is cut off in its header"
        raise file_error(path, problem, "copy it again, or save it with numpy.save", name) from error
    if dtype.hasobject:
        raise file_error(
            path, "holds Python objects, which raybox does not unpickle", "save plain numbers", name
        )
    if any(length < 0 for length in shape):
        raise file_error(path, "has a damaged header: a negative length", "save it again", name)
    needed, there = math.prod(shape) * dtype.itemsize, size - file.tell()
    if needed != there:
        problem = f"{'is cut off' if needed > there else 'is too long'}: "
        problem += f"{needed} bytes of numbers announced, {there} there"
        raise file_error(path, problem, "copy the file again", name)
    return Header(shape, fortran, dtype, size - there)


def check_numbers(dtype: Dtype, path: Path, name: str) -> None:
    """Raise `FileFormatError` unless a dtype is one of real numbers."""
    if dtype.kind not in "fiub":
        found = "text" if dtype.kind in "SU" else dtype
        raise file_error(path, f"holds {found}, not real numbers", "save it as float64", name)


def as_floats(array: Array, path: Path, name: str) -> Floats:
    """Return an array of real numbers as float64."""
    check_numbers(array.dtype, path, name)
    return exact_floats(array, path, lambda index: f"{name}{list(index) or ''}")


def member(name: str) -> zipfile.ZipInfo:
    """Return an array's entry in an archive.

    Without a time, so that equal content gives equal files.
    """
    return zipfile.ZipInfo(f"{name}.npy")


def write_npz(out: BinaryIO, arrays: Mapping[str, Array]) -> None:
    """Write named arrays, not compressed: floats hardly shrink."""
    with zipfile.ZipFile(out, "w") as archive:
        for name, array in arrays.items():
            with archive.open(member(name), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)


def write_npy(file: BinaryIO, table: Array) -> None:
    """Write one table of numbers."""
    np.save(file, table, allow_pickle=False)
