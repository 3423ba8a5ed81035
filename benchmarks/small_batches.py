"""One to a million rays a call, from arrays and lists, beside embreex: microseconds, taken in turns.

    python benchmarks/small_batches.py [--size 100000] [--rounds 15] [--clock cpu]

A call makes `Rays`, casts them, and reads index and t: what a program does that has some rays at a time.
Scenes are the triangles of a house and of a city, and uniform boxes. Rays are a camera's, from within, and
bounces (`second_rays.py`), of which uniform boxes have none: float64 arrays, or lists of lists; embreex gets
the arrays converted to float32.
"""

import argparse
import sys
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

import own_aims
import raybox as rb
import real_data
import second_rays
from own_aims import Aim, at_most
from raybox.bench import data, machine, report, timing, worker
from raybox_peers import common

Results = dict[str, Any]
COUNTS = tuple(10**k for k in range(7))
HOUSE, CITY, BOXES = "house, triangles", "city, triangles", "uniform boxes"
KINDS = ("camera", "inside")
BOUNCE = "bounce"
LISTS = "raybox, lists"
_LONG_LISTS = 1000  # rays, of which more are no list in any program
_MANY, _ROUNDS_OF_MANY = 10_000, 5  # rays of a call, beyond which there are fewer rounds
_CALLS = 50  # of a sample, at least


class Case(NamedTuple):
    """What is cast at once: at which scene, how many rays of which kind."""

    scene: str
    count: int
    rays: str


class Contest(NamedTuple):
    """A scene, a function of origins and directions for each library that is installed, and bounces."""

    boxes: data.BoxSet
    cast: dict[str, Callable[..., Any]]
    bounces: data.RaySet | None = None


def measure(
    size: int = 100_000, rounds: int = 15, clock: str = "wall", most: int = COUNTS[-1]
) -> dict[str, Any]:
    """Return the seconds of a call: each scene, number and kind of rays, and way to pass them."""
    times = []
    for scene, (boxes, cast, bounces) in _contests(size, most).items():
        sets = {kind: data.rays(kind, most, boxes) for kind in KINDS}
        for kind, rays in (sets | ({} if bounces is None else {BOUNCE: bounces})).items():
            for count in (count for count in COUNTS if count <= most):
                turns = rounds if count <= _MANY else min(rounds, _ROUNDS_OF_MANY)
                for name, seconds in _seconds(cast, _batches(rays, count), turns, clock).items():
                    times.append({**Case(scene, count, kind)._asdict(), "name": name, "seconds": seconds})
    return {"machine": machine.describe(), "size": size, "times": times}


def _seconds(
    cast: dict[str, Callable[..., Any]], batches: list[data.RaySet], rounds: int, clock: str
) -> dict[str, list[float]]:
    """Return the seconds of a call in each round, by contestant."""
    calls = {name: partial(_all_of, one, batches) for name, one in cast.items()}
    if len(batches[0].origins) <= _LONG_LISTS:
        lists = [data.RaySet(*(x.tolist() for x in one)) for one in batches]
        calls[LISTS] = partial(_all_of, cast["raybox"], lists)
    for call in calls.values():
        call()
    found = timing.alternate(calls, rounds, timing.CLOCKS[clock])
    return {name: [second / len(batches) for second in seconds] for name, seconds in found.items()}


