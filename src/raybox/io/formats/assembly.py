"""Build checked geometry from the arrays of a file; errors give the place of a wrong number."""

from collections import Counter
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.errors import FileFormatError, InvalidInput, OutOfMemory
from raybox.geometry import Boxes, Instances, Rays
from raybox.geometry.angles import is_beyond_yaw
from raybox.io.formats.columns import RANGES, check_turn, choose_kind, is_flat, kinds_of
from raybox.io.formats.common import FileArrays, Floats, Labels, Loaded, ReadOptions, file_error, quoted
from raybox.io.formats.tables import or_invalid
from raybox.io.formats.typed_labels import ID_NAMES, TEXT
from raybox.validation import Bools

_MISSING = "rows with missing numbers"


class Violation(NamedTuple):
    """Numbers of an array that break a rule."""

    array: str
    bad: NDArray[np.bool_]  # a mask of the array
    rule: str
    reason: str = ""  # for the count of rows that are left out


def build(parts: FileArrays, path: Path, options: ReadOptions) -> Loaded:
    """Return the geometry of the arrays; errors name the first number that breaks a rule."""
    kind = choose_kind(kinds_of(parts.arrays), path, options)
    check_origin(kind, path, options)
    if options.invalid == "skip":
        parts = _without_bad_rows(kind, parts)
    for name, values in parts.labels.items():
        check_turn(name, parts.arrays, path, values)
    try:
        geometry = _geometry(kind, parts, path, options)
        return Loaded(geometry, parts.skipped, parts.left_out, parts.units, parts.up)
    except OutOfMemory:
        raise  # no number of the file is wrong
    except InvalidInput as error:
        for violation in _violations(kind, parts.arrays):
            if violation.bad.any():
                raise _violation_error(violation, kind, parts, path, options) from error
        raise file_error(path, str(error).rstrip("."), "correct the file") from error  # of a wrong shape


def _violation_error(
    violation: Violation, kind: str, parts: FileArrays, path: Path, options: ReadOptions
) -> FileFormatError:
    """Return the error for the first number that breaks a rule."""
    array, bad, rule, _ = violation
    index = tuple(int(i) for i in np.argwhere(bad)[0])
    number, count = float(parts.arrays[array][index]), np.count_nonzero(bad)
    problem = f"{quoted(number)} {rule}"
    problem += f" ({count} such numbers{parts.among})" if count > 1 else ""
    way_out = "correct or remove the row" + or_invalid(kind, options)
    return file_error(path, problem, way_out, parts.where(array, index))


def valid_rows(parts: FileArrays, path: Path, options: ReadOptions) -> Bools:
    """Return which rows break no rule of their kind; unless bad ones may miss, raise for the first."""
    kind = choose_kind(kinds_of(parts.arrays), path, options)
    valid = np.ones(next(iter(parts.arrays.values())).shape[0], np.bool_)
    for violation in _violations(kind, parts.arrays):
        if violation.bad.any():
            if options.invalid_rays == "raise":
                raise _violation_error(violation, kind, parts, path, options)
            valid &= ~violation.bad.any(axis=tuple(range(1, violation.bad.ndim)))
    return valid


def _without_bad_rows(kind: str, parts: FileArrays) -> FileArrays:
    """Return the rows of boxes that break no rule, and the counts of the others by reason."""
    lengths = {array.shape[:1] for array in parts.arrays.values()}
    if len(lengths) > 1 or any(array.ndim != 2 - is_flat(name) for name, array in parts.arrays.items()):
        return parts  # without a row for each box, which is an error of its own, or one box
    keep, counts = np.ones(lengths.pop(), np.bool_), Counter(parts.skipped)
    for _, bad, _, reason in _violations(kind, parts.arrays):
        rows = keep & bad.any(axis=tuple(range(1, bad.ndim)))
        counts[reason] += int(np.count_nonzero(rows))
        keep &= ~rows
    arrays = {name: array[keep] for name, array in parts.arrays.items()}
    labels = {name: values[keep] for name, values in parts.labels.items()}
    return parts._replace(arrays=arrays, labels=labels, skipped=+counts)


def check_origin(kind: str, path: Path, options: ReadOptions) -> None:
    """Raise for points without an origin, and any other content with one."""
    if kind == "points" and options.origin is None and options.kind != "points":
        way_out = "say where the rays start: origin=(x, y, z), or --origin X,Y,Z"
        raise file_error(path, "holds points, not rays", way_out)
    if kind != "points" and options.origin is not None:
        starts = ", which start at origins of their own" if kind == "rays" else ""
        raise file_error(path, f"holds {kind}{starts}", "leave out the origin, which is for points")
    if kind in ("rays", "points") and options.invalid == "skip":
        way_out = "read them with invalid='miss', so that results keep their rows"
        raise file_error(path, f"holds {kind}, of which none are left out", way_out)


