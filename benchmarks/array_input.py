"""The cost of making rays: `Rays` of arrays and `nearest` over `nearest` alone, taken in turns.

    python benchmarks/array_input.py [--size 100000] [--rays 1048576] [--rounds 9] [--clock cpu]

Arrays are float64 or float32, contiguous or halves of rows of six numbers. `Rays.pinhole` is compared with a
query of its rays.
"""

import argparse
from collections.abc import Callable
from functools import partial
from statistics import median
from typing import Any

import numpy as np

import own_aims
import raybox as rb
from raybox.bench import data, machine, report, timing, worker

Results = dict[str, Any]
KINDS = ("camera", "incoherent")
ALONE, PINHOLE = "nearest alone", "Rays.pinhole"
ARRAYS = " arrays"


def measure(
    size: int = 100_000, ray_count: int = 2**20, rounds: int = 9, clock: str = "wall"
) -> dict[str, Any]:
    """Return the seconds of each way to make rays and query them, on one thread."""
    boxes = data.boxes("uniform", size)
    scene = rb.Scene(rb.Boxes(boxes.lower, boxes.upper))
    times = []
    for kind, calls in _cases(scene, boxes, ray_count):
        for call in calls.values():
            call()
        seconds = timing.alternate(calls, rounds, timing.CLOCKS[clock])
        times.append({"rays": kind, "ray_count": ray_count, "seconds": seconds})
    return {"machine": machine.describe(), "size": size, "times": times}


def _cases(
    scene: rb.Scene, boxes: data.BoxSet, ray_count: int
) -> list[tuple[str, dict[str, Callable[[], object]]]]:
    cast = partial(scene.nearest, workers=1)
    made: list[tuple[str, dict[str, Callable[[], object]]]] = []
    for kind in KINDS:
        rays = data.rays(kind, ray_count, boxes)
        calls: dict[str, Callable[[], object]] = {ALONE: partial(cast, rb.Rays(*rays))}
        for name, arrays in _forms(rays).items():
            calls[name + ARRAYS] = partial(_make_and_cast, cast, arrays)
        made.append((kind, calls))
    width = int(ray_count**0.5)
    pinhole = partial(
        rb.Rays.pinhole, [0.8, -1.1, 1.4], [0.5] * 3, up=[0, 0, 1], fov=40.0, width=width, height=width
    )
    alone = partial(cast, pinhole())
    return [*made, ("pinhole", {ALONE: alone, PINHOLE: lambda: cast(pinhole())})]


def _forms(rays: data.RaySet) -> dict[str, tuple[Any, Any]]:
    """Return the same rays as float64 and float32 arrays, and as halves of rows."""
    single = tuple(x.astype(np.float32) for x in rays)
    rows = np.concatenate(rays, axis=1)
    return {"float64": rays, "float32": single, "strided float64": (rows[:, :3], rows[:, 3:])}


def _make_and_cast(cast: Callable[[rb.Rays], Any], arrays: Any) -> Any:
    return cast(rb.Rays(*arrays))


def ratios(result: dict[str, Any]) -> dict[tuple[str, str], float]:
    """Return the time with making the rays over that of `nearest` alone, by kind and form of rays."""
    return {
        (record["rays"], name): median(b / a for a, b in zip(record["seconds"][ALONE], seconds, strict=True))
        for record in result["times"]
        for name, seconds in record["seconds"].items()
        if name != ALONE
    }


def aims(results: Results) -> list[own_aims.Aim]:
    """Return the aims of making rays, each with its worst case."""
    found = ratios(results["array-input"]) if "array-input" in results else {}
    about = (
        ("Rays of arrays and nearest: 1.20 of nearest alone", 1.20, ARRAYS),
        ("Rays.pinhole and nearest: 1.15 of nearest alone", 1.15, PINHOLE),
    )
    made = []
    for words, most, form in about:
        chosen = [
            (ratio, f"{name.removesuffix(form)}, {kind}".lstrip(", "))
            for (kind, name), ratio in found.items()
            if name.endswith(form) and name.startswith(("float", PINHOLE))
        ]
        made.append(own_aims.at_most(words, most, chosen))
    return [aim for aim in made if aim]


def section(results: Results) -> str:
    """Return the table of ways to make rays for the appendix."""
    if "array-input" not in results:
        return ""
    result = results["array-input"]
    lines = [(kind, name, f"{ratio:.2f}") for (kind, name), ratio in ratios(result).items()]
    count = result["times"][0]["ray_count"]
    words = f"""Making rays and `nearest`, over `nearest` of rays that were made before: {count:,} rays,
{result["size"]:,} uniform boxes, one thread."""
    table = report.markdown(("rays", "made of", "times"), lines)
    return "\n\n".join(["## Making rays", words, table])


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--size", type=int, default=100_000)
    parser.add_argument("--rays", type=int, default=2**20)
    parser.add_argument("--rounds", type=int, default=9)
    parser.add_argument("--clock", choices=timing.CLOCKS, default="wall", help="wall, or cpu: processor time")
    options = parser.parse_args()
    worker.bind(1)
    results = {"array-input": measure(options.size, options.rays, options.rounds, options.clock)}
    print(section(results))
    print(own_aims.text(aims(results)))


if __name__ == "__main__":
    main()
