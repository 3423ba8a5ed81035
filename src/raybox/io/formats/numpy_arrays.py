"""NumPy's own formats: `.npz` with named arrays, `.npy` with one table. Nothing is unpickled.

========  =============================================================================================
.npz      boxes: ``lower upper [id]``; rays: ``origins directions [t_min t_max]``; points: ``points``
.npy      boxes: (M, 6) or (M, 4), rows ``lower, upper``;
          rays: (N, 6) or (N, 4), rows ``origin, direction``, or (N, 8) with ``t_min, t_max`` after;
          points: (N, 3) or (N, 2)
========  =============================================================================================
"""

import math
import zipfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, BinaryIO, NamedTuple

import numpy as np

from raybox.io.formats.assembly import KINDS, RANGES
from raybox.io.formats.common import FileArrays, Floats, Labels, ReadOptions, file_error, quoted
from raybox.validation import Array, Dtype

NAMES = ("lower", "upper", "origins", "directions", *RANGES, "points")
WIDTHS = {"scene": (6, 4), "rays": (6, 4, 8, 3, 2)}


def read_npz(path: Path, options: ReadOptions) -> FileArrays:
    """Return the arrays of an `.npz` file that raybox uses."""
    members, loaded = load_members(path, (*NAMES, "id"))
    ids = loaded.pop("id", None)
    if not any(set(arrays) <= set(loaded) for arrays in KINDS.values()):
        problem = f"has no arrays of boxes, rays or points, but {quoted(' '.join(members))}"
        raise file_error(path, problem, "name them lower, upper or origins, directions or points")
    arrays = {name: as_floats(array, path, name) for name, array in loaded.items()}
    return FileArrays(arrays, lambda array, index: f"{array}{list(index)}", _labels(ids, arrays, path))


def load_members(path: Path, names: Iterable[str]) -> tuple[list[str], dict[str, Array]]:
    """Return the names of all arrays of an `.npz` file, and those arrays of the given names that it has."""
    with zipfile.ZipFile(path) as archive:
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


def read_npy(path: Path, options: ReadOptions) -> FileArrays:
    """Return the arrays of one table of numbers.

    Without ``options.kind`` its width decides, or an error.
    """
    table = as_floats(load_array(path), path, "")
    kind = table_kind(table.shape, path, options)
    return FileArrays(split(table, kind), lambda array, index: cell(array, index, table.shape[1]))


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


def table_kind(shape: tuple[int, ...], path: Path, options: ReadOptions) -> str | None:
    """Return the kind of content in a table of this shape."""
    kind = options.kind or ("rays" if options.origin else None)
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
    return kind


def split(table: Floats, kind: str | None) -> dict[str, Floats]:
    """Return the arrays that the columns of a table make."""
    width = table.shape[1]
    if width < 4:
        return {"points": table}
    half = 3 if width > 4 else 2
    first, second = KINDS["boxes" if kind == "scene" else "rays"]
    arrays = {first: table[:, :half], second: table[:, half : 2 * half]}
    return arrays | {name: table[:, 6 + k] for k, name in enumerate(RANGES) if width == 8}


def cell(array: str, index: tuple[int, ...], width: int) -> str:
    """Return the place in the table of a number of one of its arrays."""
    if array in RANGES:
        return str([*index, 6 + RANGES.index(array)])
    second = array in ("upper", "directions")
    return str([index[0], index[1] + second * (3 if width > 4 else 2)])


class Header(NamedTuple):
    """The header of a `.npy` array."""

    shape: tuple[int, ...]
    fortran: bool
    dtype: Dtype


def header(file: IO[bytes], size: int, path: Path, name: str) -> Header:
    """Return an array's header, checked against the bytes that follow before memory is allocated."""
    (version, minor), start = np.lib.format.read_magic(file), file.tell()
    length = int.from_bytes(file.read(2 if version == 1 else 4), "little")
    if version not in (1, 2, 3) or minor or length > size:
        raise file_error(path, "has a damaged header", "save it again with numpy.save", name)
    file.seek(start)
    read = np.lib.format.read_array_header_1_0 if version == 1 else np.lib.format.read_array_header_2_0
    shape, fortran, dtype = read(file)
    if dtype.hasobject:
        raise file_error(
            path, "holds Python objects, which raybox does not unpickle", "save plain numbers", name
        )
    if any(length < 0 for length in shape):
        raise file_error(path, f"has a damaged header: shape {shape}", "save it again with numpy.save", name)
    needed, there = math.prod(shape) * dtype.itemsize, size - file.tell()
    if needed != there:
        problem = f"{'is cut off' if needed > there else 'is too long'}: "
        problem += f"{needed} bytes of numbers announced, {there} there"
        raise file_error(path, problem, "copy the file again", name)
    return Header(shape, fortran, dtype)


def check_numbers(dtype: Dtype, path: Path, name: str) -> None:
    """Raise `FileFormatError` unless a dtype is one of real numbers."""
    if dtype.kind not in "fiub":
        found = "text" if dtype.kind in "SU" else dtype
        raise file_error(path, f"holds {found}, not real numbers", "save it as float64", name)


def as_floats(array: Array, path: Path, name: str) -> Floats:
    """Return an array of real numbers as float64."""
    check_numbers(array.dtype, path, name)
    return array.astype(np.float64, copy=False)


def _labels(ids: Array | None, arrays: Mapping[str, Floats], path: Path) -> Labels:
    if ids is None or "lower" not in arrays:
        return {}
    if ids.shape != arrays["lower"].shape[:1]:
        raise file_error(
            path, f"has {ids.size} ids for {len(arrays['lower'])} boxes", "give one id for each box", "id"
        )
    return {"id": [str(value) for value in ids.tolist()]}


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
