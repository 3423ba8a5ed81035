"""Validation of input: convert, check, copy and freeze arrays. Inner functions do not check again.

Anything that `numpy.asarray` or DLPack accepts becomes a new float64 array, if float64 represents every
number exactly; otherwise `InvalidInput` is raised, and nothing is rounded. Input is never written to or
referenced.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from math import inf
from typing import TYPE_CHECKING, Any, NoReturn, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray

from raybox.errors import InvalidInput

Floats: TypeAlias = NDArray[np.float64]
Floats32: TypeAlias = NDArray[np.float32]
Ints: TypeAlias = NDArray[np.int64]
Ints32: TypeAlias = NDArray[np.int32]
Bools: TypeAlias = NDArray[np.bool_]
Array: TypeAlias = NDArray[np.generic]
"""An array of any dtype."""
A = TypeVar("A", bound=Array)
Dtype: TypeAlias = np.dtype[np.generic]


class SupportsDLPack(Protocol):
    """An array of another library, in this computer's memory."""

    def __dlpack__(self, *, stream: None = None) -> object: ...

    def __dlpack_device__(self) -> tuple[int, int]: ...


ArrayInput: TypeAlias = ArrayLike | SupportsDLPack
"""What users pass as an array: anything that `numpy.asarray` or DLPack accepts."""
MaskInput: TypeAlias = ArrayInput | Sequence[ArrayInput | None] | None
"""Which primitives rays may hit: a mask, or a list of one or None for each geometry; None for all."""

_FLOAT64, _INT64 = np.dtype(np.float64), np.dtype(np.int64)
_MAX_EXACT = 2.0**53  # below it, every integer is a float64; above, NumPy may round lists that mix types
_AXES = ("xy", "xyz", "wxyz")
"""Letters of the axes of points, and of quaternions, in the order in which they are read."""
NO_MASK = np.zeros(0, np.bool_)
NO_MASK.setflags(write=False)

_WAYS_OUT = {
    "c": "Pass the real part: x.real",
    "O": "Round them yourself if that is meant: np.asarray(x, dtype=np.float64)",
    "S": "Parse them first: np.asarray(x, dtype=np.float64)",
    "U": "Parse them first: np.asarray(x, dtype=np.float64)",
    "T": "Parse them first: np.asarray(x, dtype=np.float64)",
    "M": "Convert to a number of units since a start: (x - x[0]) / np.timedelta64(1, 's')",
    "m": "Convert to a number of units: x / np.timedelta64(1, 's')",
    "V": "Pass plain columns: numpy.lib.recfunctions.structured_to_unstructured(x), or x.astype(np.float64)",
}
_KINDS = {
    "c": "complex numbers",
    "O": "Python objects",
    "M": "dates",
    "m": "time spans",
    "V": "records",
} | dict.fromkeys("SUT", "text")


def floats(value: ArrayInput, name: str) -> Floats:
    """Return a C-ordered float64 array that shares no memory with ``value``.

    Raises
    ------
    InvalidInput
        If ``value`` is not a full array of real numbers, or one of them is not exact in float64.
    """
    kind: type = type(value)
    if kind is float or (kind is np.ndarray and value.dtype is _FLOAT64):  # type: ignore[union-attr]  # an array
        return np.array(value, order="C")
    found = array(value, name)
    is_new = found.dtype is _FLOAT64 and (kind is list or kind is tuple)
    if not is_new:
        return _cast(found, name)
    if not all_below(_MAX_EXACT / 2, found):  # below it, no number can have been rounded
        _refuse_rounded(value, found, name)
    return found


def names_of(table: object) -> list[Any] | None:
    """Return the names of the columns of a table; None of anything else."""
    if isinstance(table, Mapping):
        return list(table)
    names = getattr(table, "column_names", getattr(table, "columns", None))  # Arrow; pandas
    return list(names) if isinstance(names, Iterable) else None


