"""The columns of tables, in the spellings of the field."""

import re
from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import chain, product
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from raybox.errors import FileFormatError, InvalidInput
from raybox.io.formats.common import HoldsRays, ReadOptions, file_error, quoted

Columns: TypeAlias = dict[str, list[str]]  # the columns of each array
RANGES = ("t_min", "t_max")
TEXTS = (".csv", ".tsv", ".txt", ".xyz")  # the extensions of tables of text
KINDS: dict[str, tuple[tuple[str, ...], ...]] = {
    "boxes": (("lower", "upper"), ("centers", "sizes")),
    "oriented boxes": (("centers", "sizes", "yaw"), ("centers", "sizes", "quaternions")),
    "rays": (("origins", "directions"), ("starts", "ends")),
    "points": (("points",),),
}
"""The arrays of each kind of content, in one of several ways."""
ACCEPTED: dict[str | None, tuple[str, ...]] = {
    "scene": ("boxes", "oriented boxes"),
    "rays": ("rays", "points"),
    "points": ("points",),
    "boxes": ("boxes", "oriented boxes"),
    None: ("boxes", "oriented boxes", "rays", "points"),
}


class TableColumns(NamedTuple):
    """The columns of a table that are read, by its own names."""

    kind: str
    arrays: Columns  # of each array of the kind, and of ranges, which have one column
    labels: dict[str, str]  # of each label; only boxes have labels
    left_out: int = 0  # columns of a type that no label has

    @property
    def numbers(self) -> list[str]:
        """All columns of arrays."""
        return [name for names in self.arrays.values() for name in names]


def _spelled(form: str, axes: str = "xyz") -> list[str]:
    """Return the names of a spelling on the axes."""
    return form.split() if " " in form else [form.replace("*", axis) for axis in axes]


def _ways(arrays: tuple[str, ...], *forms: tuple[str, ...]) -> list[Columns]:
    """Return the columns of arrays in each spelling."""
    return [dict(zip(arrays, map(_spelled, form), strict=True)) for form in forms]


# Spellings, raybox's own first. * is the axis; a dot is a field of a struct, or of flattened JSON.
_BOUNDS = [("min_*", "max_*"), ("min.*", "max.*"), ("min*", "max*"), ("*min", "*max"), ("*_min", "*_max")]
_CENTERS = [f"{word}{dot}*" for word in ("center", "position", "translation") for dot in "_."]
_SIZES = [f"{word}{dot}*" for word in ("size", "dimensions") for dot in "_."] + ["d*"]
_SIZES += ["length width height", "l w h", "length_m width_m height_m"]
_LINES = [("origin_*", "direction_*"), ("origin.*", "direction.*"), ("*", "d*")]
_ENDS = [("from_*", "to_*"), ("from.*", "to.*"), ("start_*", "end_*"), ("start.*", "end.*")]
_WAYS = {
    "bounds": _ways(("lower", "upper"), *_BOUNDS, ("bbox.*min", "bbox.*max")),
    "rays": _ways(("origins", "directions"), *_LINES) + _ways(("starts", "ends"), *_ENDS),
    "sizes": _ways(("centers", "sizes"), *product([*_CENTERS, "*", "t*_m"], _SIZES)),
    "points": _ways(("points",), ("*",)),
}
"""The columns of arrays in every spelling."""
_TURNS = [{"quaternions": _spelled(form, "wxyz")} for form in ("q*", "rotation.*", "quaternion_*")]
_TURNS += [{"yaw": ["yaw"]}, {"yaw": ["heading"]}]
"""The columns that turn boxes of centres and sizes."""
_COLUMNS: Columns = {
    array: names
    for ways in ([_TURNS[0]], *_WAYS.values())
    for way in reversed(ways)
    for array, names in way.items()
}
OWN_NAMES = frozenset(chain.from_iterable(_COLUMNS.values()))  # the columns as raybox writes them
SECOND_NAMES = frozenset(names[1] for ways in _WAYS.values() for way in ways for names in way.values())
"""The columns of the axis y: every header has one, in small letters or not."""
_TILT = "roll|pitch"
_TURN = "(?:rot|rotation|quat|quaternion|roll|pitch|yaw|angle|theta|euler|heading|bearing|orientation)"
_TURN += "[wxyz]?|[rq][xyz]|qw"


