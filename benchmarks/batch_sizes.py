"""The time of a call by its number of rays R, beside embreex: R, R + 1 and 2 R rays, taken in turns.

    python benchmarks/batch_sizes.py [--most 1048576] [--threads 1] [--rounds 7] [--clock cpu] [--svg FILE]

A call makes `Rays` of float64 arrays, casts them, and reads index and t; embreex gets the arrays converted to
float32. R is each power of two from 16 on. A time is the mean over 40 different sets of rays, fewer above
16,384 rays. The output is a table, and the largest ratios of R + 1 and of 2 R rays to R beside their aims. A
step in the curve marks a size from which raybox traverses in another way.
"""

import argparse
import sys
from collections.abc import Callable, Iterator
from functools import partial
from math import ceil
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

import numpy as np

import meshes
import own_aims
import raybox as rb
import real_data
import small_batches
from own_aims import Aim, at_most
from raybox.bench import data, machine, report, timing, worker
from raybox_peers import common
from small_batches import Contest

Results = dict[str, Any]
KINDS = ("inside", "camera")
HOUSE, CITY = "house, triangles", "city, triangles"
SKULL, BOXES = "skull, triangles", "uniform boxes"
LEAST, MOST = 16, 2**20  # rays
EMBREEX, ONE_MORE, TWICE = "embreex", "R + 1", "2 R"
MOST_ONE_MORE, MOST_TWICE = 1.1, 2.05
"""The aims: the largest ratios of the time of R + 1 and of 2 R rays to that of R"""
PICTURE = "![nanoseconds a ray by the number of rays: raybox and embreex](images/batch_sizes.svg)"
_SETS = 40
_LARGE = 2**14  # rays, above which there are fewer sets
_LEAST_SETS = 3
_PIXELS = 10_000  # of the picture that sets of a camera's rays are parts of, at least
_SECONDS = 0.1  # of all rounds, at least


class Line(NamedTuple):
    """Nanoseconds a ray at one number of rays, and the ratios of R + 1 and of 2 R rays to it."""

    scene: str
    rays: str
    count: int
    raybox: float
    embreex: float | None
    one_more: float
    twice: float


def measure(
    size: int = 100_000, most: int = MOST, rounds: int = 7, clock: str = "wall", threads: int = 1
) -> dict[str, Any]:
    """Return the seconds of a call: each scene, kind and number of rays.

    size: uniform boxes. threads: those that the process is bound to.
    """
    times = []
    for scene, (boxes, cast, _) in _contests(size).items():
        for kind in KINDS:
            for count in _counts(most):
                sets = _ray_sets(kind, boxes, count)
                seconds = _seconds(cast, sets, count, rounds, clock)
                about = {"scene": scene, "rays": kind, "count": count, "sets": len(sets)}
                times.append(about | {"seconds": seconds})
    return {"machine": machine.describe(), "size": size, "threads": threads, "times": times}


def _counts(most: int) -> Iterator[int]:
    count = LEAST
    while count <= most:
        yield count
        count *= 2


