"""Aims of performance without peers: builds, memory, brute force, first use, mixed batches."""

from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

from raybox.bench import report

Results = dict[str, Any]
KINDS = {"joined": "one half after the other", "lines": "in turns of 1024 rays"}
_BUILDS = {"raybox balanced": 1.0, "raybox fast": 8.0}  # million boxes a second a thread
_NODES = 45.0  # bytes a box
_TESTS = 2.5 / 4.8  # of brute force for each fused multiply-add of 16 lanes
_COMPILED, _LOADED = 8.0, 0.7  # seconds


class Aim(NamedTuple):
    """An aim in words, its worst measurement, where that was, and whether it is reached."""

    words: str
    measured: str
    where: str
    reached: bool


def at_least(words: str, least: float, found: list[tuple[float, str]], unit: str = "times") -> Aim | None:
    """Return an aim with its lowest value; None if nothing was measured. found: values, and where."""
    if not found:
        return None
    value, where = min(found)
    return Aim(words, f"{value:.2f} {unit}", where, value >= least)


def at_most(words: str, most: float, found: list[tuple[float, str]], unit: str = "times") -> Aim | None:
    """Return an aim with its highest value; None if nothing was measured. found: values, and where."""
    if not found:
        return None
    value, where = max(found)
    return Aim(words, f"{value:.2f} {unit}", where, value <= most)


def text(aims: Sequence[Aim]) -> str:
    """Return aims as a table for a terminal."""
    lines = [(*aim[:3], "yes" if aim.reached else "NO") for aim in aims]
    return report.text(("aim", "worst measured", "where", "reached"), lines)


def own_aims(results: Results) -> list[Aim]:
    """Return the aims without peers; those without a measurement are left out."""
    made = [_built(results, name, least) for name, least in _BUILDS.items()]
    return [aim for aim in (*made, *_memory(results), *_mixed(results), *_kernels(results)) if aim]


def build_rate(result: dict[str, Any], record: dict[str, Any]) -> float:
    """Return the millions of boxes built a second a thread."""
    return 1e-6 * float(result["size"]) / median(record["seconds"]) / float(result["threads"])


def _built(results: Results, name: str, least: float) -> Aim | None:
    """Return the aim for a quality with its slowest build."""
    rates = [
        (build_rate(result, record), f"{result['size']:,} boxes, {result['threads']} thread(s)")
        for part, result in results.items()
        for record in (result["builds"] if part.startswith("builds") else ())
        if record["name"] == name and record["seconds"]
    ]
    words = f"{name.split()[1]}: {least:g} million boxes built a second a thread"
    return at_least(words, least, rates, "million")


def _memory(results: Results) -> list[Aim]:
    if "memory-1e7" not in results:
        return []
    peak, each = (results["memory-1e7"]["peak_gb"], results["memory-1e7"]["stats"]["bytes_per_box"])
    return [
        Aim("10⁷ boxes built and queried within 3 GB", f"{peak:.2f} GB", "", peak <= 3.0),
        Aim(f"nodes: {_NODES:g} bytes a box", f"{each:.1f}", "10,000,000 boxes", each <= _NODES),
    ]


def _mixed(results: Results) -> list[Aim]:
    costs = [
        (mixed_cost(result, kind), f"{result['size']:,} boxes, {words}")
        for name, result in results.items()
        if name.startswith("mixed-1e")
        for kind, words in KINDS.items()
    ]
    if not costs:
        return []
    cost, where = max(costs)
    return [Aim("half camera, half random: its halves + 10 %", f"{cost:+.1%}", where, cost <= 0.1)]


def mixed_cost(result: dict[str, Any], kind: str) -> float:
    """Return the extra time of a mixed batch relative to its halves, a median."""
    seconds = result["seconds"]
    halves = zip(seconds["camera"], seconds["inside"], strict=True)
    return median(whole / (a + b) - 1 for whole, (a, b) in zip(seconds[kind], halves, strict=True))


def first_seconds(laps: list[dict[str, float]], query: str) -> float:
    """Return the seconds from import to the first result of a query, a median."""
    return median(lap["import"] + lap["Scene"] + lap.get(query, 0.0) for lap in laps)


def brute_rates(result: dict[str, Any]) -> tuple[float, float, float]:
    """Return tests, fused multiply-adds and bare tests a second, medians in 10^9."""
    tests, fused, bare = (
        median(1e-9 * result[number] / second for second in result["seconds"][call])
        for number, call in (("tests", "sweep"), ("fused", "probe"), ("slabs", "slabs"))
    )
    return tests, fused, bare


def _kernels(results: Results) -> list[Aim]:
    made = []
    if "brute" in results:
        tests, fused, _ = brute_rates(results["brute"])
        words = f"brute force: {_TESTS:.2f} tests for each fused multiply-add of 16 lanes"
        made.append(Aim(words, f"{tests / fused:.2f}", "100,000 boxes", tests >= _TESTS * fused))
    if "first-use" in results:
        first = results["first-use"]
        compiled = median(lap["nearest"] for lap in first["compiled"])
        loaded = first_seconds(first["loaded"], "nearest")
        words = f"kernels of `nearest`: compiled within {_COMPILED:g} s"
        made.append(Aim(words, f"{compiled:.1f} s", "the scene's apart", compiled <= _COMPILED))
        words = f"kernels of `nearest`: loaded within {_LOADED:g} s"
        made.append(Aim(words, f"{loaded:.2f} s", "import and scene included", loaded <= _LOADED))
    return made
