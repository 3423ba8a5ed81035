"""Nanoseconds a ray of `Hits.points` and `Hits.normals` beside plain compiled loops, which are not exact.

    python benchmarks/derived_fields.py [--rays 589824] [--rounds 9] [--clock cpu]

Hits are those of rays from within a house and a city, as triangles and as boxes. The loops compute o + t d,
and the normal of a triangle or of the face that a ray enters, in one pass. Contestants alternate
on one thread.
"""

import argparse
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests" / "helpers"))

import numpy as np

import raybox as rb
import real_data
import second_rays
from raybox.bench import data, machine, report, timing, worker

Results = dict[str, Any]
Calls = dict[str, Callable[[], Any]]
SCENES = {
    "house, triangles": (real_data.HOUSE, "triangles"),
    "house, boxes": (real_data.HOUSE_BOXES, "boxes"),
    "city, triangles": (real_data.CITY, "triangles"),
    "city, boxes": (real_data.CITY, "boxes"),
}
FIELDS = "points", "normals"


def measure(ray_count: int = 768**2, rounds: int = 9, clock: str = "wall") -> dict[str, Any]:
    """Return the seconds of raybox and of the loops: each scene and field."""
    times = []
    for name, (path, form) in SCENES.items():
        target = second_rays.load(str(path), form)
        rays = rb.Rays(*data.rays("inside", ray_count, data.BoxSet(*_ends(target.around), target.around)))
        hits = rb.Scene(target.geometry).nearest(rays)
        for field, calls in _calls(target.geometry, rays, hits).items():
            seconds = timing.alternate(calls, rounds, timing.CLOCKS[clock])
            times.append({"scene": name, "field": field, "ray_count": len(rays), "seconds": seconds})
    return {"machine": machine.describe(), "times": times}


def _ends(around: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return around[:1], around[1:]


def _calls(geometry: rb.Mesh | rb.Boxes, rays: rb.Rays, hits: rb.Hits) -> dict[str, Calls]:
    """Return raybox's call and the loop's for each field, whose results are compared first."""
    import plain_loops  # needs Numba

    origins, directions, index, t = (np.array(x) for x in (rays.origins, rays.directions, hits.index, hits.t))
    points, normals = np.empty(origins.shape), np.empty(origins.shape)
    if isinstance(geometry, rb.Mesh):
        arrays = np.array(geometry.vertices), np.array(geometry.faces)
        of_normals = partial(plain_loops.triangle_normals, *arrays, index, normals)
    else:
        boxes = np.array(geometry.lower), np.array(geometry.upper)
        of_normals = partial(plain_loops.box_normals, *boxes, origins, directions, index, normals)
    loops = {"points": partial(plain_loops.points, origins, directions, t, points), "normals": of_normals}
    for loop in loops.values():
        loop()
    for field, found in (("points", points), ("normals", normals)):
        close = np.isclose(_computed(hits, field), found, rtol=1e-6, atol=1e-6).all(axis=-1)
        assert close[hits.hit].mean() > 0.999, field  # edges, of which the loop may take another face
    return {field: {"raybox": partial(_computed, hits, field), "loop": loops[field]} for field in FIELDS}


def _computed(hits: rb.Hits, field: str) -> np.ndarray:
    """Return a field of hits, computed anew."""
    vars(hits).pop(field, None)
    return getattr(hits, field)


def section(results: Results) -> str:
    """Return the table of derived fields for the appendix."""
    if "derived" not in results:
        return ""
    words = """Of `nearest` with rays from within, nanoseconds a ray, misses included: each field once it is
used, and a plain compiled loop in float64, which is not exact. One thread."""
    head = ("scene", "field", "raybox, ns", "plain loop, ns", "plain loop /")
    return "\n\n".join(["## Points and normals", words, report.markdown(head, lines(results["derived"]))])


def lines(result: dict[str, Any]) -> list[tuple[str, ...]]:
    """Return the rows of the table."""
    made = []
    for record in result["times"]:
        own, loop = record["seconds"]["raybox"], record["seconds"]["loop"]
        paces = (report.short(1e9 * median(some) / record["ray_count"]) for some in (own, loop))
        ratio = f"{timing.ratio(own, loop)[0]:.2f}"
        made.append((record["scene"], record["field"], *paces, ratio))
    return made


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rays", type=int, default=768**2)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--clock", choices=timing.CLOCKS, default="wall", help="wall, or cpu: processor time")
    options = parser.parse_args()
    worker.bind(1)
    result = measure(options.rays, options.rounds, options.clock)
    print(machine.in_words(result["machine"]))
    print(section({"derived": result}))


if __name__ == "__main__":
    main()
