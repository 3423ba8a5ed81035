"""Aims of performance, each with the worst measurement."""

from collections.abc import Sequence
from typing import Any, NamedTuple

from own_aims import Aim, own_aims
from raybox.bench import report
from raybox.bench.report import Row

Results = dict[str, Any]
WILD = ("incoherent", "inside")


def all_rows(results: Results) -> list[Row]:
    """Return the rows of all parts that compare peers."""
    found = [
        row for name, result in results.items() if name.startswith("versus") for row in report.rows(result)
    ]
    return sorted(found, key=lambda row: (row.threads, row.size))


class PeerAim(NamedTuple):
    """The least ratio of a peer's time to raybox's, for some numbers of boxes, kinds of rays, and queries."""

    name: str
    least: float
    sizes: tuple[int, ...]
    rays: tuple[str, ...]
    queries: tuple[str, ...]


LARGE, ANY = (10**5, 10**6), ("incoherent", "inside", "camera")
BOTH = ("nearest", "occluded")
SLOWER = (
    PeerAim("embreex", 3.0, LARGE, WILD, BOTH),
    PeerAim("embreex", 3.0, LARGE, ("camera",), BOTH),
    PeerAim("embreex", 1.5, (10**3,), ANY, BOTH),
    PeerAim("open3d", 8.0, LARGE, ANY, ("count",)),
    PeerAim("open3d", 5.0, LARGE, ANY, ("all",)),
    PeerAim("warp", 10.0, (*LARGE, 10**7), ANY, (*BOTH, "count")),
    PeerAim("trimesh rtree", 1e3, (10**5,), ANY, ("nearest",)),
    # the usual recipe of brute force, for which the aim is set; the tables show the fastest one too
    PeerAim("numpy recipe", 1e4, (10**5,), ANY, ("nearest",)),
)


def aims(results: Results) -> list[Aim]:
    """Return the aims with their measurements; those without one are left out."""
    rows = all_rows(results)
    made = [_slower(rows, aim) for aim in SLOWER]
    made += [
        _itself(results, "workers", "raybox, 1 worker", (1.6, "two threads: 1.6 times one (streams)"), WILD),
        _itself(
            results, "workers", "raybox, 1 worker", (1.8, "two threads: 1.8 times one (packets)"), ("camera",)
        ),
        _itself(results, "exactness", "raybox", (-1.15, "exact: proposals alone + 15 %"), ANY),
    ]
    return [aim for aim in (*made, *own_aims(results)) if aim is not None]


def table(results: Results) -> str:
    """Return all aims as a table for a terminal."""
    lines = [(aim.words, aim.measured, aim.where, "yes" if aim.reached else "NO") for aim in aims(results)]
    return report.text(("aim", "worst measured", "where", "reached"), lines)


def _slower(rows: list[Row], aim: PeerAim) -> Aim | None:
    """Return the aim for a peer with its closest ratio; None if it was not measured."""
    found = [
        row
        for row in rows
        if row.name == aim.name
        and row.size in aim.sizes
        and row.rays in aim.rays
        and row.query in aim.queries
    ]
    if not found:
        return None
    worst = min(found, key=lambda row: row.ratio)
    where = f"{worst.size:,} boxes, {worst.rays}, {worst.query}, {worst.threads} thread(s)"
    about = f"{' and '.join(aim.queries)}, {' and '.join(aim.rays) if aim.rays != ANY else 'all'} rays"
    words = f"{aim.name} {report.short(aim.least)} times slower ({about}, {_powers(aim.sizes)} boxes)"
    return Aim(words, f"{report.short(worst.ratio)} times", where, worst.ratio >= aim.least)


def _powers(sizes: Sequence[int]) -> str:
    return ", ".join("10" + "⁰¹²³⁴⁵⁶⁷⁸⁹"[len(str(size)) - 1] for size in sizes)


def _itself(
    results: Results, start: str, name: str, aim: tuple[float, str], rays: Sequence[str]
) -> Aim | None:
    """Return the aim for raybox against itself.

    The ratio must be at least the bound; if the bound is negative, at most its absolute value.
    """
    bound, words = aim
    found = [r for part, result in results.items() if part.startswith(start) for r in report.rows(result)]
    found = [row for row in found if row.name == name and row.rays in rays]
    if not found:
        return None
    worst = min(found, key=lambda row: row.ratio if bound > 0 else -row.ratio)
    where = f"{worst.size:,} boxes, {worst.rays}, {worst.query}"
    is_reached = worst.ratio >= bound if bound > 0 else worst.ratio <= -bound
    return Aim(words, f"{worst.ratio:.2f} times", where, is_reached)
