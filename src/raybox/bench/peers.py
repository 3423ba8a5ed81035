"""What is measured: raybox and its variants, and libraries with an adapter in the package `raybox_peers`.

That package is the folder `benchmarks/raybox_peers` of raybox's sources. It is no part of the wheel.
"""

import importlib
from collections.abc import Callable, Mapping
from functools import cache
from importlib import metadata, util
from typing import Any, NamedTuple

from raybox._version import __version__
from raybox.bench.data import RaySet

OTHERS = "raybox_peers"


class Engine(NamedTuple):
    """A scene built by a peer, and its queries.

    ``prepare`` converts rays to the peer's own form and is not timed. ``run[query]`` is timed: it returns the
    peer's result arrays. ``read[query]`` converts them and is not timed: nearest (index, t or None); occluded
    bools; count ints; all (ray, index) of every hit, in any order.
    """

    prepare: Callable[[RaySet], Any]
    run: Mapping[str, Callable[[Any], Any]]
    read: Mapping[str, Callable[[Any], Any]]


class Peer(NamedTuple):
    """A library that is measured, with its limits.

    ``meaning``: where a ray that starts inside a box hits it; a ``solid`` at t = 0, a ``surface`` where the
    ray leaves it. The peer gets up to ``max_boxes`` boxes and ``max_rays`` rays on up to ``threads`` threads.
    """

    name: str
    distribution: str
    adapter: str
    given: str
    meaning: str = "solid"
    max_boxes: int = 10**9
    threads: int = 10**9
    build: str = "build"
    options: dict[str, Any] = {}  # noqa: RUF012 - never written to
    max_rays: int = 10**9


_OWN = (
    Peer("raybox", "raybox", "raybox.bench.raybox_scene", "boxes, float64, exact answers"),
    Peer("raybox fast", "raybox", "raybox.bench.raybox_scene", "quality='fast'", options={"quality": "fast"}),
    Peer(
        "raybox balanced",
        "raybox",
        "raybox.bench.raybox_scene",
        "quality='balanced'",
        options={"quality": "balanced"},
    ),
    Peer("raybox, 1 worker", "raybox", "raybox.bench.raybox_scene", "workers=1", options={"workers": 1}),
    Peer("raybox, 2 workers", "raybox", "raybox.bench.raybox_scene", "workers=2", options={"workers": 2}),
)


@cache
def table() -> dict[str, Peer]:
    """Return all that can be measured, by name; other libraries if `raybox_peers` is on the path."""
    others = importlib.import_module(OTHERS).PEERS if util.find_spec(OTHERS) else ()
    return {peer.name: peer for peer in (*_OWN, *others)}


def others() -> tuple[str, ...]:
    """Return the names of the other libraries."""
    return tuple(name for name in table() if not name.startswith("raybox"))


def load(peer: Peer) -> Any:
    """Return a peer's adapter; raise `ImportError` if the peer cannot be imported."""
    try:
        return importlib.import_module(peer.adapter)
    except OSError as error:  # one of its shared libraries is missing
        raise ImportError(str(error)) from error


def version(distribution: str) -> str | None:
    """Return the version of a package, None if it is not installed; raybox may be a folder of sources."""
    if distribution == "raybox":
        return __version__
    try:
        return metadata.version(distribution)
    except metadata.PackageNotFoundError:
        return None