def check_axis_order(value: object, name: str) -> None:
    """Raise `InvalidInput` for a table with a column for each axis, in another order than x, y, z.

    Arrays are read by position. Columns have axes if their names differ only in a first or last letter.
    """
    names = None if isinstance(value, np.ndarray | list | tuple) else names_of(value)
    if not names or not all(isinstance(column, str) and column for column in names):
        return
    last = [column[-1] for column in names], {column[:-1] for column in names}
    first = [column[0] for column in names], {column[1:] for column in names}
    for letters, stems in (last, first):
        axes = "".join(letters).lower()
        if len(stems) == 1 and axes not in _AXES and "".join(sorted(axes)) in _AXES:
            ordered = [column for _, column in sorted(zip(axes, names, strict=True))]
            raise InvalidInput(
                f"{name} must have its columns in the order {' '.join(ordered)}, as they are read by "
                f"position; got {' '.join(names)}. Select them in that order: table[{ordered!r}]."
            )


def axis_floats(value: ArrayInput, name: str) -> Floats:
    """Return `floats` with a number for each axis; columns of a table are in the order of the axes."""
    check_axis_order(value, name)
    return floats(value, name)


def array(value: ArrayInput, name: str) -> NDArray[Any]:
    """Return input as an array of any dtype, without a copy where possible."""
    try:
        if isinstance(value, (list, tuple)):
            return np.asarray(value)
        if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
            return np.from_dlpack(value)  # type: ignore[arg-type]
        found = np.asarray(value)
    except (TypeError, ValueError, RuntimeError, BufferError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0].rstrip(".")
        raise InvalidInput(
            f"{name} must be an array of numbers in this computer's memory; got {_article(value)}, and NumPy "
            f"says: {reason}. {_remedy(str(error))}."
        ) from error
    masked = sys.modules.get("numpy.ma")
    if masked is not None and isinstance(value, masked.MaskedArray) and np.any(value.mask):
        raise InvalidInput(
            f"{name} must have every number present; {np.count_nonzero(value.mask)} of {value.size} are "
            f"masked. Drop those rows, or fill them: x.filled(np.nan)."
        )
    return found


def integers(value: ArrayInput, name: str) -> Ints:
    """Return integers as a new C-ordered int64 array.

    An empty array may have any dtype.
    """
    found = array(value, name)
    if found.size and found.dtype.kind not in "iu":
        raise InvalidInput(
            f"{name} must be of an integer type; got {found.dtype}. If they are whole numbers, "
            f"convert them: x.astype(np.int64)."
        )
    if found.dtype == np.uint64 and found.size and found.max() > np.iinfo(np.int64).max:
        raise InvalidInput(
            f"{name} must be less than 2**63; the largest is {found.max()}. Check where it comes from."
        )
    return np.array(found, dtype=np.int64, order="C")


def spread(numbers: Ints, name: str, shape: tuple[int, ...], many: str = "rays") -> Ints:
    """Return integers for each ray or query of a shape, flat; one for all if there is only one."""
    if numbers.size == 1:
        return numbers.reshape(1)
    if numbers.ndim <= len(shape):
        with suppress(ValueError):
            return np.broadcast_to(numbers, shape).reshape(-1)
    raise InvalidInput(
        f"{name} must broadcast to the shape of the {many}, {shape}; got shape {numbers.shape}. Add or drop "
        f"an axis, {name}[..., None], or give one number for all."
    )


def points(value: ArrayInput, name: str, widths: tuple[int, ...] = (2, 3)) -> Floats:
    """Return `floats` of shape ``(..., D)`` with D among ``widths``.

    [] becomes (0, 3).
    """
    return with_width(axis_floats(value, name), name, widths)


def finite_points(value: ArrayInput, dimension: int) -> Floats:
    """Return finite `points` of D coordinates."""
    found = points(value, "points", (dimension,))
    require_finite(found, "points", "point", "Drop those points")
    return found


def with_width(found: A, name: str, widths: tuple[int, ...] = (2, 3)) -> A:
    """Return an array of shape ``(..., D)`` with D among ``widths``, or raise `InvalidInput`.

    Shape (0,) becomes (0, 3).
    """
    if found.ndim and found.shape[-1] in widths:
        return found
    if found.shape == (0,):
        return np.empty((0, 3), found.dtype)  # type: ignore[return-value]  # of the same dtype
    expected = " or ".join(f"(..., {width})" for width in widths)
    numbers = " or ".join(map(str, widths))
    raise InvalidInput(
        f"{name} must have shape {expected}: {numbers} numbers for each; got shape {found.shape}. "
        f"Put the coordinates on the last axis."
    )


