"""NumPy's own formats: `.npz` with named arrays, `.npy` with one table. Nothing is unpickled.

========  =============================================================================================
.npz      boxes: ``lower upper [id]``; rays: ``origins directions [t_min t_max]``; points: ``points``
.npy      boxes: (M, 6) or (M, 4), rows ``lower, upper``;
          rays: (N, 6) or (N, 4), rows ``origin, direction``, or (N, 8) with ``t_min, t_max`` after;
          points: (N, 3) or (N, 2), or (N, 4) with a fourth number that is not read, as of KITTI;
          or (N,) with named columns, those of CSV; or any (N, M) with a layout
.bin      rows of float32 without a header, as of KITTI and nuScenes, with a layout
========  =============================================================================================
"""

import lzma
import math
import re
import struct
import sys
import tokenize
import zipfile
import zlib
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, BinaryIO, NamedTuple

import numpy as np
from numpy.typing import NDArray

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
    kinds_of,
    layout_names,
    unnamed_error,
)
from raybox.io.formats.common import FileArrays, Floats, Labels, ReadOptions, file_error, quoted
from raybox.io.formats.tables import (
    BLOCK_ROWS,
    LEFT_OUT,
    Announced,
    RowBlock,
    Table,
    Wanted,
    check_numbers,
    exact_floats,
    whole,
)
from raybox.io.formats.typed_labels import is_label, label
from raybox.validation import Array, Dtype

NAMES = ("lower", "upper", "origins", "directions", *RANGES, "points")
WIDTHS = {"scene": (6, 4), "boxes": (6, 4), "rays": (6, 4, 8, 3, 2), "points": (3, 2, 4)}
_LOCAL_HEADER = 30  # bytes of the header before a member of an archive
_LENGTHS = struct.Struct("<26xHH")  # in it: of the name and of the extra field that follow it


