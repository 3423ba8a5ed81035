"""Aims of performance, each with the worst measurement."""

from collections.abc import Sequence
from fnmatch import fnmatch
from typing import Any, NamedTuple

import array_input
import batch_sizes
import grid_sums
import own_aims
import small_batches
from own_aims import Aim, at_least, at_most
from raybox.bench import data, report
from raybox.bench.report import Row

Results = dict[str, Any]


class Measured(NamedTuple):
    """A row, and the part that it is from."""

    part: str
    row: Row


def all_rows(results: Results, *patterns: str) -> list[Measured]:
    """Return the rows of the parts whose names match."""
    return [
        Measured(name, row)
        for pattern in patterns
        for name, result in results.items()
        if fnmatch(name, pattern)
        for row in report.rows(result)
    ]


class PeerAim(NamedTuple):
    """The least ratio of a peer's time to raybox's, for some parts, kinds of rays, and queries."""

    name: str
    least: float
    parts: tuple[str, ...]
    rays: tuple[str, ...]
    queries: tuple[str, ...] = ("nearest",)


LARGE, ANY, CAMERA, OBLIQUE = ("versus-1e5-*", "versus-1e6-*"), data.RAY_KINDS, ("camera",), ("oblique",)
BOTH = ("nearest", "occluded")
SLOWER = (
    PeerAim("embreex", 5.0, ("real-skull", "real-city", "real-house"), CAMERA),
    PeerAim("embreex", 4.5, ("real-voxels",), CAMERA),
    PeerAim("embreex", 4.5, ("real-skull",), OBLIQUE),
    PeerAim("embreex", 5.0, ("real-city",), OBLIQUE),
    PeerAim("embreex", 4.0, ("real-house",), OBLIQUE),
    PeerAim("embreex", 3.5, ("real-voxels",), OBLIQUE),
    PeerAim("embreex", 3.0, ("mesh-*",), CAMERA, BOTH),
    PeerAim("embreex", 3.0, LARGE, ANY, BOTH),
    PeerAim("embreex", 1.5, ("versus-1e3-*",), ANY, BOTH),
    PeerAim("open3d", 8.0, LARGE, ANY, ("count",)),
    PeerAim("open3d", 5.0, LARGE, ANY, ("all",)),
    PeerAim("warp", 10.0, LARGE, ANY, (*BOTH, "count")),
    PeerAim("trimesh rtree", 1e3, ("slow-peers",), ANY),
    # the usual recipe of brute force, for which the aim is set; the tables show the fastest one too
    PeerAim("numpy recipe", 1e3, ("slow-peers",), ANY),
)


def aims(results: Results) -> list[Aim]:
    """Return the aims with their measurements; those without one are left out."""
    made = [_slower(results, aim) for aim in SLOWER]
    one = "raybox, 1 worker"
    made += [
        at_least(
            "skull, two threads: 1.8 times one", 1.8, _own(results, "workers-skull", one, data.SCENE_KINDS)
        ),
        at_least("two threads: 1.6 times one", 1.6, _own(results, "workers-1e*", one, ANY)),
        at_most("exact: proposals alone + 15 %", 1.15, _own(results, "exactness-*", "raybox", ANY)),
    ]
    others = (small_batches.aims, batch_sizes.aims, array_input.aims, grid_sums.aims, own_aims.own_aims)
    return [*(aim for aim in made if aim is not None), *(aim for of in others for aim in of(results))]


def table(results: Results) -> str:
    """Return all aims as a table for a terminal."""
    return own_aims.text(aims(results))


def _slower(results: Results, aim: PeerAim) -> Aim | None:
    """Return the aim for a peer with its closest ratio; None if it was not measured."""
    found = [
        (row.ratio, f"{part}, {row.rays}, {row.query}")
        for part, row in all_rows(results, *aim.parts)
        if row.name == aim.name and row.rays in aim.rays and row.query in aim.queries
    ]
    if not found:
        return None
    worst, where = min(found)
    about = f"{' and '.join(aim.queries)}, {' and '.join(aim.rays) if aim.rays != ANY else 'all'} rays"
    words = f"{aim.name} {report.short(aim.least)} times slower ({about}; {', '.join(aim.parts)})"
    return Aim(words, f"{report.short(worst)} times", where, worst >= aim.least)


def _own(results: Results, parts: str, name: str, rays: Sequence[str]) -> list[tuple[float, str]]:
    """Return the ratios of raybox to itself, and where each was measured."""
    return [
        (row.ratio, f"{part}, {row.rays}, {row.query}")
        for part, row in all_rows(results, parts)
        if row.name == name and row.rays in rays
    ]
