"""Build checked geometry from a file's columns; errors give the place of a wrong number in the file."""

from collections import Counter
from collections.abc import Container, Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.errors import FileFormatError, InvalidInput, OutOfMemory
from raybox.geometry import Boxes, Rays
from raybox.io.formats.common import FileArrays, Floats, Loaded, ReadOptions, file_error, quoted

Violation = tuple[str, NDArray[np.bool_], str]
"""Array, mask of its numbers that break a rule, the rule."""

# The arrays of each kind of content, with the prefix of their columns: lower -> min_x, min_y, min_z.
KINDS: dict[str, dict[str, str]] = {
    "boxes": {"lower": "min_", "upper": "max_"},
    "rays": {"origins": "origin_", "directions": "direction_"},
    "points": {"points": ""},
}
RANGES = ("t_min", "t_max")
ACCEPTED: dict[str | None, tuple[str, ...]] = {
    "scene": ("boxes",),
    "rays": ("rays", "points"),
    None: ("boxes", "rays", "points"),
}


class TableColumns(NamedTuple):
    """The columns of a table that are read."""

    kind: str
    numbers: list[str]
    labels: list[str]


def column_names(array: str, dimension: int = 3) -> list[str]:
    """Return the columns of an array: ``column_names("lower")`` is ``["min_x", "min_y", "min_z"]``."""
    prefix = next(arrays[array] for arrays in KINDS.values() if array in arrays)
    return [prefix + axis for axis in "xyz"[:dimension]]


def column_name(array: str, index: tuple[int, ...]) -> str:
    """Return the column of the number at an index of an array."""
    return array if array in RANGES else column_names(array)[index[-1]]


def choose_kind(found: Iterable[str], path: Path, options: ReadOptions) -> str:
    """Return the kind of content to read, of those that a file has."""
    found = list(found)
    kinds = [kind for kind in ACCEPTED[options.kind] if kind in found]
    if not kinds:
        wanted = "a scene" if options.kind == "scene" else "rays"
        raise file_error(path, f"holds {' and '.join(found)}, not {wanted}", f"give a file of {wanted} here")
    if len(kinds) > 1 and options.kind is None:
        raise file_error(path, f"holds {' and '.join(kinds)}", 'say which: kind="scene" or kind="rays"')
    return kinds[0]


def assemble(columns: dict[str, Floats], kind: str) -> dict[str, Floats]:
    """Return the arrays of one kind, stacked from columns.

    D = 2 without z columns.
    """
    dimension = 3 if column_names(next(iter(KINDS[kind])))[2] in columns else 2
    arrays = {
        array: np.stack([columns[n] for n in column_names(array, dimension)], -1) for array in KINDS[kind]
    }
    return arrays | {name: columns[name] for name in RANGES if kind == "rays" and name in columns}


def build(parts: FileArrays, path: Path, options: ReadOptions) -> Loaded:
    """Return the geometry of the arrays.

    Raises `FileFormatError` that names the rule and the first number of the file that breaks it.
    """
    kind = choose_kind([k for k, arrays in KINDS.items() if set(arrays) <= set(parts.arrays)], path, options)
    try:
        ids = _ids(parts)
        return Loaded(_geometry(kind, parts.arrays, ids, path, options), ids, parts.labels)
    except OutOfMemory:
        raise  # no number of the file is wrong
    except InvalidInput as error:
        raise _number_error(kind, parts, path, error) from error


def _geometry(
    kind: str, arrays: dict[str, Floats], ids: list[str] | None, path: Path, options: ReadOptions
) -> Boxes | Rays:
    if kind == "boxes":
        return Boxes(arrays["lower"], arrays["upper"], ids=ids)
    if kind == "rays":
        ranges = {name: arrays[name] for name in RANGES if name in arrays}
        return Rays(arrays["origins"], arrays["directions"], invalid=options.invalid, **ranges)
    if options.origin is None:
        raise file_error(
            path, "holds points, not rays", "say where the rays start: origin=(x, y, z), or --origin X,Y,Z"
        )
    points, origin = arrays["points"], np.array(options.origin)
    if points.shape[-1] != origin.size:
        problem = f"its points have {points.shape[-1]} coordinates, the origin has {origin.size}"
        raise file_error(path, problem, "give an origin of the same dimension")
    with np.errstate(invalid="ignore"):
        return Rays(origin, points - origin, invalid=options.invalid)