def _geometry(kind: str, parts: FileArrays, path: Path, options: ReadOptions) -> Boxes | Instances | Rays:
    arrays, invalid = parts.arrays, options.invalid_rays
    ids, labels = _ids(parts.labels), {name: values for name, values in parts.labels.items() if name != "id"}
    if "lower" in arrays:
        return Boxes(arrays["lower"], arrays["upper"], ids=ids, labels=labels)
    if kind == "boxes":
        return Boxes.from_centers(arrays["centers"], arrays["sizes"], ids=ids, labels=labels)
    if kind == "oriented boxes":
        turn = {"quaternions": arrays.get("quaternions"), "yaw": arrays.get("yaw")}
        made = Instances.oriented_boxes(arrays["centers"], arrays["sizes"], **turn, ids=ids, labels=labels)
        return made.boxes() if options.boxes else made
    if "origins" in arrays:
        ranges = {name: arrays[name] for name in RANGES if name in arrays}
        return Rays(arrays["origins"], arrays["directions"], invalid=invalid, **ranges)
    if "starts" in arrays:
        return Rays.segments(arrays["starts"], arrays["ends"], invalid=invalid)
    points, origin = arrays["points"], np.array(options.origin)
    if points.shape[-1] != origin.size:
        problem = f"its points have {points.shape[-1]} coordinates, the origin has {origin.size}"
        raise file_error(path, problem, "give an origin of the same dimension")
    with np.errstate(invalid="ignore"):
        return Rays(origin, points - origin, invalid=invalid)


def _ids(labels: Labels) -> list[str] | None:
    """Return the first column of `ID_NAMES`, else the first of texts that all differ, or None."""
    texts = {name: values.tolist() for name, values in labels.items() if values.dtype == object}
    found = [texts[name] for own in ID_NAMES for name in texts if name.lower() == own]
    for name, values in texts.items():
        is_text = name.lower() not in TEXT and all(value and isinstance(value, str) for value in values)
        if is_text and 0 < len({*values}) == len(values):
            found.append(values)
    return ["" if value is None else value for value in found[0]] if found else None


def _violations(kind: str, arrays: Mapping[str, Floats]) -> Iterator[Violation]:
    """Yield each rule of the geometry, and the numbers that break it."""
    if "lower" in arrays and arrays["lower"].shape == arrays["upper"].shape:
        lower, upper = arrays["lower"], arrays["upper"]
        yield Violation("lower", np.isnan(lower), "is not a number", _MISSING)
        yield Violation("upper", np.isnan(upper), "is not a number", _MISSING)
        rule = "is below the lower bound of the same row and axis"
        yield Violation("upper", lower > upper, rule, "rows whose upper bound is below the lower one")
    if "centers" in arrays:
        yield from _violations_of_sizes(arrays, is_turned=kind == "oriented boxes")
    if kind in ("rays", "points"):
        for array in kinds_of(arrays)[kind]:
            yield Violation(array, ~np.isfinite(arrays[array]), "is not a finite number")
    if "origins" in arrays:
        ranges = {name: np.atleast_1d(arrays[name]) for name in RANGES if name in arrays}
        yield from (Violation(name, np.isnan(arrays[name]), "is not a number") for name in ranges)
        t_min, t_max = arrays.get("t_min", np.zeros(())), arrays.get("t_max", np.full((), np.inf))
        if t_min.shape == t_max.shape or () in (t_min.shape, t_max.shape):
            name = "t_max" if t_max.shape else "t_min"
            yield Violation(name, t_min > t_max, "leaves an empty range: t_min exceeds t_max")


def _violations_of_sizes(arrays: Mapping[str, Floats], *, is_turned: bool) -> Iterator[Violation]:
    """Yield the rules of boxes with centres and sizes."""
    infinite = "rows with missing or infinite numbers"
    for name in arrays if is_turned else ("centers",):
        yield Violation(name, ~np.isfinite(arrays[name]), "is not a finite number", infinite)
    sizes = arrays["sizes"]
    yield Violation("sizes", np.isnan(sizes), "is not a number", _MISSING)
    if not is_turned:
        yield Violation("sizes", sizes < 0, "is below zero", "rows with sizes below zero")
        return
    yield Violation("sizes", sizes <= 0, "is not above zero", "rows with sizes that are not above zero")
    if "yaw" in arrays:
        rule = "is beyond two turns of 2 pi: a yaw is in radians"
        yield Violation("yaw", is_beyond_yaw(arrays["yaw"]), rule, "rows with a yaw beyond two turns")
    else:
        zero = ~arrays["quaternions"].any(axis=1)
        first = np.stack([zero, *[np.zeros_like(zero)] * 3], axis=1)
        zeros = "a quaternion of zeros"
        yield Violation("quaternions", first, f"begins {zeros}", f"rows with {zeros}")