def rows(value: ArrayInput, name: str, widths: tuple[int, ...] = (2, 3)) -> Floats:
    """Return `points` of shape ``(M, D)``; a single point is one row."""
    found = points(value, name, widths)
    if found.ndim == 1:
        return found[None]
    if found.ndim != 2:
        expected = " or ".join(f"(M, {width})" for width in widths)
        raise InvalidInput(
            f"{name} must have shape {expected}, one row for each; got shape {found.shape}. "
            f"Flatten it: x.reshape(-1, {found.shape[-1]})."
        )
    return found


def halves(values: Floats) -> tuple[Floats, Floats]:
    """Return the two halves of points of an even width, in C order; of an empty list, (0, 3) each."""
    if values.shape == (0, 3):
        return values, values.copy()
    width = values.shape[-1] // 2
    first, second = values[..., :width], values[..., width:]
    return np.array(first, order="C"), np.array(second, order="C")


def same_shape(found: Mapping[str, Array], way_out: str) -> None:
    """Raise `InvalidInput` unless all arrays have one shape."""
    if len({values.shape for values in found.values()}) > 1:
        shapes = ", ".join(f"{name} {values.shape}" for name, values in found.items())
        raise InvalidInput(f"{' and '.join(found)} must have the same shape; got {shapes}. {way_out}")


def all_finite(values: Floats) -> bool:
    """Return whether no number is NaN or infinite."""
    return all_below(inf, np.ascontiguousarray(values))


def require_finite(values: Floats, name: str, noun: str, way_out: str) -> None:
    """Raise `InvalidInput` if a number of the rows ``(..., D)`` is NaN or infinite."""
    if not all_finite(values):
        bad = ~np.isfinite(values).all(axis=-1)
        refuse_rows(bad, f"{name} must be finite", {name: values}, noun, way_out)


def refuse_rows(
    bad: Bools | np.bool_, rule: str, shown: Mapping[str, Array], noun: str, way_out: str
) -> NoReturn:
    """Raise `InvalidInput` with rule, count, first bad row and way out.

    shown: arrays by name, whose leading axes are those of ``bad``.
    """
    bad = np.asarray(bad)
    first = tuple(int(axis) for axis in np.unravel_index(int(bad.argmax()), bad.shape))
    index = f"[{', '.join(map(str, first))}]" if first else ""
    numbers = ", ".join(
        f"{name}{index} = {np.asarray(values[first]).tolist()}" for name, values in shown.items()
    )
    if not first:
        raise InvalidInput(f"{rule}; got {numbers}. {way_out}.")
    where = first[0] if len(first) == 1 else first
    raise InvalidInput(
        f"{rule}; {np.count_nonzero(bad)} of {bad.size} break this, first {noun} {where}: "
        f"{numbers}. {way_out}."
    )


def freeze(*arrays: Array) -> None:
    """Set arrays read-only."""
    for values in arrays:
        values.setflags(write=False)


def all_below(limit: float, *arrays: Floats) -> bool:
    """Return whether all magnitudes in C-ordered arrays are below a limit: infinity, or 2, 4, 8, ..."""
    return all(bool((np.abs(values) < limit).all()) for values in arrays)


def finite_vectors(limit: int, origins: object, directions: object) -> tuple[Floats, Floats] | None:
    """Return read-only copies of two arrays of vectors, of float64 and of one shape, if all are finite.

    None for any other input, valid or not. limit: each has fewer numbers.
    """
    if not (type(origins) is type(directions) is np.ndarray and origins.shape == directions.shape):
        return None
    if origins.size >= limit:
        return None
    if not (origins.dtype == directions.dtype == _FLOAT64 and origins.ndim and origins.shape[-1] in (2, 3)):
        return None
    o, d = origins.copy(), directions.copy()
    freeze(o, d)
    return (o, d) if all_below(inf, o, d) else None