def _ids(parts: FileArrays) -> list[str] | None:
    """Return the column ``id``, else the first that is not all numbers, else None."""
    if "id" in parts.labels:
        return parts.labels["id"]
    return next((values for values in parts.labels.values() if not all(map(_is_number, values))), None)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _number_error(kind: str, parts: FileArrays, path: Path, error: InvalidInput) -> FileFormatError:
    """Return the error for the first wrong number.

    For a wrong shape, that of the geometry.
    """
    for array, bad, rule in _violations(kind, parts.arrays):
        if bad.any():
            index = tuple(int(i) for i in np.argwhere(bad)[0])
            number = float(parts.arrays[array][index])
            more = (
                f" ({np.count_nonzero(bad)} such numbers{parts.among})" if np.count_nonzero(bad) > 1 else ""
            )
            way_out = "correct or remove the row" + (
                ", or read with invalid='miss'" if kind != "boxes" else ""
            )
            return file_error(path, f"{quoted(number)} {rule}{more}", way_out, parts.where(array, index))
    return file_error(path, str(error).rstrip("."), "correct the file")


def _violations(kind: str, arrays: dict[str, Floats]) -> Iterator[Violation]:
    """Yield each rule of the geometry.

    Array, mask of the numbers that break it, its text.
    """
    if kind == "boxes" and arrays["lower"].shape == arrays["upper"].shape:
        lower, upper = arrays["lower"], arrays["upper"]
        yield "lower", np.isnan(lower), "is not a number"
        yield "upper", np.isnan(upper), "is not a number"
        yield "upper", lower > upper, "is below the lower bound of the same row and axis"
    if kind in ("rays", "points"):
        for array in KINDS[kind]:
            yield array, ~np.isfinite(arrays[array]), "is not a finite number"
    if kind == "rays":
        ranges = {name: np.atleast_1d(arrays[name]) for name in RANGES if name in arrays}
        yield from ((name, np.isnan(arrays[name]), "is not a number") for name in ranges)
        t_min, t_max = arrays.get("t_min", np.zeros(())), arrays.get("t_max", np.full((), np.inf))
        if t_min.shape == t_max.shape or () in (t_min.shape, t_max.shape):
            yield (
                ("t_max" if t_max.shape else "t_min"),
                t_min > t_max,
                "leaves an empty range: t_min exceeds t_max",
            )


def choose_columns(header: Sequence[str], path: Path, options: ReadOptions) -> TableColumns:
    """Return which columns of a table to read.

    Labels are read only with boxes.
    """
    counts = Counter(header)  # not header.count: a table may have a million columns
    repeated = sorted(name for name, count in counts.items() if count > 1)
    if repeated:
        raise file_error(
            path, f"has more than one column named {quoted(repeated[0])}", "rename one of them", "header"
        )
    found = [kind for kind in KINDS if _has_columns(kind, counts)]
    if not found:
        raise file_error(path, _header_problem(header), _columns_hint(path, options), "header")
    kind = choose_kind(found, path, options)
    numbers = [name for array in KINDS[kind] for name in column_names(array) if name in counts]
    numbers += [name for name in RANGES if kind == "rays" and name in counts]
    labels = [name for name in header if kind == "boxes" and name not in numbers]
    return TableColumns(kind, numbers, labels)


def has_kind(header: Container[str]) -> bool:
    """Return whether a header has the columns of boxes, rays or points."""
    return any(_has_columns(kind, header) for kind in KINDS)


def canonical(header: Sequence[str]) -> list[str]:
    """Return the names of columns, those in capitals in small letters where no column has that name.

    Labels of a table that has all its columns in small letters stay as they are.
    """
    names = set(header)
    lowered = {*RANGES} if _has_columns("rays", names) else set()
    if not has_kind(names):
        lowered = {
            "id",
            *RANGES,
            *(name for kind in KINDS.values() for a in kind for name in column_names(a)),
        }
    lowered -= names
    return [name.lower() if name.lower() in lowered else name for name in header]


def _has_columns(kind: str, header: Container[str]) -> bool:
    """Return whether a header has all columns of a kind.

    Z in all of its arrays, or in none (2D).
    """
    flat = [name for array in KINDS[kind] for name in column_names(array, 2)]
    deep = [column_names(array)[2] in header for array in KINDS[kind]]
    return all(name in header for name in flat) and (all(deep) or not any(deep))


def _header_problem(header: Sequence[str]) -> str:
    """Return what is wrong with a header of no kind.

    The missing columns, if it has some of a kind.
    """
    for kind, arrays in KINDS.items():
        names = [name for array in arrays for name in column_names(array)]
        lacking = [name for name in names if name not in header]
        if kind != "points" and len(lacking) < len(names):
            return f"lacks the column{'s' * (len(lacking) > 1)} {' '.join(lacking)}"
    return f"has no columns of boxes, rays or points, but {quoted(','.join(header))}"


def _columns_hint(path: Path, options: ReadOptions) -> str:
    kinds = {"scene": ["boxes"], "rays": ["rays", "points"]}.get(options.kind or "", list(KINDS))
    rows = [f"{kind}: {' '.join(n for array in KINDS[kind] for n in column_names(array))}" for kind in kinds]
    where = " in the first line" if path.suffix.lower() == ".csv" else ""
    return f"name the columns{where}, for {'; for '.join(rows)} (no z columns in 2D)"
