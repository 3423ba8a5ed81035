"""The sections of docs/performance_appendix.md about raybox alone."""

from statistics import median
from typing import Any

import own_aims
from raybox.bench import report

Results = dict[str, Any]


def sections(results: Results) -> list[str]:
    """Return all sections whose parts were measured."""
    made = (_exactness, _threads, _sizes, _builds, _memory, _quality, _mixed, _brute, _first_use)
    return [section(results) for section in made]


def _of(results: Results, start: str) -> list[dict[str, Any]]:
    return [result for name, result in results.items() if name.startswith(start)]


def _exactness(results: Results) -> str:
    rows = [row for result in _of(results, "exactness") for row in report.rows(result)]
    lines = [(f"{r.size:,}", r.rays, r.query, f"{r.ratio - 1:+.1%}") for r in rows if r.name == "raybox"]
    if not lines:
        return ""
    words = "Time of exact results over that of the float32 candidates alone:"
    return f"## What exactness costs\n\n{words}\n\n" + report.markdown(
        ("boxes", "rays", "query", "cost"), lines
    )


def _threads(results: Results) -> str:
    rows = [row for result in _of(results, "workers") for row in report.rows(result)]
    lines = [
        (f"{row.size:,}", row.rays, row.query, f"{row.ratio:.2f}", f"{row.low:.2f} to {row.high:.2f}")
        for row in rows
        if row.name == "raybox, 1 worker"
    ]
    if not lines:
        return ""
    table = report.markdown(("boxes", "rays", "query", "times", "of rounds"), lines)
    return "\n\n".join(
        ["## Two threads", *_cores(results), "Times one thread's rate, taken in turns:", table]
    )


def _cores(results: Results) -> list[str]:
    """Return the gain of a second thread on this machine as a sentence."""
    if "cores" not in results:
        return []
    seconds = results["cores"]["seconds"]
    gain = median(2 * one / two for one, two in zip(seconds["one"], seconds["two"], strict=True))
    return [
        f"""Two threads of the loop under *Brute force*, which touches no memory, do {gain:.2f} times the work
of one on this machine: other machines share its cores."""
    ]


def _sizes(results: Results) -> str:
    if "sizes" not in results:
        return ""
    result = results["sizes"]
    paces: dict[int, dict[str, str]] = {}
    for record in result["times"]:
        pace = 1e9 * median(record["seconds"]) / record["ray_count"]
        paces.setdefault(record["size"], {})[record["rays"]] = report.short(pace)
    lines = [
        (f"{size:,}", f"{result['tree_bytes'][str(size)] / 1e6:,.1f}", *of_rays.values())
        for size, of_rays in paces.items()
    ]
    caches = ", ".join(f"{level} {_bytes(size)}" for level, size in result["caches"].items())
    words = f"""Nearest, one thread, nanoseconds for a ray. A core's caches: {caches} (the last one shared).
While the tree fits into L2, a ray costs what it computes; beyond, each node that is not there waits for L3 or
for memory."""
    head = ("boxes", "tree, MB", *(f"{kind}, ns" for kind in next(iter(paces.values()))))
    return "\n\n".join(["## Cost against size", words, report.markdown(head, lines)])


def _builds(results: Results) -> str:
    lines = []
    for result in sorted(_of(results, "builds"), key=lambda r: (r["size"], r["threads"])):
        for record in result["builds"]:
            if record["seconds"]:
                about = (f"{result['size']:,}", str(result["threads"]), record["name"])
                seconds, rate = median(record["seconds"]), own_aims.build_rate(result, record)
                lines.append((*about, f"{seconds:.3f}", report.short(rate)))
    if not lines:
        return ""
    head = ("boxes", "threads", "who", "seconds", "M boxes/s a thread")
    words = "In turns, from arrays prepared to a scene that could answer:"
    return f"## Builds\n\n{words}\n\n" + report.markdown(head, lines)


def _memory(results: Results) -> str:
    found = [
        f"""{result["size"]:,} boxes: {result["stats"]["bytes_per_box"]:.1f} bytes a box for the tree, beside
the 48 of the boxes themselves; built in {result["build_seconds"]:.1f} s, queried with {result["rays"]:,} rays
in {result["seconds"]:.2f} s on two threads; at most {result["peak_gb"]:.2f} GB in use by the process,
boxes, rays, results and Python included."""
        for result in _of(results, "memory")
    ]
    return "\n\n".join(["## Memory", *found]) if found else ""


def _quality(results: Results) -> str:
    rows = [row for result in _of(results, "quality") for row in report.rows(result)]
    lines = [(f"{r.size:,}", r.rays, r.query, f"{r.ratio:.2f}") for r in rows if r.name == "raybox fast"]
    if not lines:
        return ""
    words = "Times the time for a ray that a `balanced` tree takes:"
    return f"## A tree built fast\n\n{words}\n\n" + report.markdown(
        ("boxes", "rays", "query", "`fast` /"), lines
    )


def _mixed(results: Results) -> str:
    lines = [
        (f"{result['size']:,}", words, f"{own_aims.mixed_cost(result, kind):+.1%}")
        for result in _of(results, "mixed-1e")
        for kind, words in own_aims.KINDS.items()
    ]
    if not lines:
        return ""
    words = "Half camera, half inside rays in one batch, over the sum of the halves' times:"
    return f"## Mixed batches\n\n{words}\n\n" + report.markdown(("boxes", "order", "cost"), lines)


def _brute(results: Results) -> str:
    if "brute" not in results:
        return ""
    result = results["brute"]
    tests, fused, bare = own_aims.brute_rates(result)
    return f"""## Brute force

All rays against all boxes, one thread, hits counted, exact: {tests:.3g} G tests a second. In turns with it,
a loop of nothing but fused multiply-adds on {result["lanes"]} float32 did {fused:.3g} G a second, and one of
nothing but slab tests in float32, whose boxes lie in the first cache, {bare:.3g} G tests. raybox, which also
decides exactly and counts, reaches {tests / bare:.1%} of that."""


def _first_use(results: Results) -> str:
    if "first-use" not in results:
        return ""
    result = results["first-use"]
    steps = list(result["compiled"][0])
    table = [
        (step, *(f"{median(lap[step] for lap in result[k]):.2f}" for k in ("compiled", "loaded")))
        for step in steps
    ]
    sums = [f"{median(sum(lap.values()) for lap in result[kind]):.2f}" for kind in ("compiled", "loaded")]
    words = """Seconds of the first calls of a process, on an empty `RAYBOX_CACHE_DIR` and on a filled one
(1000 boxes, 20,000 rays):"""
    head = ("step", "compiled", "loaded")
    return f"## First use\n\n{words}\n\n" + report.markdown(head, [*table, ("all of it", *sums)])


def _bytes(size: int) -> str:
    return f"{size / 2**20:.3g} MiB" if size >= 2**20 else f"{size / 2**10:.3g} KiB"