class Header(NamedTuple):
    """The header of a `.npy` array, and where its numbers begin."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: Dtype
    start: int = 0


class RowsTable(Table):
    """Rows of numbers that are read by their place."""

    has_names = False
    dtypes: Mapping[str, Dtype] = MappingProxyType({})  # of columns, where they differ
    step = BLOCK_ROWS
    chunk = 1  # rows that are read together at least

    @abstractmethod
    def columns(self, names: Iterable[str], start: int, end: int) -> dict[str, Array]:
        """Return columns of some rows."""

    def blocks(self, wanted: Wanted, row: int = 0, offset: int = 0) -> Iterator[RowBlock]:
        """Yield rows; columns are views of the arrays."""
        rows = self.rows or 0
        step = max(1, rows) if wanted.at_once else self.step
        for start in range(offset, rows, step):
            end = min(rows, start + step)
            columns = self.columns([*wanted.numbers, *wanted.others], start, end)
            for name in wanted.numbers:
                place = lambda index, name=name, row=start: self.place(row + (*index, 0)[0], name)  # noqa: E731
                columns[name] = exact_floats(columns[name], self.path, place)
            yield RowBlock(start, start, end - start, columns)

    def has_label(self, column: str) -> bool:
        """Return whether a column is of a type that labels have."""
        return column not in self.dtypes or is_label(self.dtypes[column])

    def block_at(self, row: int) -> tuple[int, int]:
        """Return where the chunk of a row begins."""
        start = row // self.chunk * self.chunk
        return start, start


class NpyTable(RowsTable):
    """The table of an `.npy` file, with named columns, or with those of a layout, or without."""

    def __init__(self, path: Path, options: ReadOptions) -> None:
        self.path, self._given = path, layout_names(options.layout)
        self._header = self._read_header()
        shape, dtype = self._header.shape, self._header.dtype
        fields: Mapping[str, tuple[Any, ...]] = (len(shape) == 1 and dtype.fields) or {}
        self.is_bare, self.dtypes = not fields, {name: field[0] for name, field in fields.items()}
        self.rows = math.prod(shape[:-1] if len(shape) > 1 else shape)
        self.names = [*fields] or self._given or [str(k) for k in range(shape[1] if len(shape) == 2 else 0)]

    def _read_header(self) -> Header:
        with self.path.open("rb") as file:
            return header(file, self.path.stat().st_size, self.path, "")

    def announced(self) -> Announced:
        """Return the number of rows, and the bytes of all numbers."""
        return Announced(self.rows or 0, math.prod(self._header.shape) * self._header.dtype.itemsize)

    def layout(self, options: ReadOptions) -> TableColumns:
        """Return which columns to read; of columns without names, `options` decide."""
        if self.is_bare:
            check_numbers(self._header.dtype, self.path, "")
            if options.layout is None:
                self.names = _layout_of(self._header.shape, self.path, options)
            elif self._header.shape[1:] != (len(self.names),):
                problem = f"has shape {self._header.shape}, while layout has {len(self.names)} names"
                raise file_error(self.path, problem, "name each column of a table")
        return super().layout(options)

    def place(self, row: int, column: str) -> str:
        """Return the indices of a number, or its row and column."""
        is_unnamed = self.is_bare and not self._given
        return f"[{row}, {self.names.index(column)}]" if is_unnamed else super().place(row, column)

    def columns(self, names: Iterable[str], start: int, end: int) -> dict[str, Array]:
        """Return columns of some rows."""
        rows: NDArray[Any] = _rows(self.path, self._header, start, end)
        if self.is_bare:
            return {name: rows[:, self.names.index(name)] for name in names}
        return {name: _text_checked(rows[name], self.path, f"column {name}") for name in names}


class BinTable(NpyTable):
    """Rows of float32 without a header, whose columns a layout names: scans of KITTI and nuScenes."""

    def _read_header(self) -> Header:
        size, dtype = self.path.stat().st_size, np.dtype("<f4")
        if self._given is None:
            problem = "holds numbers without names (x,y,z,i of KITTI, x,y,z,i,ring of nuScenes)"
            raise unnamed_error(self.path, problem, ReadOptions())
        columns = len(self._given)
        width = dtype.itemsize * columns
        if size % width:
            problem = f"its {size:,} bytes are no whole number of rows of {columns} float32 ({width} bytes)"
            raise file_error(self.path, problem, "correct layout, or copy the file again")
        return Header((size // width, columns), False, dtype)


def _layout_of(shape: tuple[int, ...], path: Path, options: ReadOptions) -> list[str]:
    """Return the columns of a table without names, by its width."""
    kind = "points" if options.origin is not None else options.kind
    width = shape[1] if len(shape) == 2 else 0
    if kind is None and width > 3:
        problem = "does not say whether its rows are boxes or rays"
        raise file_error(path, problem, 'say kind "scene" or "rays" (kind=, --kind)')
    widths, what = WIDTHS[kind or "rays"], "a scene" if kind == "scene" else kind or "points"
    if width not in widths:
        way_out = f"for {what}, give a table whose width is one of {', '.join(map(str, sorted(widths)))}"
        raise file_error(path, f"has shape {shape}", way_out)
    if width < 4 or kind == "points":
        return [*"xyz", "other"][:width]
    arrays, axes = KINDS[ACCEPTED[kind][0]][0], 3 if width > 4 else 2
    names = [name for array in arrays for name in column_names(array, axes)]
    return [*names, *RANGES][:width]


def _rows(path: Path, header: Header, begin: int, end: int) -> Array:
    """Return some rows of an array."""
    (length, *width), dtype = header.shape, header.dtype
    columns = math.prod(width)

    def numbers(start: int, shape: tuple[int, ...]) -> Array:
        offset = header.start + start * dtype.itemsize
        return np.fromfile(path, dtype, math.prod(shape), offset=offset).reshape(shape)

    if not header.fortran:
        return numbers(begin * columns, (end - begin, *width))
    return np.stack([numbers(k * length + begin, (end - begin,)) for k in range(columns)], axis=-1)


class ArraysTable(RowsTable):
    """Arrays with a row for each ray, by `read(array, start, end)`; of ``lower``, columns ``min_x …``."""

    def __init__(
        self, path: Path, arrays: Mapping[str, Header | Array], read: Callable[[str, int, int], Array]
    ) -> None:
        self.path, self._read = path, read
        self.dtypes = {name: array.dtype for name, array in arrays.items()}
        for name in filter(NAMES.__contains__, arrays):
            check_numbers(self.dtypes[name], path, name)
        self._arrays = {name: column_names(name, *array.shape[1:]) for name, array in arrays.items()}
        self.names = [name for names in self._arrays.values() for name in names]
        self.rows = next(iter(arrays.values())).shape[0]

    def place(self, row: int, column: str) -> str:
        """Return the array and the indices of a number."""
        array, names = next((array, names) for array, names in self._arrays.items() if column in names)
        return f"{array}{[row] if is_flat(array) else [row, names.index(column)]}"

    def columns(self, names: Iterable[str], start: int, end: int) -> dict[str, Array]:
        """Return columns of some rows, of the arrays that have them."""
        columns, needed = dict[str, Array](), {*names}
        for array, own in self._arrays.items():
            if needed.intersection(own):
                rows = self._read(array, start, end)
                columns |= zip(own, [rows] if is_flat(array) else rows.T, strict=True)
        return columns


def rows_match(arrays: Mapping[str, Header | Array]) -> bool:
    """Return whether all arrays have N rows: (N, 2) or (N, 3), and (N,) of flat ones."""
    lengths = {array.shape[:1] for array in arrays.values()}
    widths = {array.shape[1:] for name, array in arrays.items() if not is_flat(name)}
    flat = {array.shape[1:] for name, array in arrays.items() if is_flat(name)}
    return len(lengths) == 1 and lengths != {()} and flat <= {()} and widths in (set(), {(2,)}, {(3,)})


def arrays_of(members: Iterable[str], path: Path, options: ReadOptions) -> list[str]:
    """Return the arrays of a kind of content, else all, as columns."""
    members = list(members)
    found = kinds_of({*members} & {*NAMES})
    if not found:
        return members
    kind = choose_kind(found, path, options)
    return [name for name in (*found[kind], *RANGES * (kind == "rays")) if name in members]


def open_npz(path: Path, options: ReadOptions) -> Table | None:
    """Return the table of an archive; None if it is compressed, or arrays do not match: it is read whole."""
    with open_archive(path) as archive:
        if not archive.members or any(info.compress_type for info in archive.infolist()):
            return None
        headers = {name: archive.header(name) for name in arrays_of(archive.members, path, options)}
        if not rows_match(headers) or any(found.fortran for found in headers.values()) or archive.testzip():
            return None  # loaded whole, it raises an error that names the damaged member
    return ArraysTable(path, headers, lambda name, start, end: _rows(path, headers[name], start, end))


class Archive(zipfile.ZipFile):
    """The arrays of an `.npz` file, by name."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.path = path
        self.members = {info.filename.removesuffix(".npy"): info for info in self.infolist()}

    def header(self, name: str) -> Header:
        """Return the header of an array; it begins there if it is not compressed."""
        info = self.members[name]
        with self.open(info) as file:
            found = header(file, info.file_size, self.path, info.filename)
        with self.path.open("rb") as file:
            file.seek(info.header_offset)
            lengths = _LENGTHS.unpack(file.read(_LOCAL_HEADER))
        return found._replace(start=found.start + info.header_offset + _LOCAL_HEADER + sum(lengths))

    def arrays(self, names: Iterable[str] | None = None) -> dict[str, Array]:
        """Return the arrays of the given names that the archive has; None: all."""
        found = dict[str, Array]()
        for name in self.members if names is None else filter(self.members.__contains__, names):
            info = self.members[name]
            with self.open(info) as file:
                found[name] = _array(file, info.file_size, self.path, info.filename)
        return found


