"""``cast``: from arguments to a finished file."""

import os
import time
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from typing import cast as typed

import numpy as np

from raybox._version import __version__
from raybox.distributed.split import SplitScene
from raybox.errors import InvalidInput, RayboxError
from raybox.geometry import Bounded, Boxes, Rays
from raybox.io.chunked import checksums, journal, pipeline
from raybox.io.chunked.chunks import CHUNK, Rooms, pass_over
from raybox.io.chunked.journal import Done, Journal
from raybox.io.chunked.pipeline import Work
from raybox.io.chunked.readers import open_source
from raybox.io.chunked.result_columns import QUERIES, Task, kinds
from raybox.io.chunked.stages import Line
from raybox.io.chunked.writers import SINKS, CsvTo, check_out
from raybox.io.formats.common import Want, broken
from raybox.io.formats.loading import check
from raybox.scene.scene import Scene
from raybox.threads.chunks import check_workers


class Summary(NamedTuple):
    """What became of a file of rays."""

    rays: int
    """How many there are."""
    met: int
    """How many met anything; of ``all``: how many boxes are met."""
    rows: int
    """How many rows the output has."""
    resumed: int
    """How many rays were done before, by the same command."""
    seconds: float
    """How long the others took, reading and writing included."""


def cast(  # noqa: PLR0913
    scene: Scene | SplitScene,
    rays: str | os.PathLike[str],
    out: str | os.PathLike[str] | BinaryIO,
    *,
    query: str = "nearest",
    ids: Sequence[str] | None = None,
    origin: Sequence[float] | None = None,
    invalid: str = "raise",
    workers: int = -1,
    progress: bool = False,
    chunk: int = CHUNK,
) -> Summary:
    """Put one question to every ray of a file, answers into another file; memory does not grow with them.

    The answers are those of ``load``, the question, and ``save``, bit for bit. Whatever stops it, there is
    never half a file: what is done is kept in ``OUT.raybox-part``, and the same call goes on from there, to
    the very bytes that it would have written at once.

    Parameters
    ----------
    scene : Scene or SplitScene
        What is asked: of Boxes or of a Mesh.
    rays : str or path
        Read chunk by chunk: ``.parquet .npy .csv .las .laz``, ``.npz`` that is not compressed, and ``.zarr``
        (version 3: a group of ``origins directions [t_min t_max]``, or of ``points``). ``.ply .pcd`` and
        other ``.npz`` are loaded whole.
    out : str, path, or binary file
        ``.parquet .npy .csv .npz .zarr``; to an open file goes CSV, which nobody can resume.
    query : {"nearest", "occluded", "count", "all"}
        What to ask.
    ids : sequence of str, optional
        One for each box of the scene: the column ``id``.
    origin : X, Y, Z, optional
        Where rays to a set of points start, as in :func:`raybox.load`.
    invalid : {"raise", "miss"}
        What becomes of rays with NaN, as in :class:`raybox.Rays`. What was done before such a ray is kept;
        the call goes on with ``invalid="miss"``, or once the file is mended.
    workers : int
        Threads that ask; -1 for all cores.
    progress : bool
        Show a bar on stderr, with the rate and the time left.
    chunk : int
        Rays that are asked together, about a million if left out. Memory grows with it.

    Returns
    -------
    Summary
        How many rays, how many met anything, rows, how many were done before, seconds.

    Raises
    ------
    FileFormatError
        A file cannot be read or written, or holds wrong numbers, or another call has begun the output.
    InvalidInput
        An argument is none of those above.
    RayboxError
        A format needs a package that is not installed.

    Examples
    --------
    >>> import raybox as rb, tempfile
    >>> folder = tempfile.mkdtemp()
    >>> rb.save(f"{folder}/rays.npy", rb.Rays([0, 0, 0], [[1, 0, 0], [0, 1, 0], [-1, 0, 0]]))
    >>> scene = rb.Scene(rb.Boxes([[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [6, 1, 1]]))
    >>> done = rb.stream.cast(scene, f"{folder}/rays.npy", f"{folder}/counts.csv", query="count")
    >>> done.rays, done.met
    (3, 1)
    >>> print(open(f"{folder}/counts.csv").read())
    ray,count
    0,2
    1,0
    2,0
    <BLANKLINE>
    """
    check_arguments(scene, query, ids, chunk)
    want = want_of(origin, invalid)
    threads = check_workers(workers)
    target = Path(out) if isinstance(out, str | os.PathLike) else None
    if target:
        check_target(target, Path(rays))
    source = open_source(Path(rays), want)
    ask_one(scene, query, source.dimension)
    started = time.perf_counter()
    line = Line()
    names = None if ids is None else [str(name) for name in ids]
    task = Task(Path(), kinds(query, source.dimension, names), names, line.check)
    work = Work(source, scene, query, int(chunk), threads, line, progress, Rooms())
    if target is None:
        sink = CsvTo(task, typed(BinaryIO, out))
        before, done = 0, pipeline.run(work, sink)
        sink.finish(done.rows)
    else:
        before, done = _to_file(work, task, target, want)
    return Summary(done.place.first, done.met, done.rows, before, time.perf_counter() - started)


