"""Which columns of a table mean what; shared by every format that has named columns."""

from collections.abc import Sequence
from pathlib import Path

from raybox.files.common import Want, broken, shown
from raybox.files.parts import KINDS, RANGES, choose, names_of


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
