"""The one door for input: cast, check, copy, freeze, and say what is wrong. Past it nobody checks.

Whatever `numpy.asarray` or DLPack takes becomes a float64 array of our own, provided float64 holds every
number exactly; nothing that came in is written to or kept. What cannot be held is refused, never rounded in
silence.
"""

import sys
from collections.abc import Mapping
from math import hypot, inf
from typing import Any, NoReturn, TypeAlias

import numpy as np
from numpy.typing import NDArray

from raybox.errors import InvalidInput

Floats: TypeAlias = NDArray[np.float64]
Ints: TypeAlias = NDArray[np.int64]
Bools: TypeAlias = NDArray[np.bool_]

_FLOAT64, _INT64 = np.dtype(np.float64), np.dtype(np.int64)
# Every whole number up to 2**53 is a float64; from there on NumPy may have rounded a list that mixes kinds.
_WHOLE = 2.0**53
_ALL = np.zeros(0, np.bool_)
_ALL.setflags(write=False)
# Up to this many numbers, Python has checked them before one NumPy reduction starts (0.2 against 1.3 us).
_FEW = 4

_WAYS_OUT = {
    "c": "Pass the real part: x.real",
    "O": "Round them yourself if that is meant: np.asarray(x, dtype=np.float64)",
    "S": "Parse them first: np.asarray(x, dtype=np.float64)",
    "U": "Parse them first: np.asarray(x, dtype=np.float64)",
    "T": "Parse them first: np.asarray(x, dtype=np.float64)",
    "M": "Count from a start in a unit: (x - x[0]) / np.timedelta64(1, 's')",
    "m": "Count in a unit: x / np.timedelta64(1, 's')",
    "V": "Pass plain columns: numpy.lib.recfunctions.structured_to_unstructured(x), or x.astype(np.float64)",
}
_KINDS = {
    "c": "complex numbers",
    "O": "Python objects",
    "M": "dates",
    "m": "time spans",
    "V": "records",
} | dict.fromkeys("SUT", "text")


def floats(value: Any, name: str) -> Floats:
    """Return the numbers as a C-ordered float64 array that shares no memory with ``value``.

    Raises
    ------
    InvalidInput
        If it is not a full array of real numbers, or float64 cannot hold one of them exactly.
    """
    kind = type(value)
    if kind is float or (kind is np.ndarray and value.dtype is _FLOAT64):
        return np.array(value, order="C")
    found = array(value, name)
    ours = found.dtype is _FLOAT64 and (kind is list or kind is tuple)
    few = found.ndim == 1 and found.size <= _FEW and (ours or found.dtype is _INT64)
    # A hypotenuse is no shorter than any side: one comparison tells that no number can have been rounded.
    if few and hypot(*found.tolist()) < _WHOLE / 2:
        return found if ours else found.astype(_FLOAT64)
    if not ours:
        return _cast(found, name)
    _refuse_rounded(value, found, name)
    return found


def array(value: Any, name: str) -> NDArray[Any]:
    """Return what came as an array of whatever kind, without a copy where that can be."""
    try:
        if isinstance(value, (list, tuple)):
            return np.asarray(value)
        if hasattr(value, "__dlpack__") and not hasattr(value, "__array__"):
            return np.from_dlpack(value)
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


def integers(value: Any, name: str) -> Ints:
    """Return whole numbers as a C-ordered int64 array of our own; an empty array may be of any kind."""
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


def points(value: Any, name: str, widths: tuple[int, ...] = (2, 3)) -> Floats:
    """Return `floats` of shape ``(..., D)`` with D one of ``widths``; an empty list is no points in 3D."""
    found = floats(value, name)
    if found.ndim and found.shape[-1] in widths:
        return found
    if found.shape == (0,):
        return np.empty((0, 3))
    expected = " or ".join(f"(..., {width})" for width in widths)
    numbers = " or ".join(map(str, widths))
    raise InvalidInput(
        f"{name} must have shape {expected}: {numbers} numbers for each; got shape {found.shape}. "
        f"Put the coordinates on the last axis."
    )


def rows(value: Any, name: str, widths: tuple[int, ...] = (2, 3)) -> Floats:
    """Return `points` as a table ``(M, D)``; a single point is one row."""
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


def same_shape(found: Mapping[str, NDArray[Any]], way_out: str) -> None:
    """Refuse arrays that should have one shape and have several."""
    if len({values.shape for values in found.values()}) > 1:
        shapes = ", ".join(f"{name} {values.shape}" for name, values in found.items())
        raise InvalidInput(f"{' and '.join(found)} must have the same shape; got {shapes}. {way_out}")


