"""Points of hits as `.las .laz .ply .pcd`: t, numbers, ids and labels are further dimensions of a point.

Misses have no point and are left out; the dimension `ray` numbers the rays that hit. Texts are codes, whose
table is a CSV file of its own, as are names that a format does not allow.
"""

from datetime import date
from itertools import count
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from raybox.errors import InvalidInput
from raybox.io.formats.common import checked_texts, require
from raybox.io.formats.saved_columns import Columns, plain, rows_of
from raybox.io.formats.typed_labels import objects
from raybox.validation import Array, Floats

SUFFIXES = (".las", ".laz", ".ply", ".pcd")
_LAS = (".las", ".laz")
_LAS_NAME, _NAME = 32, 200  # bytes of the name of a dimension, at most
_MAX_EXACT = 2**53
_STEPS = 2**31 - 2  # of a coordinate of LAS from its offset, at most
_PLY = {"i1": "char", "u1": "uchar", "i4": "int", "f8": "double"}
_SAVED = date(2000, 1, 1)  # LAS has a date; with one date, equal hits make equal files
_TABLE = ("dimension", "label", "code", "text")
_Dimension = tuple[Array, list[str] | None]


def write(file: BinaryIO, columns: Columns, given: Columns, suffix: str) -> Columns:
    """Write the points of hits, with `given` columns of rays; return the table of codes and of new names."""
    hit = np.not_equal(columns["index"], -1)
    xyz = np.stack([columns[axis][hit] if axis in columns else np.zeros(hit.sum()) for axis in "xyz"], -1)
    standard = _standard(given, suffix)
    columns = {**columns} | {name: values for name, values in given.items() if name not in standard}
    found, rows = dict[str, Array](), list[tuple[str, ...]]()
    for own, name in _names(columns, suffix).items():
        found[name], texts = _dimension(own, columns[own][hit], suffix)
        codes = enumerate(texts) if texts is not None else [("", "")] * (name != own)
        rows += [(name, own, str(code), text) for code, text in codes]
    if suffix in _LAS:
        _write_las(file, xyz, found, {name: own[hit] for name, own in standard.items()}, suffix)
    else:
        _write_rows(file, dict(zip("xyz", xyz.T, strict=True)) | found, int((~hit).sum()), suffix)
    return {name: objects(cells) for name, cells in zip(_TABLE, zip(*rows, strict=True), strict=False)}


def _standard(given: Columns, suffix: str) -> Columns:
    """Return the columns that are dimensions of LAS; raise `InvalidInput` for values beyond these."""
    if suffix not in _LAS:
        return {}
    known = {one.name: one for one in _las_header(suffix).point_format.dimensions if one.name not in "XYZ"}
    found = {name: values for name, values in given.items() if name in known}
    for name, values in found.items():
        kind = known[name]
        is_float = kind.kind.name == "FloatingPoint"
        if values.dtype.kind not in ("biuf" if is_float else "biu"):
            wanted = "numbers" if is_float else "integers"
        elif values.size and not (kind.min <= values.min() and values.max() <= kind.max):
            wanted = f"numbers from {kind.min} to {kind.max}"
        else:
            continue
        raise InvalidInput(
            f"the column {name!r} must be {wanted}, as LAS has a dimension of this name; got {values.dtype}"
            f"{f' from {values.min()} to {values.max()}' if values.dtype.kind in 'biuf' else ''}. "
            "Convert it, or rename it."
        )
    return found


def _names(columns: Columns, suffix: str) -> dict[str, str]:
    """Return the name of the dimension of each column: of 32 bytes in LAS, without blanks in PLY and PCD."""
    taken, size = {"x", "y", "z"}, _LAS_NAME if suffix in _LAS else _NAME
    if suffix in _LAS:
        taken |= {name.lower() for name in _las_header(suffix).point_format.dimension_names}
    found = dict[str, str]()
    for own in checked_texts(columns, "names of labels"):
        name = "".join(c if c.isprintable() and c != "\0" else "_" for c in own)
        if suffix not in _LAS:
            name = "".join(c if c.isascii() and not c.isspace() else "_" for c in name)
        if own not in ("x", "y", "z"):
            tails = ("" if number == 1 else f"_{number}" for number in count(1))
            names = ((name or "_").encode()[: size - len(t)].decode(errors="ignore") + t for t in tails)
            found[own] = next(unique for unique in names if unique.lower() not in taken)
            taken.add(found[own].lower())
    return found


