"""From a file's columns to checked geometry; a wrong number is named by its place in the file."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raybox.errors import FileFormatError, InvalidInput
from raybox.geometry import Boxes, Rays
from raybox.io.formats.common import Floats, Loaded, Parts, Want, broken, shown

Finding = tuple[str, NDArray[np.bool_], str]

# The arrays each kind of content is made of, with the prefix of their columns: lower -> min_x, min_y, min_z.
KINDS: dict[str, dict[str, str]] = {
    "boxes": {"lower": "min_", "upper": "max_"},
    "rays": {"origins": "origin_", "directions": "direction_"},
    "points": {"points": ""},
}
RANGES = ("t_min", "t_max")
SERVES: dict[str | None, tuple[str, ...]] = {
    "scene": ("boxes",),
    "rays": ("rays", "points"),
    None: ("boxes", "rays", "points"),
}


def names_of(array: str, dimension: int = 3) -> list[str]:
    """Give the columns of an array: ``names_of("lower")`` is ``["min_x", "min_y", "min_z"]``."""
    prefix = next(arrays[array] for arrays in KINDS.values() if array in arrays)
    return [prefix + axis for axis in "xyz"[:dimension]]


def column_of(array: str, index: tuple[int, ...]) -> str:
    """Give the column in which a number of an array stands."""
    return array if array in RANGES else names_of(array)[index[-1]]


def choose(found: Iterable[str], path: Path, want: Want) -> str:
    """Tell which kind of content, among those a file has, answers what is wanted."""
    found = list(found)
    kinds = [kind for kind in SERVES[want.kind] if kind in found]
    if not kinds:
        wanted = "a scene" if want.kind == "scene" else "rays"
        raise broken(path, f"holds {' and '.join(found)}, not {wanted}", f"give a file of {wanted} here")
    if len(kinds) > 1 and want.kind is None:
        raise broken(path, f"holds {' and '.join(kinds)}", 'say which: kind="scene" or kind="rays"')
    return kinds[0]


def assemble(columns: dict[str, Floats], kind: str) -> dict[str, Floats]:
    """Stack columns into the arrays of one kind; two axes where no column ends in z."""
    dimension = 3 if names_of(next(iter(KINDS[kind])))[2] in columns else 2
    arrays = {array: np.stack([columns[n] for n in names_of(array, dimension)], -1) for array in KINDS[kind]}
    return arrays | {name: columns[name] for name in RANGES if kind == "rays" and name in columns}


def build(parts: Parts, path: Path, want: Want) -> Loaded:
    """Make geometry of the arrays, or say which number of the file breaks which rule."""
    kind = choose([k for k, arrays in KINDS.items() if set(arrays) <= set(parts.arrays)], path, want)
    try:
        return Loaded(_geometry(kind, parts.arrays, path, want), _ids(parts), parts.labels)
    except InvalidInput as error:
        raise _explained(kind, parts, path, error) from error


def _geometry(kind: str, arrays: dict[str, Floats], path: Path, want: Want) -> Boxes | Rays:
    if kind == "boxes":
        return Boxes(arrays["lower"], arrays["upper"])
    if kind == "rays":
        ranges = {name: arrays[name] for name in RANGES if name in arrays}
        return Rays(arrays["origins"], arrays["directions"], invalid=want.invalid, **ranges)
    if want.origin is None:
        raise broken(
            path, "holds points, not rays", "say where the rays start: origin=(x, y, z), or --origin X,Y,Z"
        )
    points, origin = arrays["points"], np.array(want.origin)
    if points.shape[-1] != origin.size:
        problem = f"its points have {points.shape[-1]} coordinates, the origin has {origin.size}"
        raise broken(path, problem, "give an origin of the same dimension")
    with np.errstate(invalid="ignore"):
        return Rays(origin, points - origin, invalid=want.invalid)


def _ids(parts: Parts) -> list[str] | None:
    """Take the column ``id``, else the first column that is not all numbers."""
    if "id" in parts.labels:
        return parts.labels["id"]
    return next((values for values in parts.labels.values() if not all(map(_is_number, values))), None)


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _explained(kind: str, parts: Parts, path: Path, error: InvalidInput) -> FileFormatError:
    """Say where the first wrong number stands; a wrong shape keeps the words of the geometry."""
    for array, bad, rule in _findings(kind, parts.arrays):
        if bad.any():
            index = tuple(int(i) for i in np.argwhere(bad)[0])
            number = float(parts.arrays[array][index])
            more = (
                f" ({np.count_nonzero(bad)} such numbers{parts.among})" if np.count_nonzero(bad) > 1 else ""
            )
            way_out = "correct or remove the row" + (
                ", or read with invalid='miss'" if kind != "boxes" else ""
            )
            return broken(path, f"{shown(number)} {rule}{more}", way_out, parts.where(array, index))
    return broken(path, str(error), "correct the file")


def _findings(kind: str, arrays: dict[str, Floats]) -> Iterator[Finding]:
    """List the rules of the geometry as masks of the numbers that break them."""
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


def plan(header: Sequence[str], path: Path, want: Want) -> tuple[str, list[str], list[str]]:
    """Tell the kind of rows, the columns that hold its numbers, and the columns that are labels.

    Labels are read only with boxes: nothing is said of single rays.
    """
    repeated = sorted({name for name in header if header.count(name) > 1})
    if repeated:
        raise broken(
            path, f"has more than one column named {shown(repeated[0])}", "rename one of them", "header"
        )
    found = [kind for kind in KINDS if _complete(kind, header)]
    if not found:
        raise broken(path, _lacking(header), _expected(want), "header")
    kind = choose(found, path, want)
    numbers = [name for array in KINDS[kind] for name in names_of(array) if name in header]
    numbers += [name for name in RANGES if kind == "rays" and name in header]
    labels = [name for name in header if kind == "boxes" and name not in numbers]
    return kind, numbers, labels


def _complete(kind: str, header: Sequence[str]) -> bool:
    """Tell whether all columns of a kind are there: z in all of its arrays, or in none (2D)."""
    flat = [name for array in KINDS[kind] for name in names_of(array, 2)]
    deep = [names_of(array)[2] in header for array in KINDS[kind]]
    return all(name in header for name in flat) and (all(deep) or not any(deep))


def _lacking(header: Sequence[str]) -> str:
    """Describe a header that is of no kind; name what is missing where a kind was begun."""
    for kind, arrays in KINDS.items():
        names = [name for array in arrays for name in names_of(array)]
        lacking = [name for name in names if name not in header]
        if kind != "points" and len(lacking) < len(names):
            return f"lacks the column{'s' * (len(lacking) > 1)} {' '.join(lacking)}"
    return f"has no columns of boxes, rays or points, but {shown(','.join(header))}"


def _expected(want: Want) -> str:
    kinds = {"scene": ["boxes"], "rays": ["rays", "points"]}.get(want.kind or "", list(KINDS))
    rows = [f"{kind}: {' '.join(n for array in KINDS[kind] for n in names_of(array))}" for kind in kinds]
    return "name the columns in the first line, for " + "; for ".join(rows) + " (no z columns in 2D)"
