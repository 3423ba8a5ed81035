"""One measurement: all contestants' scenes of the same boxes, the same rays, alternated and compared."""

import sys
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from raybox.bench import checks, data, machine, peers, timing
from raybox.bench.peers import Engine

Log = Callable[[str], None]
_REFERENCE_PATIENCE = 2.0  # times the patience for the reference,
_REFERENCE_RAYS = 2**16  # and its fewest rays


class Spec(NamedTuple):
    """The settings of a measurement; ``names[0]`` is the reference for ratios."""

    boxes: str = "uniform"
    size: int = 100_000
    rays: tuple[str, ...] = data.RAY_KINDS
    ray_count: int = 2**20
    queries: tuple[str, ...] = ("nearest", "occluded")
    names: tuple[str, ...] = ("raybox",)
    threads: int = 1
    rounds: int = 5
    least: float = 0.0  # seconds of all rounds: short ones are repeated, up to five times as many
    patience: float = 4.0  # seconds of a call; a slower contestant gets fewer rays,
    ration: float = 0.4  # as many as take this long, but at least `fewest`
    fewest: int = 64
    check: bool = True
    clock: str = "wall"  # or "cpu", processor time, for a machine that others use too


class Contestant(NamedTuple):
    """A peer with its scene."""

    peer: peers.Peer
    engine: Engine


def versus(**how: Any) -> dict[str, Any]:
    """Return the measurements of a `Spec` of plain values, as the job of a worker process."""
    hashable: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in how.items()}
    return measure(Spec(**hashable), lambda line: print(line, file=sys.stderr, flush=True))


def measure(spec: Spec, log: Log = lambda _line: None) -> dict[str, Any]:
    """Return the measurements as plain values, with all that a report needs."""
    boxes = data.boxes(spec.boxes, spec.size)
    public = spec._replace(boxes=Path(spec.boxes).stem, rays=tuple(Path(kind).stem for kind in spec.rays))
    result: dict[str, Any] = {"spec": public._asdict(), "size": len(boxes.lower)}
    result["machine"] = machine.describe()
    contestants, result["contestants"] = _build(spec, boxes, log)
    checker = _make_checker(spec, boxes)
    result["times"] = []
    for kind in spec.rays:
        rays = data.rays(kind, spec.ray_count, boxes)
        for query in spec.queries:
            able = [c for c in contestants if query in c.engine.run]
            result["times"] += _time(spec, able, rays, (Path(kind).stem, query), checker)
            log(f"{len(boxes.lower):,} {public.boxes} boxes, {query}, {Path(kind).stem} rays: done")
    return result | {"peak_gb": machine.peak_gb()}


def _build(spec: Spec, boxes: data.BoxSet, log: Log) -> tuple[list[Contestant], list[dict[str, Any]]]:
    """Return the contestants with their scenes, and a record of each build."""
    built, records = [], []
    for name in spec.names:
        peer = peers.table()[name]
        facts: dict[str, Any] = {
            "name": name,
            "version": peers.version(peer.distribution),
            "given": peer.given,
        }
        reason = _why_not(peer, spec, len(boxes.lower))
        if not reason:
            try:
                engine, seconds = _build_one(peer, boxes, spec.threads)
                built.append(Contestant(peer, engine))
                facts["build_seconds"] = seconds
            except ImportError as error:
                reason = f"not installed ({error})"
            except Exception as error:  # of any kind: the other peers are still measured
                reason = f"failed to build: {type(error).__name__}: {error}"
        log(f"{name}: {reason}" if reason else f"{name}: built in {facts['build_seconds']:.2f} s")
        records.append(facts | {"why_not": reason})
    return built, records


def _why_not(peer: peers.Peer, spec: Spec, size: int) -> str:
    if peers.version(peer.distribution) is None:
        return "not installed"
    if size > peer.max_boxes:
        return f"not given more than {peer.max_boxes:,} boxes"
    if spec.threads > peer.threads:
        return f"supports {peer.threads} thread"
    return ""


def _build_one(peer: peers.Peer, boxes: data.BoxSet, threads: int) -> tuple[Engine, float]:
    adapter = peers.load(peer)
    build = getattr(adapter, peer.build)
    build(adapter.form(data.boxes("uniform", 64)), threads, **peer.options)  # compiles
    form = adapter.form(boxes)
    return timing.once(lambda: build(form, threads, **peer.options))


def _make_checker(spec: Spec, boxes: data.BoxSet) -> checks.Checker | None:
    if not spec.check:
        return None
    from raybox import Boxes, Scene

    return checks.Checker(boxes, Scene(Boxes(boxes.lower, boxes.upper)))


def _time(
    spec: Spec,
    contestants: list[Contestant],
    rays: data.RaySet,
    about: tuple[str, str],
    checker: checks.Checker | None,
) -> list[dict[str, Any]]:
    """Return a record for each contestant: one query, one kind of rays, alternated."""
    kind, query = about
    calls: dict[str, Callable[[], object]] = {}
    spread = cache(rays.spread)
    records: list[dict[str, Any]] = []
    for peer, engine in contestants:
        run = engine.run[query]
        facts: dict[str, Any] = {"rays": kind, "query": query, "name": peer.name}
        try:
            most = spread(min(peer.max_rays, len(rays.origins)))
            count = ration(engine, run, most, spec, first=peer.name == spec.names[0])
            some = spread(count)
            prepared = engine.prepare(some)
            results = run(prepared)  # the last warm-up; compared below
            if checker is not None:
                ours = peer.distribution == "raybox"
                read = engine.read[query](results)
                facts["agreement"] = checker.compare(query, peer.meaning, some, read, prove=ours)._asdict()
        except Exception as error:
            records.append(facts | {"why_not": f"failed: {type(error).__name__}: {error}"})
            continue
        calls[peer.name] = partial(run, prepared)
        records.append(facts | {"ray_count": len(some.origins)})
    seconds = timing.alternate(calls, spec.rounds, timing.CLOCKS[spec.clock], least=spec.least)
    return [facts | {"seconds": seconds.get(facts["name"], [])} for facts in records]


def ration(
    engine: Engine, run: Callable[[Any], Any], rays: data.RaySet, spec: Spec, *, first: bool = False
) -> int:
    """Return how many rays a contestant gets: all, if a call is fast enough.

    This also warms up. first: the contestant is the reference, which needs a full batch.
    """
    total, count = len(rays.origins), 1
    longest = spec.patience if first else spec.ration  # the time a ray may fall with the number of rays
    run(engine.prepare(rays.spread(1)))  # compiles
    while True:
        some = engine.prepare(rays.spread(count))
        _, seconds = timing.once(partial(run, some))
        if seconds > longest:  # or this number of rays compiled something
            seconds = min(seconds, timing.once(partial(run, some))[1])
        if seconds > longest or count >= total:
            break
        count = min(total, 8 * count)
    if seconds / count * total <= spec.patience * (_REFERENCE_PATIENCE if first else 1.0):
        return total
    fewest = _REFERENCE_RAYS if first else spec.fewest
    return min(total, max(fewest, int(spec.ration * count / seconds)))
