"""The page docs/performance.md: what a user may expect, in one plot and one table."""

from collections.abc import Sequence
from statistics import median
from typing import Any

import own_aims
from raybox.bench import report
from raybox.bench.report import Row

Results = dict[str, Any]
KINDS = {"camera": "of a camera", "incoherent": "in any direction", "inside": "from within the boxes"}
PICTURE = "![million rays a second against boxes: raybox and embreex](images/size.svg)"


def section(results: Results, rows: Sequence[Row]) -> str:
    """Return the section, with what was measured."""
    threads = min((row.threads for row in rows), default=1)
    rates = rates_of([row for row in rows if row.threads == threads])
    made = ["## How fast will it be for me?"]
    if rates:
        made.append(WORDS.format(threads="one thread" if threads == 1 else f"{threads} threads"))
        made += [PICTURE] if threads == 1 else []
        lines = [[f"{size:,}", *(report.short(of[kind]) for kind in KINDS)] for size, of in rates.items()]
        made.append(report.markdown(("boxes", *KINDS.values()), lines))
    facts = [*_peers(rows), *_threads(results), *_builds(results), *_memory(results), *_first(results)]
    return "\n\n".join([*made, "\n".join(facts)])


WORDS = """\
Millions of rays a second that `scene.nearest` casts, with {threads}, by the number of boxes. Rays of a
camera are fast, because neighbours take nearly the same way. Rays from within crowded boxes are slow, because
each passes many. `occluded` is faster than `nearest`; `count` and `all` are slower where many boxes are hit.
Each call has an overhead of its own: pass all rays in one call."""


def rates_of(rows: Sequence[Row]) -> dict[int, dict[str, float]]:
    """Return raybox's million rays a second for nearest, by number of boxes and kind of rays."""
    rates: dict[int, dict[str, float]] = {}
    for row in rows:
        if (row.name, row.query) == ("raybox", "nearest"):
            rates.setdefault(row.size, {})[row.rays] = row.mrays
    return {size: of for size, of in sorted(rates.items()) if set(of) >= set(KINDS)}


def _peers(rows: Sequence[Row]) -> list[str]:
    """Return a sentence about the peers that are compared most, at 100,000 boxes and few threads."""
    chosen = [row for row in rows if row.size == 10**5 and row.query == "nearest"]
    threads = min((row.threads for row in chosen), default=1)
    made = []
    for name in ("embreex", "open3d", "warp"):
        ratios = [row.ratio for row in chosen if (row.name, row.threads) == (name, threads)]
        if ratios:
            made.append(f"{report.short(min(ratios))} to {report.short(max(ratios))} times {name}'s")
    return [f"- **Compared with others**: at 100,000 boxes, the rate is {', '.join(made)}."] if made else []


def _threads(results: Results) -> list[str]:
    rows = [r for part, result in results.items() if part.startswith("workers") for r in report.rows(result)]
    ratios = [row.ratio for row in rows if row.name == "raybox, 1 worker"]
    if not ratios:
        return []
    return [f"- **Threads**: two threads are {min(ratios):.2f} to {max(ratios):.2f} times as fast as one."]


def _builds(results: Results) -> list[str]:
    """Return a sentence about a million boxes on one thread."""
    seconds = {
        record["name"]: median(record["seconds"])
        for part, result in results.items()
        if part.startswith("builds") and (result["size"], result["threads"]) == (10**6, 1)
        for record in result["builds"]
        if record["seconds"]
    }
    if not {"raybox balanced", "raybox fast"} <= set(seconds):
        return []
    balanced, fast = seconds["raybox balanced"], seconds["raybox fast"]
    return [
        f"- **Scenes**: a million boxes are arranged in {balanced:.2f} s on one thread, "
        f'or in {fast:.2f} s with `quality="fast"`.'
    ]


def _memory(results: Results) -> list[str]:
    if "memory-1e7" not in results:
        return []
    tree = results["memory-1e7"]["stats"]["bytes_per_box"]
    return [f"- **Memory**: {48 + tree:.0f} bytes a box, 48 of them for the box itself."]


def _first(results: Results) -> list[str]:
    if "first-use" not in results:
        return []
    compiled, loaded = (
        own_aims.first_seconds(results["first-use"][kind], "nearest") for kind in ("compiled", "loaded")
    )
    return [
        f"- **First call**: import, scene and `nearest` take {compiled:.1f} s, most of it compilation, "
        f"the first time on a machine, and {loaded:.2f} s in every later process."
    ]