def set_count(count: int) -> int:
    """Return the number of different sets of `count` rays."""
    return min(_SETS, max(_LEAST_SETS, _SETS * _LARGE // count))


def _ray_sets(kind: str, boxes: data.BoxSet, count: int) -> list[data.RaySet]:
    """Return sets of 2 * count neighbouring rays, evenly spread over a picture or a sample.

    The rays are a circle: the first one follows the last one. So a part of the picture is as frequent in sets
    of `count` rays, the first halves, as in whole sets.
    """
    width = ceil(max(2 * count, _PIXELS) ** 0.5)
    rays, total = data.rays(kind, width * width, boxes), width * width
    circle = data.RaySet(*(np.concatenate([x, x[: 2 * count]]) for x in rays))
    begins = [total * k // set_count(count) for k in range(set_count(count))]
    return [data.RaySet(*(x[begin : begin + 2 * count] for x in circle)) for begin in begins]


def _seconds(
    cast: dict[str, Callable[..., Any]], sets: list[data.RaySet], count: int, rounds: int, clock: str
) -> dict[str, list[float]]:
    """Return the mean seconds of a call in each round: of raybox for each number of rays, of embreex."""
    sizes = {"raybox": count, ONE_MORE: count + 1, TWICE: 2 * count}
    calls = {name: partial(_cast_all, cast["raybox"], sets, size) for name, size in sizes.items()}
    if EMBREEX in cast:
        calls[EMBREEX] = partial(_cast_all, cast[EMBREEX], sets, count)
    for call in calls.values():
        call()
    found = timing.alternate(calls, rounds, timing.CLOCKS[clock], least=_SECONDS)
    return {name: [second / len(sets) for second in seconds] for name, seconds in found.items()}


def _cast_all(cast: Callable[..., Any], sets: list[data.RaySet], count: int) -> None:
    for origins, directions in sets:
        cast(origins[:count], directions[:count])


def _contests(size: int) -> dict[str, Contest]:
    """Return the scenes."""
    return {
        HOUSE: _of_triangles(real_data.HOUSE),
        CITY: _of_triangles(real_data.CITY),
        SKULL: _of_triangles(real_data.SKULL),
        BOXES: _of_boxes(data.boxes("uniform", size)),
    }


def _of_triangles(path: Path) -> Contest:
    vertices, faces, around = meshes.load(str(path))
    return Contest(around, small_batches.casts(rb.Mesh(vertices, faces), vertices, faces))


def _of_boxes(boxes: data.BoxSet) -> Contest:
    triangles = common.corners(boxes), common.faces(boxes, np.int32)
    return Contest(boxes, small_batches.casts(rb.Boxes(boxes.lower, boxes.upper), *triangles))


def lines(result: dict[str, Any]) -> list[Line]:
    """Return medians over the rounds; those of ratios are of times of the same round."""
    return [_line(record) for record in result["times"]]


def _line(record: dict[str, Any]) -> Line:
    seconds, count = record["seconds"], record["count"]
    paces = {name: 1e9 * median(some) / count for name, some in seconds.items()}
    more, twice = (timing.ratio(seconds["raybox"], seconds[name])[0] for name in (ONE_MORE, TWICE))
    about = (record["scene"], record["rays"], count)
    return Line(*about, paces["raybox"], paces.get(EMBREEX), more, twice)


def _parts(results: Results) -> dict[str, list[Line]]:
    """Return the lines of each part, by its number of threads in words."""
    found = {}
    for name, result in results.items():
        if name.startswith("batch-sizes"):
            threads = result["threads"]
            found["one thread" if threads == 1 else f"{threads} threads"] = lines(result)
    return found


def curve(results: Results) -> list[Line]:
    """Return the lines of the part with the fewest threads; none if nothing was measured."""
    return next(iter(_parts(results).values()), [])


def aims(results: Results) -> list[Aim]:
    """Return the aims of R + 1 and of 2 R rays, each with its worst case."""
    made = []
    for threads, found in _parts(results).items():
        more = [(line.one_more, _where(line)) for line in found]
        twice = [(line.twice, _where(line)) for line in found]
        made.append(at_most(f"{threads}, R + 1 rays: {MOST_ONE_MORE} times R", MOST_ONE_MORE, more))
        made.append(at_most(f"{threads}, 2 R rays: {MOST_TWICE} times R", MOST_TWICE, twice))
    return [aim for aim in made if aim]


def _where(line: Line) -> str:
    return f"{line.scene}, {line.rays}, R = {line.count:,}"


def table(found: list[Line]) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
    """Return head and rows of a table: a row for each scene, kind and number of rays."""
    head = ("scene", "kind", "R", "raybox, ns a ray", "embreex, ns a ray", "R + 1 / R", "2 R / R")
    return head, [
        (
            line.scene,
            line.rays,
            f"{line.count:,}",
            report.short(line.raybox),
            "-" if line.embreex is None else report.short(line.embreex),
            f"{line.one_more:.3f}",
            f"{line.twice:.3f}",
        )
        for line in found
    ]


def _worst(found: list[Line], threads: str) -> list[tuple[str, ...]]:
    """Return a row for each scene and kind of rays: the largest ratios, and where they are."""
    made = []
    for scene, kind in dict.fromkeys((line.scene, line.rays) for line in found):
        some = [line for line in found if (line.scene, line.rays) == (scene, kind)]
        more, twice = max(some, key=lambda x: x.one_more), max(some, key=lambda x: x.twice)
        numbers = (f"{more.one_more:.3f}", f"{more.count:,}", f"{twice.twice:.3f}", f"{twice.count:,}")
        made.append((scene, kind, threads, *numbers))
    return made


def section(results: Results) -> str:
    """Return the plot of the curve, and the table of the largest ratios, for the appendix."""
    parts = _parts(results)
    if not parts:
        return ""
    rows = [row for threads, found in parts.items() for row in _worst(found, threads)]
    most = max(line.count for line in curve(results))
    words = WORDS.format(most=most, threads=next(iter(parts)), sets=_SETS, least=set_count(most))
    head = ("scene", "kind", "threads", "R + 1 / R", "at R", "2 R / R", "at R")
    return "\n\n".join(["## Calls by their number of rays", words, PICTURE, report.markdown(head, rows)])


WORDS = """\
Nanoseconds a ray of a call with R rays, with {threads}, for R = 16, 32, … {most:,}: `Rays` of float64 arrays,
`nearest`, and reading `index` and `t`. embreex: `run(o.astype(f4), d.astype(f4), output=True)`, which is one
thread. Each time is the mean over {sets} sets of rays ({least} at the largest R). The table has the largest
ratios of the time of R + 1 and of 2 R rays to the time of R: 1 and 2 where the curve has no step."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=100_000, help="of the scene of uniform boxes")
    parser.add_argument("--most", type=int, default=MOST, help="the largest R")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--clock", choices=timing.CLOCKS, default="wall", help="wall, or cpu: processor time")
    parser.add_argument("--svg", type=Path, help="a file for the plot of the curve; needs matplotlib")
    options = parser.parse_args()
    worker.bind(options.threads)
    result = measure(options.size, options.most, options.rounds, options.clock, options.threads)
    results = {"batch-sizes": result}
    print(report.text(*table(lines(result))), own_aims.text(aims(results)), sep="\n\n")
    if options.svg:
        import plots

        plots.batch_sizes(lines(result), options.svg, machine.in_words(result["machine"]).split("\n")[0])


if __name__ == "__main__":
    main()