@contextmanager
def open_archive(path: Path) -> Iterator[Archive]:
    """Yield an archive; its faults become errors in plain words."""
    try:
        with Archive(path) as archive:
            for info in archive.infolist():
                archive.open(info).close()  # raises if the two names of a member differ
            yield archive
    except (NotImplementedError, RuntimeError) as error:
        problem = "is encrypted, or compressed by a method that Python does not have"
        raise file_error(path, problem, "save it with numpy.savez") from error
    except (zipfile.BadZipFile, zlib.error, lzma.LZMAError, EOFError, struct.error, UnicodeError) as error:
        member = re.search(r"'([^']*)\.npy'", str(error))
        place = member[1] if member else ""
        raise file_error(path, "its archive is damaged or cut off", "copy or save it again", place) from error


def announced_npz(path: Path) -> Announced:
    """Return the rows of the largest array, and the bytes of all."""
    rows, size = 0, 0
    with open_archive(path) as archive:
        for name, info in archive.members.items():
            is_own = name.rpartition("/")[2] in (*NAMES, "id", "vertices", "faces")
            with suppress(*() if is_own else (FileFormatError, ValueError)):
                shape = archive.header(name).shape
                rows = max(rows, math.prod(shape[:-1] if len(shape) > 1 else shape) * is_own)
                size += info.file_size
    return Announced(rows, size)


