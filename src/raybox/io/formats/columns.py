"""The columns of tables, in the spellings of the field."""

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from raybox.io.formats.common import ReadOptions, file_error, quoted

RANGES = ("t_min", "t_max")
YAW = ("yaw", "heading")
_CENTERS = [f"{word}{dot}*" for word in ("center", "position", "translation") for dot in "_."] + ["*"]
_SIZES = [f"{word}{dot}*" for word in ("size", "dimensions") for dot in "_."]
_SIZES += ["d*", "length width height", "l w h"]

# The arrays of each kind of content, and names of their columns, raybox's own first. * is the axis.
KINDS: dict[str, dict[str, tuple[str, ...]]] = {
    "boxes": {
        "lower": ("min_*", "min*", "*min", "*_min", "bbox.*min"),
        "upper": ("max_*", "max*", "*max", "*_max", "bbox.*max"),
    },
    "oriented boxes": {
        "centers": tuple(center for center in _CENTERS for _ in _SIZES),
        "sizes": tuple(size for _ in _CENTERS for size in _SIZES),
    },
    "rays": {"origins": ("origin_*",), "directions": ("direction_*",)},
    "points": {"points": ("*",)},
}
ACCEPTED: dict[str | None, tuple[str, ...]] = {
    "scene": ("boxes", "oriented boxes"),
    "rays": ("rays", "points"),
    None: ("boxes", "oriented boxes", "rays", "points"),
}


class TableColumns(NamedTuple):
    """The columns of a table that are read, by its own names."""

    kind: str
    arrays: dict[str, list[str]]
    """of each array of the kind, and of ranges and yaw, which have one column"""
    labels: dict[str, str]
    """of each label; only boxes have labels"""
    left_out: int = 0
    """columns of a type that no label has"""

    @property
    def numbers(self) -> list[str]:
        """All columns of arrays."""
        return [name for names in self.arrays.values() for name in names]


def _spelled(form: str) -> list[str]:
    """Return the names of a spelling on the axes x, y, z."""
    return form.split() if " " in form else [form.replace("*", axis) for axis in "xyz"]


_WAYS = {
    kind: [[_spelled(form) for form in forms] for forms in zip(*arrays.values(), strict=True)]
    for kind, arrays in KINDS.items()
}
"""The spellings of each kind: the columns of each of its arrays."""
_COLUMNS = {
    array: names for kind, ways in _WAYS.items() for array, names in zip(KINDS[kind], ways[0], strict=True)
}
OWN_NAMES = frozenset(chain.from_iterable(_COLUMNS.values()))
"""The columns as raybox writes them."""
SECOND_NAMES = frozenset(names[1] for ways in _WAYS.values() for way in ways for names in way)
"""The columns of the axis y: every header has one, in small letters or not."""


def column_names(array: str, dimension: int = 3) -> list[str]:
    """Return the columns of an array: ``column_names("lower")`` is ``["min_x", "min_y", "min_z"]``."""
    return _COLUMNS.get(array, [array])[:dimension]


def is_flat(array: str) -> bool:
    """Return whether an array has one number a row."""
    return array not in _COLUMNS


def choose_kind(found: Iterable[str], path: Path, options: ReadOptions) -> str:
    """Return the kind to read, of those that a file has."""
    found = list(found)
    kinds = [kind for kind in ACCEPTED[options.kind] if kind in found]
    if options.origin is not None and "points" in kinds:
        return "points"
    if not kinds:
        wanted = "a scene" if options.kind == "scene" else "rays"
        raise file_error(path, f"holds {' and '.join(found)}, not {wanted}", f"give a file of {wanted} here")
    if len(kinds) > 1 and options.kind is None and kinds != ["oriented boxes", "points"]:
        raise file_error(path, f"holds {' and '.join(kinds)}", 'say which: kind="scene" or kind="rays"')
    return kinds[0]


NONE: Mapping[str, str] = MappingProxyType({})