def _batches(rays: data.RaySet, count: int) -> list[data.RaySet]:
    """Return batches of neighbouring rays: up to a thousand of them, again until they are `_CALLS`."""
    ends = range(count, max(count, min(len(rays.origins), 1000)) + 1, count)
    once = [data.RaySet(*(np.array(x[end - count : end]) for x in rays)) for end in ends]
    return once * -(-_CALLS // (len(once) * max(1, count // 1000)))


def _all_of(cast: Callable[..., Any], batches: list[data.RaySet]) -> None:
    for origins, directions in batches:
        cast(origins, directions)


def _contests(size: int, most: int) -> dict[str, Contest]:
    """Return the scenes."""
    boxes = data.boxes("uniform", size)
    corners = common.corners(boxes), common.faces(boxes, np.int32)
    return {
        HOUSE: _of_triangles(real_data.HOUSE, "room", most),
        CITY: _of_triangles(real_data.CITY, "oblique", most),
        BOXES: Contest(boxes, casts(rb.Boxes(boxes.lower, boxes.upper), *corners)),
    }


def _of_triangles(path: Path, view: str, most: int) -> Contest:
    """Return the contest of a file's triangles; bounces are repeated until they are `most`."""
    target = second_rays.load(str(path), "triangles")
    made = second_rays.second_rays(
        BOUNCE, second_rays.surface_points(view, most, target), view, target.around
    )
    bounces = data.RaySet(*(np.resize(x, (most, 3)) for x in made[:2]))
    boxes = data.BoxSet(target.around[:1], target.around[1:], target.around)
    return Contest(boxes, casts(target.geometry, target.vertices, target.faces), bounces)


def casts(geometry: rb.Boxes | rb.Mesh, vertices: Any, faces: Any) -> dict[str, Callable[..., Any]]:
    """Return a function of origins and directions for each library that is installed."""
    scene = rb.Scene(geometry)

    def raybox(origins: Any, directions: Any) -> Any:
        hits = scene.nearest(rb.Rays(origins, directions))
        return hits.index, hits.t

    made = {"raybox": raybox}
    with suppress(ImportError):
        made["embreex"] = _embreex(vertices.astype(np.float32), faces.astype(np.int32))
    return made


def _embreex(vertices: Any, faces: Any) -> Callable[..., Any]:
    from embreex.mesh_construction import TriangleMesh
    from embreex.rtcore_scene import EmbreeScene

    scene = EmbreeScene()
    mesh_reference = TriangleMesh(scene, vertices, faces)

    def cast(origins: Any, directions: Any) -> Any:
        assert mesh_reference is not None
        hits = scene.run(origins.astype(np.float32), directions.astype(np.float32), output=True)
        return hits["primID"], hits["tfar"]

    return cast


def medians(result: dict[str, Any]) -> dict[Case, dict[str, float]]:
    """Return the microseconds of a call by contestant, for each case."""
    found: dict[Case, dict[str, float]] = {}
    for record in result["times"]:
        of = found.setdefault(Case(*(record[name] for name in Case._fields)), {})
        of[record["name"]] = 1e6 * median(record["seconds"])
    return found


def aims(results: Results) -> list[Aim]:
    """Return the aims of small batches, each with its worst case."""
    if "small-batches" not in results:
        return []
    found = medians(results["small-batches"])
    more = {case: (of[LISTS] - of["raybox"]) / case.count for case, of in found.items() if LISTS in of}
    own = {case: of["raybox"] for case, of in found.items()}
    ratios = {case: of["raybox"] / of["embreex"] for case, of in found.items() if "embreex" in of}
    made = [
        _aim("1 ray at boxes from arrays: 5 µs", own, 5.0, "µs", (BOXES, 1)),
        _aim("10 rays at boxes from arrays: 8 µs", own, 8.0, "µs", (BOXES, 10)),
        *(
            _aim(f"{scene}, rays a call: {count:,}; embreex's time", ratios, most, "times", (scene, count))
            for scene, bounds in AIMS.items()
            for count, most in bounds.items()
        ),
        _aim("from lists: 3 µs more a ray", more, 3.0, "µs"),
    ]
    return [aim for aim in made if aim]


AIMS = {
    BOXES: {1: 1.0, 1000: 0.7, 10_000: 0.7},
    HOUSE: {1: 1.2, 1000: 1.0, 10_000: 0.8},
    CITY: {1: 1.2, 1000: 1.0, 10_000: 0.8},
}
"""Of each scene, by the number of rays: the largest share of embreex's time"""


def _aim(
    words: str, values: dict[Case, float], most: float, unit: str, about: tuple[object, ...] = ()
) -> Aim | None:
    """Return an aim for the cases that begin with `about`."""
    chosen = [
        (value, f"{case.count:,} rays, {case.rays}")
        for case, value in values.items()
        if case[: len(about)] == about
    ]
    return at_most(words, most, chosen, unit)


def section(results: Results) -> str:
    """Return the table of small batches for the appendix."""
    if "small-batches" not in results:
        return ""
    result = results["small-batches"]
    names = ("raybox", LISTS, "embreex")
    lines = [
        (case.scene, f"{case.count:,}", case.rays, *(report.short(of[n]) if n in of else "-" for n in names))
        for case, of in medians(result).items()
    ]
    size = f"{result['size']:,}"
    words = f"""Microseconds of a call on the triangles of a house and of a city, and on {size} uniform boxes,
one thread: `Rays` of float64 arrays, or of lists, `nearest`, and reading `index` and `t`. Bounces are those
of *Real scenes*. embreex: `run(o.astype(f4), d.astype(f4), output=True)`."""
    head = ("scene", "rays", "kind", "raybox, µs", "from lists, µs", "embreex, µs")
    return "\n\n".join(["## Calls of few and of many rays", words, report.markdown(head, lines)])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--clock", choices=timing.CLOCKS, default="wall", help="wall, or cpu: processor time")
    options = parser.parse_args()
    worker.bind(1)
    results = {"small-batches": measure(options.size, options.rounds, options.clock)}
    print(section(results))
    print(own_aims.text(aims(results)))


if __name__ == "__main__":
    main()
