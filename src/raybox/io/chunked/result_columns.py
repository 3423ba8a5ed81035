"""A chunk's answers as columns: those that `raybox.save` writes, with the rays' numbers in the file."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from raybox.distributed.split import SplitScene
from raybox.geometry import Rays
from raybox.hits import Hits
from raybox.io.chunked import passing_kernels
from raybox.scene.scene import Scene
from raybox.validation import Bools, Floats, Ints

QUERIES = ("nearest", "occluded", "count", "all")
AT_ONCE = 1 << 16  # rows that are laid out at once, where that takes memory
CONTACTS = 1 << 20  # of ``all``, that are held at once; those of a single ray are never parted


@dataclass(frozen=True, slots=True, eq=False)
class Sparse:
    """A column that has nothing in some rows: of three rays in four that miss, no points need to be kept."""

    there: Bools
    numbers: Floats
    """Of rows that have one."""

    def __len__(self) -> int:
        return len(self.there)


Column = NDArray[Any] | range | Sparse  # numbers one after the other need not lie in memory
Columns = dict[str, Column]
Scratch = dict[str, NDArray[Any]]  # memory that whoever writes lends again and again


class Answer(NamedTuple):
    """The answers of some rays of a chunk; ``columns`` lays them out, for whoever writes them."""

    met: int
    columns: Callable[["Scratch"], Columns]


def kinds(query: str, dimension: int, ids: Sequence[str] | None) -> dict[str, np.dtype[Any]]:
    """Give the columns of the answers to a question, and the kind of their numbers."""
    whole, real = np.dtype(np.int64), np.dtype(np.float64)
    if query in ("occluded", "count"):
        return {"ray": whole, query: np.dtype(np.bool_) if query == "occluded" else whole}
    named = {} if ids is None else {"id": np.array([*ids, ""], dtype=str).dtype}
    numbers = "xyz"[:dimension] if query == "nearest" else ("t_enter", "t_exit", "length")
    return {"ray": whole, "index": whole, **named, "t": real, **dict.fromkeys(numbers, real)}


def ask(scene: Scene | SplitScene, query: str, rays: Rays, first: int, workers: int) -> Iterator[Answer]:
    """Ask; all answers of a chunk, but for ``all``, of which there may be any number, are one `Answer`."""
    if query == "nearest":
        hits = scene.nearest(rays, workers=workers)
        yield Answer(int(np.count_nonzero(hits.hit)), partial(_nearest, rays, hits, first))
    elif query == "all":
        for begin, end in _parted(scene.count(rays, workers=workers)):
            contacts = scene.all(rays[begin:end], workers=workers)
            yield Answer(len(contacts.index), partial(_all, contacts, first + begin))
    else:
        flat = getattr(scene, query)(rays, workers=workers)
        numbered: Columns = {"ray": range(first, first + len(flat)), query: flat}
        yield Answer(int(np.count_nonzero(flat)), lambda _: numbered)


def laid_out(column: Column) -> NDArray[Any]:
    """Give a column as an array, with NaN where there is nothing."""
    if isinstance(column, Sparse):
        out = np.empty(len(column))
        passing_kernels.spread(column.there, column.numbers, out)
        return out
    return np.arange(column.start, column.stop) if isinstance(column, range) else column


def _parted(counts: Ints) -> Iterator[tuple[int, int]]:
    """Cut a chunk into runs of rays that have few enough contacts together."""
    ends = np.cumsum(counts)
    begin = 0
    while begin < len(counts):
        held = ends[begin - 1] if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, held + CONTACTS, side="right")))
        yield begin, end
        begin = end


def _nearest(rays: Rays, hits: Hits, first: int, scratch: Scratch) -> Columns:
    """Lay out what hits tell, bit for bit, but column by column."""
    index, t, met = hits.index, hits.t, hits.hit
    if len(scratch.get("points", [()])[0]) < len(t):
        scratch["points"] = np.empty((rays.ndim_space, len(t)))
    found = passing_kernels.points_of(rays.origins, rays.directions, t, met, tuple(scratch["points"]))
    points = (Sparse(met, numbers[:found]) for numbers in scratch["points"])
    columns: Columns = {"ray": range(first, first + len(t)), "index": index, "t": t}
    return columns | dict(zip("xyz", points, strict=False))


def _all(contacts: Any, first: int, _: Scratch) -> Columns:
    columns: Columns = {"ray": contacts.ray + first, "index": contacts.index, "t": contacts.t}
    return columns | {
        "t_enter": contacts.t_enter,
        "t_exit": contacts.t_exit,
        "length": contacts.lengths,
    }


class Task(NamedTuple):
    """What a writer has to know: where, which columns, the ids of the boxes, when to give up."""

    folder: Path
    kinds: dict[str, np.dtype[Any]]
    ids: list[str] | None
    check: Callable[[], None] = lambda: None


def slices(columns: Columns, task: Task, names: NDArray[Any] | None) -> Iterator[dict[str, NDArray[Any]]]:
    """Give columns some rows at a time, with the column ``id`` where it belongs."""
    whole = {
        name: laid_out(column) if isinstance(column, Sparse) else column for name, column in columns.items()
    }
    for start in range(0, len(columns["ray"]), AT_ONCE):
        task.check()
        some = {name: laid_out(column[start : start + AT_ONCE]) for name, column in whole.items()}
        if names is not None and "id" in task.kinds:
            some["id"] = names[some["index"]]
        yield {name: some[name] for name in task.kinds}


def names_of(task: Task) -> NDArray[Any] | None:
    """Give the boxes' ids as an array whose last is of a miss; None if they have none."""
    return None if task.ids is None else np.array([*task.ids, ""], dtype=str)