def check_turn(name: str, arrays: Container[str], path: Path, values: Iterable[object] | None = None) -> None:
    """Raise for a column that seems to turn or tilt boxes, unless its values are all zero or missing."""
    if "centers" not in arrays or "quaternions" in arrays:
        return
    words = re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower()
    known = _TILT if "yaw" in arrays else _TURN
    found = re.search(rf"(?<![a-z])(?:{known})(?![a-z])", words)
    if found and (values is None or any(v is not None and v == v and v != 0 for v in values)):
        problem = f"has the column {quoted(name)}, which may turn its boxes"
        way_out = "if it does, name it yaw, in radians about z, or qw qx qy qz; else rename it"
        raise file_error(path, problem, way_out, "header")


def column_names(array: str, dimension: int = 3) -> list[str]:
    """Return the columns of an array: ``column_names("lower")`` is ``["min_x", "min_y", "min_z"]``."""
    return _COLUMNS.get(array, [array])[:dimension]


def is_flat(array: str) -> bool:
    """Return whether an array has one number a row."""
    return array not in _COLUMNS


def kinds_of(arrays: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the kinds of content that arrays make, and the arrays of each."""
    there = {*arrays}
    found = {kind: next(filter(there.issuperset, ways), ()) for kind, ways in KINDS.items()}
    if found["oriented boxes"] and found["boxes"] == found["oriented boxes"][:2]:
        found["boxes"] = ()
    return {kind: own for kind, own in found.items() if own}


def choose_kind(found: Iterable[str], path: Path, options: ReadOptions) -> str:
    """Return the kind to read, of those that a file has."""
    found = list(found)
    kinds = [kind for kind in ACCEPTED[options.kind] if kind in found]
    if options.origin is not None and "points" in kinds:
        return "points"
    if not kinds:
        is_scene = options.kind == "scene"
        wanted, error = ("a scene", HoldsRays) if is_scene else (options.kind, FileFormatError)
        problem = f"holds {' and '.join(found)}, not {wanted}"
        raise file_error(path, problem, f"give a file of {wanted} here", kind=error)
    if len(kinds) > 1 and options.kind is None and kinds != ["oriented boxes", "points"]:
        raise file_error(path, f"holds {' and '.join(kinds)}", 'say which: kind="scene" or kind="rays"')
    return kinds[0]


def layout_names(layout: str | None) -> list[str] | None:
    """Return the names in a layout; raise `InvalidInput` for one that is no list of names."""
    names = None if layout is None else [name.strip() for name in str(layout).split(",")]
    if names is not None and not all(names):
        raise InvalidInput(f'layout must be names of columns, such as "x,y,z,i"; got {quoted(layout)}')
    return names


def unnamed_error(path: Path, problem: str, options: ReadOptions) -> FileFormatError:
    """Return the error for a file of bare numbers without a layout."""
    bounds = ("lower", "upper")
    arrays = {"scene": bounds, "boxes": bounds, "rays": ("origins", "directions")}
    array = arrays.get(options.kind or "", ())
    own = [name for one in array for name in column_names(one)] or [*"xyzi"]
    where = "in the first line, or " if path.suffix.lower() in TEXTS else ""
    return file_error(path, problem, f"name them {where}by layout= or --layout, such as {','.join(own)}")


NONE: Mapping[str, str] = MappingProxyType({})


def choose(
    header: Sequence[str], path: Path, options: ReadOptions, own: Mapping[str, str] = NONE
) -> TableColumns:
    """Return which columns to read; `own` are those that the file names as raybox does, besides."""
    _check_repeated(header, path)
    names = {**own, **{name: name for name in header}}
    found = _arrays(names, path)
    lower = {name.lower(): name for name in header} | names
    if not found:
        _check_repeated([low if (low := name.lower()) in OWN_NAMES else name for name in header], path)
        names = lower
        found = _arrays(names, path)
    if not found:
        raise file_error(path, _header_problem(names), columns_hint(path, options), "header")
    points = found.get("points", {}).get("points")
    uses = [names for arrays in found.values() for names in arrays.values()]
    if points and uses.count(points) > 1 and options.kind is None and options.origin is None:
        del found["points"]  # which are centres of boxes, or origins of rays
    kind = choose_kind(found, path, options)
    arrays = found[kind]
    if kind == "rays":
        ranges = {name: [lower[name]] for name in RANGES if name in lower}
        if ranges and "starts" in arrays:
            problem = f"has the column{'s' * (len(ranges) > 1)} {' '.join(ranges)}"
            problem += ", but segments, where t is 0 to 1"
            raise file_error(path, problem, "remove it, or give origins and directions", "header")
        arrays |= ranges
    used = {name for names in arrays.values() for name in names} | set(own.values())
    own_id = "id" if "id" in header else next((n for n in header if n.lower() == "id"), "id")
    labels = {"id" if n == own_id else n: n for n in header if n not in used}
    return TableColumns(kind, arrays, labels if kind in ACCEPTED["scene"] else {})


def _check_repeated(header: Sequence[str], path: Path) -> None:
    for name, count in Counter(header).most_common(1):
        if count > 1:
            problem = f"has more than one column named {quoted(name)}"
            raise file_error(path, problem, "rename one of them", "header")


def has_kind(header: Container[str]) -> bool:
    """Return whether a header has the columns of boxes, rays or points."""
    return any(_fitting(way, header) for ways in _WAYS.values() for way in ways)


def _arrays(names: Mapping[str, str], path: Path) -> dict[str, Columns]:
    """Return the arrays of each kind; raise for bounds of two kinds, neither of which is raybox's."""
    fitting = {group: [way for one in ways if (way := _fitting(one, names))] for group, ways in _WAYS.items()}
    bounds, sizes = fitting["bounds"], fitting["sizes"]
    if len(bounds) > 1 and "min_x" not in bounds[0]["lower"]:
        both = " and ".join(" ".join(way["lower"]) for way in bounds[:2])
        raise file_error(path, f"has bounds of two kinds: {both}", "rename those that count", "header")
    turn = next((turn for turn in _TURNS if names.keys() >= {*chain.from_iterable(turn.values())}), None)
    found = {"boxes": bounds or ([] if turn else sizes)}
    found["oriented boxes"] = [way | turn for way in sizes] if turn else []
    found["rays"] = [way for way in fitting["rays"] if not turn or "dx" not in way.get("directions", ())]
    found["points"] = fitting["points"]
    return {
        kind: {array: [names[name] for name in own] for array, own in ways[0].items()}
        for kind, ways in found.items()
        if ways
    }


def _fitting(way: Columns, header: Container[str]) -> Columns | None:
    """Return the columns of a spelling if a header has them: z in all of its arrays, or in none (2D)."""
    if not all(name in header for names in way.values() for name in names[:2]):
        return None
    deep = [names[2] in header for names in way.values()]
    if any(deep) and not all(deep):
        return None
    return {array: names[: 3 if deep[0] else 2] for array, names in way.items()}


def _header_problem(header: Mapping[str, str]) -> str:
    """Return what a header of no kind lacks: some columns, if it has others of a kind."""
    for group in ("bounds", "rays", "sizes"):
        for number, way in enumerate(_WAYS[group]):
            flat = not any(names[2] in header for names in way.values())
            names = [name for names in way.values() for name in names[: 2 if flat else 3]]
            lacking = [name for name in names if name not in header]
            if len(lacking) <= (len(names) // 2 if number or group == "sizes" else len(names) - 1):
                return f"lacks the column{'s' * (len(lacking) > 1)} {' '.join(lacking)}"
    return f"has no columns of boxes, rays or points, but {quoted(','.join(header))}"


def columns_hint(path: Path, options: ReadOptions) -> str:
    """Return the way out for a table without columns of a kind."""
    kinds = [kind for kind in ACCEPTED[options.kind] if options.kind is None or kind != "oriented boxes"]
    rows = [f"{kind}: {' '.join(n for a in KINDS[kind][0] for n in column_names(a))}" for kind in kinds]
    where = " in the first line" if path.suffix.lower() in TEXTS else ""
    return f"name the columns{where}, for {'; for '.join(rows)} (no z columns in 2D)"
