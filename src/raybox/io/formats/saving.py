"""``save``: geometry or results into a file, whole or not at all."""

import os
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybox.compiler.float_environment import in_default_environment
from raybox.errors import InvalidInput
from raybox.geometry import Boxes, Rays
from raybox.hits import AllHits, Hits
from raybox.io.formats import csv_table, parquet
from raybox.io.formats import numpy_arrays as arrays
from raybox.io.formats.columns import KINDS, RANGES, column_names
from raybox.io.formats.common import checked_texts, extension_problem, file_error, path_of, require
from raybox.validation import Array

Columns = Mapping[str, Array]
Saveable: TypeAlias = Boxes | Rays | Hits | AllHits | Columns


@in_default_environment
def save(path: str | os.PathLike[str], content: Saveable, *, ids: Sequence[str] | None = None) -> None:
    """Write boxes, rays or results into a file: ``.npz .npy .csv .parquet``.

    The file is written under another name beside its place and then renamed: there is never half a file, and
    an older one stays until the new one is complete.

    Parameters
    ----------
    path : str or path
        The file to write; ``docs/files.md`` lists the columns of each kind of content.
    content : Boxes, Rays, Hits, AllHits or dict
        The content; a dict of columns of one length is written as it is.
    ids : sequence of str, optional
        One for each box of the scene: a column ``id`` beside the boxes, or beside the ``index`` of results.
        Without, those of the boxes and `Hits.ids`, if there are any.

    Raises
    ------
    FileFormatError
        The file cannot be written there, or its extension is none of the four.
    InvalidInput
        The content is of another type, or there is not one id for each box.
    RayboxError
        The file is Parquet and pyarrow is not installed; the text gives the command.

    Examples
    --------
    >>> import raybox as rb, tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     boxes = rb.Boxes([[0, 0, 0], [2, 0, 0]], [[1, 1, 1], [3, 1, 1]])
    ...     rb.save(f"{folder}/two.csv", boxes, ids=["a", "b"])
    ...     print(open(f"{folder}/two.csv").read())
    min_x,min_y,min_z,max_x,max_y,max_z,id
    0.0,0.0,0.0,1.0,1.0,1.0,a
    2.0,0.0,0.0,3.0,1.0,1.0,b
    <BLANKLINE>
    """
    target = path_of(path)
    check_target(target)
    shape, write = WRITERS[target.suffix.lower()]
    shaped = shape(content, ids)
    with atomic_file(target) as file:
        write(file, shaped)


def check_target(path: Path, extensions: Sequence[str] = ()) -> None:
    """Raise `FileFormatError` if a file cannot be written there.

    For use before long work.
    """
    extensions = extensions or tuple(WRITERS)
    if path.suffix.lower() not in extensions:
        problem = extension_problem(path)
        raise file_error(path, f"cannot be written: {problem}", f"supported: {' '.join(extensions)}")
    if path.exists() and not path.is_file():
        raise file_error(path, "cannot be written: it is not a regular file", "give the path of a file")
    if not path.resolve().parent.is_dir():
        raise file_error(
            path, f"cannot be written: there is no folder {path.parent}", "make the folder first"
        )
    if path.suffix.lower() == ".parquet":
        require("pyarrow", "io", ".parquet")


@contextmanager
def atomic_file(path: Path) -> Iterator[BinaryIO]:
    """Yield a file to write.

    It replaces `path` once complete, and is removed on failure.
    """
    target = path.resolve()
    part = target.with_name(f".{secrets.token_hex(6)}.raybox-part")
    try:
        with part.open("xb") as file:
            yield file
        os.replace(part, target)
    except OSError as error:
        raise file_error(
            path, f"cannot be written: {error.strerror or error}", "check the disk and its permissions"
        ) from error
    finally:
        part.unlink(missing_ok=True)