def read_npz(archive: Archive, options: ReadOptions) -> FileArrays:
    """Return the arrays of an `.npz` file; others with a value for each box are labels."""
    path, members = archive.path, archive.members
    wanted = arrays_of(members, path, options)  # others may be of any type, as for `open_npz`
    names = [name for name in NAMES if name in wanted]
    loaded = archive.arrays([*names, "id"] if "lower" in names else names)
    if not kinds_of(loaded):
        columns = archive.arrays() if has_kind({*map(str.lower, members)}) else {}
        if columns and rows_match(columns):
            return whole(ArraysTable(path, columns, lambda name, i, j: columns[name][i:j]), options)
        problem = f"has no arrays of boxes, rays or points, but {quoted(' '.join(members))}"
        raise file_error(path, problem, "name them lower, upper or origins, directions or points")
    arrays = {name: as_floats(loaded[name], path, name) for name in names}
    labels, left_out = Labels(), dict[str, int]()
    if "lower" in arrays:
        labels = _labels(archive, loaded.get("id"), arrays["lower"].shape[:1])
        others = len(members) - len({*arrays, *labels})
        left_out = {LEFT_OUT: others} if others else {}
    return FileArrays(arrays, lambda array, index: f"{array}{list(index)}", labels, left_out=left_out)


def _labels(archive: Archive, ids: Array | None, count: tuple[int, ...]) -> Labels:
    """Return the ids, and other arrays with a value a box."""
    if ids is not None and ids.shape != count:
        problem = f"has {ids.size} ids for {count[0]} boxes"
        raise file_error(archive.path, problem, "give one id for each box", "id")
    names = list[str]()
    for name in archive.members:
        with suppress(FileFormatError, ValueError):  # of an array that raybox does not read
            head = archive.header(name)
            if name not in NAMES and head.shape == count and is_label(head.dtype):
                names.append(name)
    return {name: label(name, [array]) for name, array in archive.arrays(names).items()}


def load_array(path: Path) -> Array:
    """Return the array of an `.npy` file, after a check of its header against its size."""
    with path.open("rb") as file:
        return _array(file, path.stat().st_size, path, "")


def _array(file: IO[bytes], size: int, path: Path, name: str) -> Array:
    header(file, size, path, name)
    file.seek(0)
    array = np.asarray(np.lib.format.read_array(file, allow_pickle=False))
    file.read()  # at the end of a member its checksum is compared
    return _text_checked(array, path, name)


def _text_checked(array: Array, path: Path, place: str) -> Array:
    """Return an array; raise for text that is not Unicode."""
    if array.dtype.kind == "U" and array.nbytes:
        codes = np.ascontiguousarray(array).view(f"{array.dtype.str[0]}u4")
        if codes.max() > sys.maxunicode:
            raise file_error(path, "holds text that is not Unicode", "save it again", place)
    return array


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
        problem = "holds Python objects, which raybox does not unpickle"
        raise file_error(path, problem, "save plain numbers", name)
    if any(length < 0 for length in shape):
        raise file_error(path, "has a damaged header: a negative length", "save it again", name)
    needed, there = math.prod(shape) * dtype.itemsize, size - file.tell()
    if needed != there:
        problem = f"{'is cut off' if needed > there else 'is too long'}: "
        problem += f"{needed} bytes of numbers announced, {there} there"
        raise file_error(path, problem, "copy the file again", name)
    return Header(shape, fortran, dtype, size - there)


def as_floats(array: Array, path: Path, name: str) -> Floats:
    """Return an array of real numbers as float64."""
    return exact_floats(array, path, lambda index: f"{name}{list(index) or ''}")


def member(name: str) -> zipfile.ZipInfo:
    """Return an array's entry in an archive, without a time: equal content gives equal files."""
    return zipfile.ZipInfo(f"{name}.npy")


def write_npz(out: BinaryIO, arrays: Mapping[str, Array]) -> None:
    """Write named arrays, not compressed: floats hardly shrink."""
    with zipfile.ZipFile(out, "w") as archive:
        for name, array in arrays.items():
            with archive.open(member(name), "w", force_zip64=True) as file:
                np.lib.format.write_array(file, np.asarray(array), allow_pickle=False)
