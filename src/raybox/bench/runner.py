"""One measurement: build everyone's scene of the same boxes, ask the same rays in turns, compare."""

from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from raybox.bench import checks, data, machine, peers, timing
from raybox.bench.peers.common import Engine

Say = Callable[[str], None]
_LENIENCE = 2.0  # times the patience for who comes first,
_ENOUGH = 2**16  # and the fewest rays


class Spec(NamedTuple):
    """What to measure. ``names[0]`` is what the others are held against."""

    boxes: str = "uniform"
    size: int = 100_000
    rays: tuple[str, ...] = data.RAY_KINDS
    asked: int = 2**20
    questions: tuple[str, ...] = ("nearest", "occluded")
    names: tuple[str, ...] = ("raybox", *peers.OTHERS)
    threads: int = 1
    rounds: int = 5
    least: float = 0.0  # seconds: more rounds, up to five times as many, where all together take less
    patience: float = 4.0  # seconds a call; who takes longer is given fewer rays,
    ration: float = 0.4  # as many as take this long, but not fewer than that:
    fewest: int = 64
    check: bool = True


class Contestant(NamedTuple):
    """A peer with its scene."""

    peer: peers.Peer
    engine: Engine


def measure(spec: Spec, say: Say = lambda _line: None) -> dict[str, Any]:
    """Measure; everything that a report needs, as plain values."""
    boxes = data.boxes(spec.boxes, spec.size)
    told = spec._replace(boxes=Path(spec.boxes).stem, rays=tuple(Path(kind).stem for kind in spec.rays))
    result: dict[str, Any] = {"spec": told._asdict(), "size": len(boxes.lower), "machine": machine.describe()}
    contestants, result["contestants"] = _build(spec, boxes, say)
    judge = _judge(spec, boxes)
    result["times"] = []
    for kind in spec.rays:
        rays = data.rays(kind, spec.asked, boxes)
        for question in spec.questions:
            asked = [c for c in contestants if question in c.engine.ask]
            result["times"] += _ask(spec, asked, rays, (Path(kind).stem, question), judge)
            say(f"{len(boxes.lower):,} {told.boxes} boxes, {question}, {Path(kind).stem} rays: done")
    return result | {"peak_gb": machine.peak_gb()}


def _build(spec: Spec, boxes: data.BoxSet, say: Say) -> tuple[list[Contestant], list[dict[str, Any]]]:
    """Build each contestant's scene, and say of each how that went."""
    built, told = [], []
    for name in spec.names:
        peer = peers.BY_NAME[name]
        facts: dict[str, Any] = {"name": name, "version": peers.version(peer), "given": peer.given}
        why = _why_not(peer, spec, len(boxes.lower))
        if not why:
            try:
                engine, seconds = _build_one(peer, boxes, spec.threads)
                built.append(Contestant(peer, engine))
                facts["build_seconds"] = seconds
            except ImportError as error:
                why = f"not installed ({error})"
            except Exception as error:  # whatever a peer raises is its own; the others go on
                why = f"failed to build: {type(error).__name__}: {error}"
        say(f"{name}: {why}" if why else f"{name}: built in {facts['build_seconds']:.2f} s")
        told.append(facts | {"why_not": why})
    return built, told


def _why_not(peer: peers.Peer, spec: Spec, size: int) -> str:
    if peers.version(peer) is None:
        return "not installed"
    if size > peer.most:
        return f"not given more than {peer.most:,} boxes"
    if spec.threads > peer.threads:
        return f"knows {peer.threads} thread"
    return ""


def _build_one(peer: peers.Peer, boxes: data.BoxSet, threads: int) -> tuple[Engine, float]:
    adapter = peers.load(peer)
    build = getattr(adapter, peer.build)
    few = data.boxes("uniform", 64)
    build(
        adapter.form(few), threads, **peer.options
    )  # what has to be compiled is compiled before the clock runs
    form = adapter.form(boxes)
    return timing.once(lambda: build(form, threads, **peer.options))


def _judge(spec: Spec, boxes: data.BoxSet) -> checks.Judge | None:
    if not spec.check:
        return None
    from raybox import Boxes, Scene

    return checks.Judge(boxes, Scene(Boxes(boxes.lower, boxes.upper)))


def _ask(
    spec: Spec,
    contestants: list[Contestant],
    rays: data.RaySet,
    about: tuple[str, str],
    judge: checks.Judge | None,
) -> list[dict[str, Any]]:
    """Ask everyone one question about one kind of rays, in turns."""
    kind, question = about
    calls: dict[str, Callable[[], Any]] = {}
    spread = cache(rays.spread)
    told: list[dict[str, Any]] = []
    for peer, engine in contestants:
        ask = engine.ask[question]
        facts: dict[str, Any] = {"rays": kind, "question": question, "name": peer.name}
        try:
            most = spread(min(peer.rays, len(rays.origins)))
            count = ration(engine, ask, most, spec, first=peer.name == spec.names[0])
            some = spread(count)
            given = engine.prepare(some)
            answer = ask(given)  # the last of the warming up; kept to be compared
            if judge is not None:
                ours = peer.adapter == "raybox_scene"
                read = engine.read[question](answer)
                facts["agreement"] = judge.compare(question, peer.meaning, some, read, prove=ours)._asdict()
        except Exception as error:
            told.append(facts | {"why_not": f"failed: {type(error).__name__}: {error}"})
            continue
        calls[peer.name] = partial(ask, given)
        told.append(facts | {"asked": len(some.origins)})
    seconds = timing.alternate(calls, spec.rounds, least=spec.least)
    return [facts | {"seconds": seconds.get(facts["name"], [])} for facts in told]


def ration(
    engine: Engine, ask: Callable[[Any], Any], rays: data.RaySet, spec: Spec, *, first: bool = False
) -> int:
    """Return how many rays someone is given: all, if a call answers them in time. Warms up on the way.

    Who comes first, and is held against all others, has to be measured well, and on a full batch.
    """
    total, count = len(rays.origins), 1
    longest = spec.patience if first else spec.ration  # of many rays one may take less than of few
    ask(engine.prepare(rays.spread(1)))  # compiling is not part of anyone's pace
    while True:
        some = engine.prepare(rays.spread(count))
        _, seconds = timing.once(partial(ask, some))
        if seconds > longest:  # or something was compiled, which this many rays were the first to need
            seconds = min(seconds, timing.once(partial(ask, some))[1])
        if seconds > longest or count >= total:
            break
        count = min(total, 8 * count)
    if seconds / count * total <= spec.patience * (_LENIENCE if first else 1.0):
        return total
    fewest = _ENOUGH if first else spec.fewest
    return min(total, max(fewest, int(spec.ration * count / seconds)))