def columns_of(content: Saveable, ids: Sequence[str] | None) -> Columns:
    """Return content as named columns of one length."""
    match content:
        case Boxes() | Rays():
            parts = arrays_of(content, ids)
            flat: dict[str, Array] = {}
            for name, array in parts.items():
                flat |= _flat_columns(name, array)
            return flat
        case Hits() | AllHits():
            columns = content.to_dict()
            own = columns.pop("id", None)
            head = {name: columns.pop(name) for name in ("ray", "index", "object") if name in columns}
            return head | _id_column(head["index"], ids, own) | columns
        case Mapping():
            return content
    raise InvalidInput(
        f"raybox saves boxes, rays, results and dicts of columns; got {type(content).__name__}"
    )


def _columns_with_nulls(content: Saveable, ids: Sequence[str] | None) -> Columns:
    """Return content as named columns; points of misses are masked."""
    columns = columns_of(content, ids)
    if not isinstance(content, Hits):
        return columns
    missed = ~content.hit.ravel()
    return {
        name: np.ma.array(column, mask=missed) if name in {"x", "y", "z"} else column
        for name, column in columns.items()
    }


def arrays_of(content: Saveable, ids: Sequence[str] | None) -> Columns:
    """Return content as the arrays of its container; results as columns."""
    if isinstance(content, Boxes):
        ids = content.ids.tolist() if ids is None and content.ids is not None else ids
        if ids is not None and len(ids) != len(content):
            raise InvalidInput(f"ids must name every box: got {len(ids)} for {len(content)} boxes")
        return {"lower": content.lower, "upper": content.upper} | (
            {} if ids is None else {"id": np.array(checked_texts(ids), dtype=str)}
        )
    if isinstance(content, Rays):
        ranges = {"t_min": content.t_min, "t_max": content.t_max}
        usual = (content.t_min == 0.0).all() and (content.t_max == np.inf).all()
        return {"origins": content.origins, "directions": content.directions} | ({} if usual else ranges)
    return columns_of(content, ids)


def table_of(content: Saveable, ids: Sequence[str] | None) -> Array:
    """Return content as one table.

    Of numbers for geometry, with named columns for results.
    """
    if isinstance(content, Boxes | Rays):
        parts = arrays_of(content, None)
        width = content.ndim_space if isinstance(content, Rays) else content.lower.shape[1]
        if "t_min" in parts and width == 2:
            raise InvalidInput("an .npy table has no room for the ranges of rays in 2D; save them as .npz")
        return np.column_stack(
            [a.reshape(-1) if n in RANGES else a.reshape(-1, width) for n, a in parts.items()]
        )
    columns = columns_of(content, ids)
    table = np.empty(
        len(next(iter(columns.values()), ())), dtype=[(name, c.dtype) for name, c in columns.items()]
    )
    for name, column in columns.items():
        table[name] = column
    return table


def _flat_columns(name: str, array: Array) -> dict[str, Array]:
    if not any(name in arrays for arrays in KINDS.values()):
        return {name: array.reshape(-1)}
    flat = array.reshape(-1, array.shape[-1])
    return dict(zip(column_names(name, flat.shape[1]), flat.T, strict=True))


def _id_column(index: NDArray[np.int64], ids: Sequence[str] | None, own: Array | None) -> dict[str, Array]:
    """Return the column of the ids of the boxes hit, of ids or else of the hits' own.

    "" for a miss; no column without ids.
    """
    if ids is None:
        return {} if own is None else {"id": np.where(own == None, "", own).astype(str)}  # noqa: E711
    return {"id": np.array([*checked_texts(ids), ""], dtype=str)[index]}


WRITERS: dict[
    str, tuple[Callable[[Saveable, Sequence[str] | None], Any], Callable[[BinaryIO, Any], None]]
] = {
    ".npz": (arrays_of, arrays.write_npz),
    ".npy": (table_of, arrays.write_npy),
    ".csv": (columns_of, csv_table.write),
    ".parquet": (_columns_with_nulls, parquet.write),
}
