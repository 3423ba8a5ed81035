"""Build checked geometry from the arrays of a file.

Errors give the place of a wrong number in the file.
"""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from raybox.errors import FileFormatError, InvalidInput, OutOfMemory
from raybox.geometry import Boxes, Instances, Rays
from raybox.geometry.angles import is_beyond_yaw
from raybox.io.formats.columns import KINDS, RANGES, choose_kind
from raybox.io.formats.common import FileArrays, Floats, Labels, Loaded, ReadOptions, file_error, quoted
from raybox.io.formats.typed_labels import ID_NAMES, TEXT

Violation = tuple[str, NDArray[np.bool_], str]
"""Array, mask of its numbers that break a rule, the rule."""


def build(parts: FileArrays, path: Path, options: ReadOptions) -> Loaded:
    """Return the geometry of the arrays.

    Raises `FileFormatError` that names the rule and the first number of the file that breaks it.
    """
    kind = choose_kind([k for k, arrays in KINDS.items() if set(arrays) <= set(parts.arrays)], path, options)
    check_origin(kind, path, options)
    try:
        geometry = _geometry(kind, parts, path, options)
        return Loaded(geometry, parts.skipped, parts.left_out, parts.units, parts.up)
    except OutOfMemory:
        raise  # no number of the file is wrong
    except InvalidInput as error:
        raise _number_error(kind, parts, path, error) from error


def check_origin(kind: str, path: Path, options: ReadOptions) -> None:
    """Raise for points without an origin, and any other content with one."""
    if kind == "points" and options.origin is None:
        way_out = "say where the rays start: origin=(x, y, z), or --origin X,Y,Z"
        raise file_error(path, "holds points, not rays", way_out)
    if kind != "points" and options.origin is not None:
        starts = ", which start at origins of their own" if kind == "rays" else ""
        raise file_error(path, f"holds {kind}{starts}", "leave out the origin, which is for points")


def _geometry(kind: str, parts: FileArrays, path: Path, options: ReadOptions) -> Boxes | Instances | Rays:
    arrays = parts.arrays
    ids, labels = _ids(parts.labels), {name: values for name, values in parts.labels.items() if name != "id"}
    if kind == "boxes":
        return Boxes(arrays["lower"], arrays["upper"], ids=ids, labels=labels)
    if kind == "oriented boxes":
        centers, sizes, yaw = (arrays[name] for name in ("centers", "sizes", "yaw"))
        boxes = Instances.oriented_boxes(centers, sizes, yaw=yaw, ids=ids, labels=labels)
        return boxes.boxes() if options.boxes else boxes
    if kind == "rays":
        ranges = {name: arrays[name] for name in RANGES if name in arrays}
        return Rays(arrays["origins"], arrays["directions"], invalid=options.invalid, **ranges)  # type: ignore[arg-type]  # ranges
    points, origin = arrays["points"], np.array(options.origin)
    if points.shape[-1] != origin.size:
        problem = f"its points have {points.shape[-1]} coordinates, the origin has {origin.size}"
        raise file_error(path, problem, "give an origin of the same dimension")
    with np.errstate(invalid="ignore"):
        return Rays(origin, points - origin, invalid=options.invalid)


def _ids(labels: Labels) -> list[str] | None:
    """Return the ids, None without.

    They are the first column of `ID_NAMES`, else the first of text whose values are all there and all differ.
    """
    texts = {name: values.tolist() for name, values in labels.items() if values.dtype == object}
    found = [texts[name] for own in ID_NAMES for name in texts if name.lower() == own]
    found += [texts[name] for name in texts if name.lower() not in TEXT and _are_different(texts[name])]
    return ["" if value is None else value for value in found[0]] if found else None


def _are_different(values: list[object]) -> bool:
    """Return whether values are texts, none empty, no two equal."""
    return 0 < len({*values}) == len(values) and all(value and isinstance(value, str) for value in values)


def _number_error(kind: str, parts: FileArrays, path: Path, error: InvalidInput) -> FileFormatError:
    """Return the error for the first wrong number; for a wrong shape, that of the geometry."""
    for array, bad, rule in _violations(kind, parts.arrays):
        if bad.any():
            index = tuple(int(i) for i in np.argwhere(bad)[0])
            number = float(parts.arrays[array][index])
            count = np.count_nonzero(bad)
            more = f" ({count} such numbers{parts.among})" if count > 1 else ""
            is_ray = kind in ("rays", "points")
            way_out = "correct or remove the row" + (", or read with invalid='miss'" if is_ray else "")
            return file_error(path, f"{quoted(number)} {rule}{more}", way_out, parts.where(array, index))
    return file_error(path, str(error).rstrip("."), "correct the file")


def _violations(kind: str, arrays: dict[str, Floats]) -> Iterator[Violation]:
    """Yield each rule of the geometry, and the numbers that break it."""
    if kind == "boxes" and arrays["lower"].shape == arrays["upper"].shape:
        lower, upper = arrays["lower"], arrays["upper"]
        yield "lower", np.isnan(lower), "is not a number"
        yield "upper", np.isnan(upper), "is not a number"
        yield "upper", lower > upper, "is below the lower bound of the same row and axis"
    if kind == "oriented boxes":
        yield from ((name, ~np.isfinite(arrays[name]), "is not a finite number") for name in arrays)
        yield "sizes", arrays["sizes"] <= 0, "is not above zero"
        yield "yaw", is_beyond_yaw(arrays["yaw"]), "is beyond two turns of 2 pi: a yaw is in radians"
    if kind in ("rays", "points"):
        for array in KINDS[kind]:
            yield array, ~np.isfinite(arrays[array]), "is not a finite number"
    if kind == "rays":
        ranges = {name: np.atleast_1d(arrays[name]) for name in RANGES if name in arrays}
        yield from ((name, np.isnan(arrays[name]), "is not a number") for name in ranges)
        t_min, t_max = arrays.get("t_min", np.zeros(())), arrays.get("t_max", np.full((), np.inf))
        if t_min.shape == t_max.shape or () in (t_min.shape, t_max.shape):
            name = "t_max" if t_max.shape else "t_min"
            yield name, t_min > t_max, "leaves an empty range: t_min exceeds t_max"