def all_finite(values: Floats) -> bool:
    """Tell whether no number is NaN or infinite."""
    # A hypotenuse is finite only if all its sides are; it may overflow, and then NumPy looks again.
    if values.ndim == 1 and values.size <= _FEW and hypot(*values.tolist()) < inf:
        return True
    return bool(np.isfinite(values).all())


def require_finite(values: Floats, name: str, noun: str, way_out: str) -> None:
    """Refuse rows ``(..., D)`` in which a number is NaN or infinite."""
    if not all_finite(values):
        bad = ~np.isfinite(values).all(axis=-1)
        refuse_rows(bad, f"{name} must be finite", {name: values}, noun, way_out)


def refuse_rows(
    bad: Bools | np.bool_, rule: str, shown: Mapping[str, NDArray[Any]], noun: str, way_out: str
) -> NoReturn:
    """Raise: the rule, how many rows break it, the first of them with its numbers, and the way out.

    ``shown`` are arrays whose leading axes are those of ``bad``.
    """
    bad = np.asarray(bad)
    first = tuple(int(axis) for axis in np.unravel_index(int(bad.argmax()), bad.shape))
    place = f"[{', '.join(map(str, first))}]" if first else ""
    numbers = ", ".join(
        f"{name}{place} = {np.asarray(values[first]).tolist()}" for name, values in shown.items()
    )
    if not first:
        raise InvalidInput(f"{rule}; got {numbers}. {way_out}.")
    where = first[0] if len(first) == 1 else first
    raise InvalidInput(
        f"{rule}; {np.count_nonzero(bad)} of {bad.size} break this, first {noun} {where}: "
        f"{numbers}. {way_out}."
    )


def freeze(*arrays: NDArray[Any]) -> None:
    """Make arrays of ours read-only."""
    for values in arrays:
        values.setflags(write=False)


def _cast(found: NDArray[Any], name: str) -> Floats:
    kind, size = found.dtype.kind, found.dtype.itemsize
    if kind == "f" and size == 8:
        return np.array(found, dtype=_FLOAT64, order="C")
    if kind not in "fiub":
        came = type(found.flat[0]).__name__ if kind == "O" and found.size else str(found.dtype)
        what = _KINDS.get(kind, "an unknown kind")
        raise InvalidInput(
            f"{name} must be real numbers that float64 holds exactly; got {what} ({came}). "
            f"{_WAYS_OUT.get(kind, _WAYS_OUT['O'])}."
        )
    with np.errstate(all="ignore"):
        cast = np.array(found, dtype=_FLOAT64, order="C")
    if kind == "f" and size > 8:
        _refuse_lossy((cast != found) & ~np.isnan(found), found, name)
    elif kind in "iu" and size == 8:
        # 2**63 and 2**64 do not come back as integers, but no integer of these types rounds to itself there.
        fits = cast < float(np.iinfo(found.dtype).max)
        back = np.where(fits, cast, 0.0).astype(found.dtype)
        _refuse_lossy(back != found, found, name)
    return cast


def mask(where: Any, size: int) -> Bools:
    """Return a mask over a scene's rows, frozen; without one, an empty one, which lets all be met."""
    if where is None:
        return _ALL
    made = np.array(where)
    if made.dtype != np.bool_ or made.shape != (size,):
        raise InvalidInput(
            f"where must be one bool for each of the scene's {size} rows; "
            f"got {made.dtype} of shape {made.shape}. Make a mask: np.isin(np.arange({size}), numbers)."
        )
    freeze(made)
    return made


def _refuse_rounded(value: Any, found: Floats, name: str) -> None:
    """Refuse a list whose whole numbers NumPy rounded when it met floats beside them."""
    suspects = np.argwhere((np.abs(found) >= _WHOLE) & (found < inf) & (found > -inf))
    if not len(suspects):
        return
    given = np.array(value, dtype=object)
    if given.shape != found.shape:
        return
    lossy = np.zeros(found.shape, dtype=np.bool_)
    for place in map(tuple, suspects):
        number = given[place]
        lossy[place] = isinstance(number, int | np.integer) and int(number) != float(found[place])
    _refuse_lossy(lossy, given, name)


def _refuse_lossy(lossy: Bools, found: NDArray[Any], name: str) -> None:
    if lossy.any():
        refuse_rows(
            lossy,
            f"{name} must be numbers that float64 holds exactly (whole numbers up to 2**53 always are)",
            {name: found},
            "number",
            "Subtract a common origin first, or round them yourself: np.asarray(x, dtype=np.float64)",
        )


def _article(value: Any) -> str:
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
