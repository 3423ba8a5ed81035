"""What was aimed at, and the worst that was measured of it."""

from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

from raybox.bench import report
from raybox.bench.report import Row

Results = dict[str, Any]
WILD = ("incoherent", "inside")


class Aim(NamedTuple):
    """An aim in words, the worst that was measured, where that was, and whether it is met."""

    words: str
    measured: str
    where: str
    met: bool


def all_rows(results: Results) -> list[Row]:
    """Return the rows of every part that compares peers."""
    found = [
        row for name, result in results.items() if name.startswith("versus") for row in report.rows(result)
    ]
    return sorted(found, key=lambda row: (row.threads, row.size))


# Peer, how many times slower than raybox at least, of how many boxes, which rays and which questions.
LARGE, ANY = (10**5, 10**6), ("incoherent", "inside", "camera")
BOTH = ("nearest", "occluded")
SLOWER = (
    ("embreex", 3.0, LARGE, WILD, BOTH),
    ("embreex", 3.0, LARGE, ("camera",), BOTH),
    ("embreex", 1.5, (10**3,), ANY, BOTH),
    ("open3d", 8.0, LARGE, ANY, ("count",)),
    ("open3d", 5.0, LARGE, ANY, ("all",)),
    ("warp", 10.0, (*LARGE, 10**7), ANY, (*BOTH, "count")),
    ("trimesh rtree", 1e3, (10**5,), ANY, ("nearest",)),
    ("numpy recipe", 1e4, (10**5,), ANY, ("nearest",)),
    ("numpy", 1e4, (10**5,), ANY, ("nearest",)),
)


def aims(results: Results) -> list[Aim]:
    """Hold results against the aims; those without a measurement are left out."""
    rows = all_rows(results)
    made = [_slower(rows, *aim) for aim in SLOWER]
    made += [
        _itself(results, "workers", "raybox, 1 worker", (1.6, "two threads: 1.6 times one (streams)"), WILD),
        _itself(
            results, "workers", "raybox, 1 worker", (1.8, "two threads: 1.8 times one (packets)"), ("camera",)
        ),
        _itself(results, "exactness", "raybox", (-1.15, "exact: proposals alone + 15 %"), ANY),
    ]
    return [aim for aim in (*made, *_own(results)) if aim is not None]


def _slower(
    rows: list[Row], name: str, least: float, sizes: Sequence[int], rays: Sequence[str], asked: Sequence[str]
) -> Aim | None:
    """Find where a peer came closest."""
    found = [r for r in rows if r.name == name and r.size in sizes and r.rays in rays and r.question in asked]
    if not found:
        return None
    worst = min(found, key=lambda row: row.ratio)
    where = f"{worst.size:,} boxes, {worst.rays}, {worst.question}, {worst.threads} thread(s)"
    about = f"{' and '.join(asked)}, {' and '.join(rays) if rays != ANY else 'all'} rays"
    words = f"{name} {report.short(least)} times slower ({about}, {_powers(sizes)} boxes)"
    return Aim(words, f"{report.short(worst.ratio)} times", where, worst.ratio >= least)


def _powers(sizes: Sequence[int]) -> str:
    return ", ".join("10" + "⁰¹²³⁴⁵⁶⁷⁸⁹"[len(str(size)) - 1] for size in sizes)


def _itself(
    results: Results, start: str, name: str, aim: tuple[float, str], rays: Sequence[str]
) -> Aim | None:
    """Hold raybox against itself: a ratio of at least the bound, or, if that is negative, of at most."""
    bound, words = aim
    found = [r for part, result in results.items() if part.startswith(start) for r in report.rows(result)]
    found = [row for row in found if row.name == name and row.rays in rays]
    if not found:
        return None
    worst = min(found, key=lambda row: row.ratio if bound > 0 else -row.ratio)
    where = f"{worst.size:,} boxes, {worst.rays}, {worst.question}"
    met = worst.ratio >= bound if bound > 0 else worst.ratio <= -bound
    return Aim(words, f"{worst.ratio:.2f} times", where, met)


def _own(results: Results) -> list[Aim]:
    """Return the aims that have no peer."""
    made = []
    if memory := results.get("memory-1e7"):
        peak = memory["peak_gb"]
        made.append(Aim("10⁷ boxes built and asked within 3 GB", f"{peak:.2f} GB", "", peak <= 3.0))
    costs = [
        (mixed_cost(result, kind), f"{result['size']:,} boxes, {words}")
        for name, result in results.items()
        if name.startswith("mixed-1e")
        for kind, words in KINDS.items()
    ]
    if costs:
        cost, where = max(costs)
        made.append(Aim("half camera, half random: its halves + 10 %", f"{cost:+.1%}", where, cost <= 0.1))
    return made


KINDS = {"joined": "one half after the other", "lines": "in turns of 1024 rays"}


def mixed_cost(result: dict[str, Any], kind: str) -> float:
    """Return how much longer a mixed batch takes than its halves, as a part of theirs; the median."""
    seconds = result["seconds"]
    halves = zip(seconds["camera"], seconds["inside"], strict=True)
    return median(whole / (a + b) - 1 for whole, (a, b) in zip(seconds[kind], halves, strict=True))