def _dimension(name: str, values: NDArray[Any], suffix: str) -> _Dimension:
    """Return a column as numbers of a type that a format has; with texts, these are codes of them."""
    if values.dtype.kind in "OU":
        given = [value for value in values.tolist() if value is not None]
        is_full = len(given) == len(values)
        largest = 2**63 - 1 if is_full else _MAX_EXACT
        if {*map(type, given)} != {int} or max(map(abs, given)) > largest:
            return _codes(name, values)
        values = values.astype(np.int64) if is_full else plain(name, values)
    if values.dtype.kind == "b":
        return values.astype(np.uint8), None
    if values.dtype.kind == "f":
        return values.astype(np.float32 if suffix in _LAS and values.itemsize == 4 else np.float64), None
    if suffix in _LAS:
        return values, None
    largest = max(-int(values.min(initial=0)), int(values.max(initial=0)))
    if largest > _MAX_EXACT:
        return _codes(name, values)
    return values.astype(np.int32 if largest < 2**31 else np.float64), None


def _codes(name: str, values: NDArray[Any]) -> _Dimension:
    """Return texts as codes, in the order of their table; -1 for none."""
    texts = [None if value is None else str(value) for value in values.tolist()]
    known = sorted({text for text in texts if text is not None})
    checked_texts(known, f"values of {name!r}")
    codes: dict[str | None, int] = {text: code for code, text in enumerate(known)} | {None: -1}
    return np.array([codes[text] for text in texts], dtype=np.int32), known


def _write_rows(file: BinaryIO, fields: Columns, misses: int, suffix: str) -> None:
    """Write points as binary PLY or PCD."""
    kinds = {name: values.dtype.newbyteorder("<") for name, values in fields.items()}
    rows = rows_of(fields, is_named=True).astype([*kinds.items()])
    what = f"points of hits by raybox; {misses} misses are left out"
    if suffix == ".ply":
        properties = [f"property {_PLY[kind.str[1:]]} {name}" for name, kind in kinds.items()]
        lines = ["ply", "format binary_little_endian 1.0", f"comment {what}", f"element vertex {len(rows)}"]
        lines += [*properties, "end_header"]
    else:
        lines = [f"# .PCD v0.7, {what}", "VERSION 0.7", " ".join(["FIELDS", *kinds])]
        lines += [" ".join(["SIZE", *(str(kind.itemsize) for kind in kinds.values())])]
        lines += [" ".join(["TYPE", *(kind.kind.upper() for kind in kinds.values())])]
        lines += [" ".join(["COUNT", *"1" * len(kinds)]), f"WIDTH {len(rows)}", "HEIGHT 1"]
        lines += ["VIEWPOINT 0 0 0 1 0 0 0", f"POINTS {len(rows)}", "DATA binary"]
    file.write(("\n".join(lines) + "\n").encode("ascii"))
    file.write(rows.tobytes())


def _las_header(suffix: str) -> Any:
    """Return an empty header of LAS 1.4."""
    return require("laspy", "las", suffix).LasHeader(version="1.4", point_format=6)


def _write_las(file: BinaryIO, xyz: Floats, added: Columns, standard: Columns, suffix: str) -> None:
    """Write LAS 1.4; coordinates are rounded to the smallest power of ten that reaches all of them."""
    laspy, header = require("laspy", "las", suffix), _las_header(suffix)
    header.creation_date, header.generating_software = _SAVED, "raybox"
    header.global_encoding.wkt = True  # required of this point format
    header.add_extra_dims([laspy.ExtraBytesParams(name, v.dtype) for name, v in added.items()])
    header.offsets, header.scales = _las_steps(xyz)
    las = laspy.LasData(header)
    las.points = laspy.ScaleAwarePointRecord.zeros(len(xyz), header=header)
    las.x, las.y, las.z = xyz.T
    las.return_number[:], las.number_of_returns[:] = 1, 1
    for name, values in {**added, **standard}.items():
        las[name] = values
    las.write(file, do_compress=suffix == ".laz")


def _las_steps(xyz: Floats) -> tuple[Floats, Floats]:
    """Return offsets and scales of the axes of points."""
    lower, upper = (xyz.min(axis=0), xyz.max(axis=0)) if len(xyz) else (np.zeros(3), np.zeros(3))
    with np.errstate(over="ignore", invalid="ignore"):
        offsets = np.where(upper - lower >= 1, np.floor(lower), lower)
        spans = upper - offsets
    if not np.isfinite(spans).all():
        raise InvalidInput("points lie too far apart for LAS. Save them as .ply or .pcd.")
    steps = np.maximum(spans / _STEPS, 1e-300)
    return offsets, np.where(spans > 0, 10.0 ** np.ceil(np.log10(steps)), 1e-9)
