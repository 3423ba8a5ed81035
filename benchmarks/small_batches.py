"""One to a thousand rays a call, from arrays and lists, beside embreex: microseconds, taken in turns.

    python benchmarks/small_batches.py [--size 100000] [--rounds 15] [--clock cpu]

A call makes `Rays`, casts them, and reads index and t: what a program does that has a few rays at a time.
Rays are float64 arrays, or lists of lists; embreex gets the arrays converted to float32.
"""

import argparse
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from statistics import median
from typing import Any

import numpy as np

import own_aims
import raybox as rb
from own_aims import Aim, at_most
from raybox.bench import data, machine, report, timing, worker
from raybox_peers import common

Results = dict[str, Any]
COUNTS = (1, 10, 100, 1000)
LISTS = "raybox, lists"
_DIFFERENT = 1000  # rays of a sample, at least
_CALLS = 50  # of a sample, at least


def measure(size: int = 100_000, rounds: int = 15, clock: str = "wall") -> dict[str, Any]:
    """Return the seconds of a call: each number of rays, kind of rays, and way to pass them."""
    boxes, times = data.boxes("uniform", size), []
    cast, names = _casts(boxes), {LISTS: "raybox"}
    for kind in data.RAY_KINDS:
        rays = data.rays(kind, 1024, boxes)
        for count in COUNTS:
            batches = _batches(rays, count)
            inputs = dict.fromkeys(cast, batches) | {
                LISTS: [data.RaySet(*(x.tolist() for x in one)) for one in batches]
            }
            calls = {
                name: partial(_all_of, cast[names.get(name, name)], given) for name, given in inputs.items()
            }
            for call in calls.values():
                call()
            for name, seconds in timing.alternate(calls, rounds, timing.CLOCKS[clock]).items():
                each = [second / len(batches) for second in seconds]
                times.append({"count": count, "rays": kind, "name": name, "seconds": each})
    return {"machine": machine.describe(), "size": size, "times": times}


def _batches(rays: data.RaySet, count: int) -> list[data.RaySet]:
    """Return batches of neighbouring rays: all rays once, and again until they are `_CALLS`."""
    ends = range(count, _DIFFERENT + 1, count)
    once = [data.RaySet(*(np.array(x[end - count : end]) for x in rays)) for end in ends]
    return once * -(-_CALLS // len(once))


def _all_of(cast: Callable[..., Any], batches: list[data.RaySet]) -> None:
    for origins, directions in batches:
        cast(origins, directions)


def _casts(boxes: data.BoxSet) -> dict[str, Callable[..., Any]]:
    """Return a function of origins and directions for each library that is installed."""
    scene = rb.Scene(rb.Boxes(boxes.lower, boxes.upper))

    def raybox(origins: Any, directions: Any) -> Any:
        hits = scene.nearest(rb.Rays(origins, directions))
        return hits.index, hits.t

    made = {"raybox": raybox}
    with suppress(ImportError):
        made["embreex"] = _embreex(boxes)
    return made


def _embreex(boxes: data.BoxSet) -> Callable[..., Any]:
    from embreex.mesh_construction import TriangleMesh
    from embreex.rtcore_scene import EmbreeScene

    scene = EmbreeScene()
    mesh_reference = TriangleMesh(scene, common.corners(boxes), common.faces(boxes, np.int32))

    def cast(origins: Any, directions: Any) -> Any:
        assert mesh_reference is not None
        hits = scene.run(origins.astype(np.float32), directions.astype(np.float32), output=True)
        return hits["primID"], hits["tfar"]

    return cast


def medians(result: dict[str, Any]) -> dict[tuple[int, str], dict[str, float]]:
    """Return the microseconds of a call by contestant, for each number and kind of rays."""
    found: dict[tuple[int, str], dict[str, float]] = {}
    for record in result["times"]:
        of = found.setdefault((record["count"], record["rays"]), {})
        of[record["name"]] = 1e6 * median(record["seconds"])
    return found


def aims(results: Results) -> list[Aim]:
    """Return the aims of small batches, each with its worst kind of rays."""
    if "small-batches" not in results:
        return []
    found = medians(results["small-batches"])
    more = {about: (of[LISTS] - of["raybox"]) / about[0] for about, of in found.items()}
    own = {about: of["raybox"] for about, of in found.items()}
    ratios = {about: of["raybox"] / of["embreex"] for about, of in found.items() if "embreex" in of}
    kinds = data.RAY_KINDS
    made = [
        _aim("1 ray from arrays: 5 µs", own, 5.0, ((1,), kinds), "µs"),
        _aim("10 rays from arrays: 8 µs", own, 8.0, ((10,), kinds), "µs"),
        _aim("100 and 1,000 rays from arrays: embreex's time", ratios, 1.0, ((100, 1000), kinds), "times"),
        _aim("1,000 rays of a camera: 0.6 of embreex's time", ratios, 0.6, ((1000,), ("camera",)), "times"),
        _aim("from lists: 3 µs more a ray", more, 3.0, (COUNTS, kinds), "µs"),
    ]
    return [aim for aim in made if aim]


def _aim(
    words: str,
    values: dict[tuple[int, str], float],
    most: float,
    about: tuple[tuple[int, ...], tuple[str, ...]],
    unit: str,
) -> Aim | None:
    counts, kinds = about
    chosen = [
        (value, f"{count:,} rays, {kind}")
        for (count, kind), value in values.items()
        if count in counts and kind in kinds
    ]
    return at_most(words, most, chosen, unit)


def section(results: Results) -> str:
    """Return the table of small batches for the appendix."""
    if "small-batches" not in results:
        return ""
    result = results["small-batches"]
    names = ("raybox", LISTS, "embreex")
    lines = [
        (f"{count:,}", kind, *(report.short(of[name]) if name in of else "-" for name in names))
        for (count, kind), of in medians(result).items()
    ]
    size = f"{result['size']:,}"
    words = f"""Microseconds of a call on {size} uniform boxes, one thread: `Rays` of float64 arrays, or of
lists, `nearest`, and reading `index` and `t`. embreex: `run(o.astype(f4), d.astype(f4), output=True)`."""
    head = ("rays", "kind", "raybox, µs", "from lists, µs", "embreex, µs")
    return "\n\n".join(["## Small batches", words, report.markdown(head, lines)])


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