def choose(
    header: Sequence[str], path: Path, options: ReadOptions, own: Mapping[str, str] = NONE
) -> TableColumns:
    """Return which columns of a table to read; labels only with boxes.

    own: columns of the table by raybox's names, where the file itself says what they are.
    """
    if path.suffix.lower() == ".csv" and len(header) in (4, 6) and all(map(_is_number, header)):
        raise file_error(path, _no_columns(header), _hint_of_numbers(path, options), "header")
    _check_repeated(header, path)
    names = {**own, **{name: name for name in header}}
    found = _arrays(names, path)
    if not found:
        _check_repeated([low if (low := name.lower()) in OWN_NAMES else name for name in header], path)
        names = {name.lower(): name for name in header} | names
        found = _arrays(names, path)
    if not found:
        raise file_error(path, _header_problem(names), _columns_hint(path, options), "header")
    kind = choose_kind(found, path, options)
    arrays = found[kind]
    if kind == "rays":
        lower = {name.lower(): name for name in header} | names
        arrays |= {name: [lower[name]] for name in RANGES if name in lower}
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
    return any(_matches(kind, header) for kind in KINDS)


def _arrays(names: Mapping[str, str], path: Path) -> dict[str, dict[str, list[str]]]:
    """Return the arrays of each kind that the columns make.

    Raise if they make those of boxes in two ways, none of which is raybox's.
    """
    found = {}
    for kind, arrays in KINDS.items():
        ways = _matches(kind, names)
        if len(ways) > 1 and kind == "boxes" and "min_x" not in ways[0][0]:
            both = " and ".join(" ".join(lower) for lower, _ in ways[:2])
            raise file_error(path, f"has bounds of two kinds: {both}", "rename those that count", "header")
        if ways:
            found[kind] = {
                array: [names[name] for name in way] for array, way in zip(arrays, ways[0], strict=True)
            }
            if kind == "oriented boxes":
                found[kind]["yaw"] = [names[next(name for name in YAW if name in names)]]
    return found


def _matches(kind: str, header: Container[str]) -> list[list[list[str]]]:
    """Return the spellings of a kind in a header: columns of each array.

    Z in all of its arrays, or in none (2D).
    """
    if kind == "oriented boxes" and not any(name in header for name in YAW):
        return []
    found = []
    for way in _WAYS[kind]:
        deep = [names[2] in header for names in way]
        flat = (name in header for names in way for name in names[:2])
        if all(flat) and (all(deep) or not any(deep)):
            found.append([names if deep[0] else names[:2] for names in way])
    return found


def _header_problem(header: Mapping[str, str]) -> str:
    """Return what is wrong with a header of no kind.

    The missing columns, if it has some of a kind.
    """
    for kind in ("boxes", "rays", "oriented boxes"):
        for number, way in enumerate(_WAYS[kind]):
            flat = not any(names[2] in header for names in way)
            names = [name for names in way for name in names[: 2 if flat else 3]]
            names += YAW[:1] if kind == "oriented boxes" else []
            lacking = [name for name in names if name not in header]
            if len(lacking) <= (len(names) // 2 if number or kind == "oriented boxes" else len(names) - 1):
                return f"lacks the column{'s' * (len(lacking) > 1)} {' '.join(lacking)}"
    return _no_columns(header)


def _no_columns(header: Iterable[str]) -> str:
    return f"has no columns of boxes, rays or points, but {quoted(','.join(header))}"


def _is_number(text: str) -> bool:
    """Return whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def _hint_of_numbers(path: Path, options: ReadOptions) -> str:
    """Return the way out for a file whose first line holds numbers."""
    line = "Rays.from_array" if options.kind == "rays" else "Boxes.from_bounds"
    numbers = "numpy.loadtxt(path, delimiter=',')"
    return f"{_columns_hint(path, options)}, or without such a line read it: raybox.{line}({numbers})"


def _columns_hint(path: Path, options: ReadOptions) -> str:
    kinds = {"scene": ["boxes"], "rays": ["rays", "points"]}.get(options.kind or "", list(KINDS))
    rows = [f"{kind}: {' '.join(n for array in KINDS[kind] for n in column_names(array))}" for kind in kinds]
    where = " in the first line" if path.suffix.lower() == ".csv" else ""
    return f"name the columns{where}, for {'; for '.join(rows)} (no z columns in 2D)"