def check_arguments(scene: Any, query: str, ids: Sequence[str] | None, chunk: Any) -> None:
    """Refuse what nobody can ask."""
    if not isinstance(scene, Scene | SplitScene):
        raise InvalidInput(
            f"scene must be a raybox.Scene; got {type(scene).__name__}. Make one: Scene(boxes)."
        )
    if isinstance(scene, Scene) and not isinstance(scene.geometry, Bounded):
        raise InvalidInput(
            f"rays of files and of clusters are cast at Boxes or a Mesh; got {scene!r}. "
            "Cast them at one geometry after the other, or ask the scene itself."
        )
    if query not in QUERIES:
        raise InvalidInput(f"query must be one of {', '.join(QUERIES)}; got {query!r}.")
    if ids is not None and len(ids) != len(scene):
        raise InvalidInput(f"ids must name every box: got {len(ids)} for {len(scene)} boxes")
    if isinstance(chunk, bool) or not hasattr(chunk, "__index__") or int(chunk) < 1:
        raise InvalidInput(f"chunk must be a whole number of rays, at least 1; got {chunk!r}.")


def want_of(origin: Sequence[float] | None, invalid: str) -> Want:
    """Tell what to read of a file of rays."""
    return check(Want("rays", None if origin is None else tuple(map(float, origin)), False, invalid))


def check_target(target: Path, rays: Path) -> None:
    """Refuse, before any work, an output that cannot be written, or would overwrite the rays."""
    check_out(target)
    if target.resolve() == rays.resolve():
        raise InvalidInput(f"out must not be the file of rays; got {target} for both.")


def ask_one(scene: Scene | SplitScene, query: str, dimension: int) -> None:
    """Ask one ray: dimensions are compared before any work, and what has to be compiled is compiled."""
    getattr(scene, query)(Rays(np.zeros((1, dimension)), np.ones((1, dimension))))


def _to_file(work: Work, task: Task, target: Path, want: Want) -> tuple[int, Done]:
    """Go on with what is done of a file; whatever stops it, say what is kept."""
    asked = asked_of(work.scene, work.query, task.ids, want, work.size)
    found = checksums.of_file(work.source.path)
    log: Journal | None = None
    try:
        with journal.opened(target, asked, found) as log:
            return _go_on(work, task, log)
    except OSError as error:
        raise _told(unwritable(target, error), log) from error
    except RayboxError as error:
        raise _told(error, log) from error
    except (KeyboardInterrupt, MemoryError) as error:
        if log and log.done.place.first:
            error.add_note(_kept(log))
        raise


def _go_on(work: Work, task: Task, log: Journal) -> tuple[int, Done]:
    before = log.done.place.first
    if not log.done.finished:
        _verify(work, log)
        log.save()
        with closing(SINKS[log.whole.suffix](task._replace(folder=log.folder), log.done.files)) as sink:
            pipeline.run(work, sink, log)
            sink.finish(log.done.rows)
    done = log.done
    log.place_output()
    log.remove()
    return before, done


def asked_of(
    scene: Scene | SplitScene, query: str, ids: Sequence[str] | None, want: Want, size: int
) -> dict[str, Any]:
    """Tell what another command would have to ask to be the same."""
    return {
        "raybox": __version__,
        "query": query,
        "scene": _said_of(scene),
        "ids": None if ids is None else f"sum {checksums.of_text(*ids)[:16]}",
        "origin": None if want.origin is None else list(want.origin),
        "invalid": want.invalid,
        "chunk": size,
    }


def unwritable(target: Path, error: OSError) -> RayboxError:
    """Word that an output cannot be written."""
    problem = f"cannot be written: {pipeline.reason(error)}"
    return broken(target, problem, "make room, or check its permissions")


def dimension_of(scene: Scene | SplitScene) -> int:
    """Tell the dimensions of a scene."""
    return scene.ndim_space if isinstance(scene, SplitScene) else scene.geometry.ndim_space


def kind_of(scene: Scene | SplitScene) -> str:
    """Tell what a scene is made of."""
    if isinstance(scene, SplitScene):
        return scene.kind
    return "boxes" if isinstance(scene.geometry, Boxes) else "mesh"


def _said_of(scene: Scene | SplitScene) -> str:
    """Tell a scene from others."""
    kind = "boxes" if kind_of(scene) == "boxes" else "triangles"
    if isinstance(scene, SplitScene):
        return f"{len(scene)} {kind} in {scene.parts} parts, sum {scene.digest[:16]}"
    names = ("lower", "upper") if kind == "boxes" else ("vertices", "faces")
    summed = checksums.of_arrays(*(getattr(scene.geometry, name) for name in names))
    return f"{len(scene)} {kind}, sum {summed[:16]}"


def _verify(work: Work, log: Journal) -> None:
    """See that the rays that are done are still the input's first, if it has changed since."""
    place = log.done.place
    if log.same_input or not place.first:
        return
    again = pass_over(work.source, work.size, place.first)
    if again is None or again.digest != place.digest:
        raise broken(
            work.source.path,
            f"has changed: its first {place.first:,} rays are not those that were asked before",
            f"bring the old one back, or remove the folder {log.folder} and begin anew",
        )
    log.done = log.done._replace(place=again)


def _told(error: RayboxError, log: Journal | None) -> RayboxError:
    """Add to an error what is kept."""
    if log is None or not log.done.place.first:
        return error
    return type(error)(f"{error}; {_kept(log)}")


def _kept(log: Journal) -> str:
    return (
        f"{log.done.place.first:,} rays are done and kept in {log.folder.name}, "
        "from where the same command goes on"
    )