def first_rows(count: int, *arrays: Array) -> tuple[Array, ...]:
    """Return copies of the first rows of C-ordered arrays."""
    return tuple([values[:count].copy() for values in arrays])


if not TYPE_CHECKING:
    with suppress(ImportError):  # in a tenth of the time, where the C module is built
        from raybox.compiler._calls import (  # noqa: F401
            all_below,
            finite_vectors,
            first_rows,
            freeze,
        )


def _cast(found: NDArray[Any], name: str) -> Floats:
    kind, size = found.dtype.kind, found.dtype.itemsize
    if kind == "f" and size == 8:
        return np.array(found, dtype=_FLOAT64, order="C")
    if kind not in "fiub":
        item = type(found.flat[0]).__name__ if kind == "O" and found.size else str(found.dtype)
        what = _KINDS.get(kind, "an unknown kind")
        raise InvalidInput(
            f"{name} must be real numbers that float64 holds exactly; got {what} ({item}). "
            f"{_WAYS_OUT.get(kind, _WAYS_OUT['O'])}."
        )
    with np.errstate(all="ignore"):
        cast = np.array(found, dtype=_FLOAT64, order="C")
    if size >= 8:
        _refuse_lossy(rounded(found, cast), found, name)
    return cast


def rounded(found: NDArray[Any], cast: Floats) -> Bools:
    """Return which numbers of 64 bits or more differ from their conversion to float64; NaN does not."""
    if found.dtype.kind == "f":
        lossy: Bools = (cast != found) & ~np.isnan(cast)
        return lossy
    # 2**63 and 2**64 do not convert back, and no integer of these types equals them.
    fits = cast < float(np.iinfo(found.dtype).max)
    differs: Bools = np.where(fits, cast, 0.0).astype(found.dtype) != found
    return differs


def mask(where: MaskInput, size: int, shape: tuple[int, ...] | None = None) -> Bools:
    """Return a frozen mask over a scene's rows.

    An empty one, for all rows, if None. shape: that of a grid, which the mask may have too.
    """
    if where is None:
        return NO_MASK
    made = np.array(where)
    if made.dtype != np.bool_ or made.shape not in ((size,), shape):
        or_shape = f", or of shape {shape}" if shape else ""
        raise InvalidInput(
            f"where must be one bool for each of the scene's {size} rows{or_shape}; "
            f"got {made.dtype} of shape {made.shape}. Make a mask: np.isin(np.arange({size}), numbers)."
        )
    made = made.reshape(-1)
    freeze(made)
    return made


def _refuse_rounded(value: ArrayInput, found: Floats, name: str) -> None:
    """Raise `InvalidInput` for a list in which NumPy rounded integers beside floats."""
    suspects = np.argwhere((np.abs(found) >= _MAX_EXACT) & (found < inf) & (found > -inf))
    if not len(suspects):
        return
    exact = np.array(value, dtype=object)
    if exact.shape != found.shape:
        return
    lossy = np.zeros(found.shape, dtype=np.bool_)
    for place in map(tuple, suspects):
        number = exact[place]
        lossy[place] = isinstance(number, int | np.integer) and int(number) != float(found[place])
    _refuse_lossy(lossy, exact, name)


def _refuse_lossy(lossy: Bools, found: Array, name: str) -> None:
    if lossy.any():
        refuse_rows(
            lossy,
            f"{name} must be numbers that float64 holds exactly (whole numbers up to 2**53 always are)",
            {name: found},
            "number",
            "Subtract a common origin first, or round them yourself: np.asarray(x, dtype=np.float64)",
        )


def _article(value: ArrayInput) -> str:
    noun = type(value).__name__
    return f"{'an' if noun[0] in 'aeiouAEIOU' else 'a'} {noun}"


def _remedy(reason: str) -> str:
    if "requires grad" in reason:
        return "Call .detach() on the tensor first"
    if any(word in reason.lower() for word in ("cuda", "device", "cpu", "implicit conversion")):
        return "Copy it to the CPU first: x.cpu() in PyTorch, x.get() in CuPy"
    if "inhomogeneous" in reason or "sequence" in reason:
        return "Give every row the same number of numbers"
    return "Pass a NumPy array of float64"
