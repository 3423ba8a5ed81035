"""Flags that flush denormal numbers, and rounding modes: no result depends on the caller's."""

import inspect
import os
import threading
import time
from functools import cached_property
from pathlib import Path

import numpy as np
import pytest

import raybox as rb
from float_modes import MODES, control_word, modes, set_control_word
from processes import output_of
from raybox import files, hits, plotting, textbook, viewer
from raybox.adapters import open3d, trimesh
from raybox.adapters.trimesh import RayMeshIntersector
from raybox.compiler import float_environment
from raybox.compiler.float_environment import default_environment, in_default_environment, is_default
from raybox.queries.table import QueryMethods
from raybox.threads import pool
from raybox.threads.chunks import run_chunks

TINY = 1e-308
MARGIN, THIRD = TINY / 3, 1 / 3
HELPERS = Path(__file__).parents[1] / "helpers"
every_mode = pytest.mark.parametrize("name", MODES)


@pytest.mark.core
@every_mode
def test_the_modes_are_set_and_restored(name):
    before = control_word()
    assert is_default()
    with modes(name) as word:
        assert not is_default()
        with default_environment():
            assert is_default()
            assert control_word() == before
            with default_environment():
                assert is_default()
        assert control_word() == word
        with pytest.raises(ZeroDivisionError), default_environment():
            raise ZeroDivisionError
        assert control_word() == word
    assert control_word() == before


@every_mode
def test_a_call_that_raises_restores_the_modes(name):
    boxes = rb.Boxes([0, 0], [1, 1])
    with modes(name) as word:
        for call in (lambda: rb.Rays([np.nan, 0], [1, 0]), lambda: rb.Scene(boxes).nearest(3)):
            with pytest.raises(rb.InvalidInput):
                call()
            assert control_word() == word


def test_modes_that_cannot_be_set_are_an_error(monkeypatch):
    control = float_environment._control()
    monkeypatch.setattr(float_environment, "_control", lambda: control._replace(set_default=lambda _: None))
    with modes("up") as word:
        with pytest.raises(rb.RayboxError, match="cannot set these modes"):
            rb.Boxes([0, 0], [1, 1])
        assert control_word() == word


# Whatever is not listed must be guarded: these return or rearrange what is stored.
STORED = {
    rb.Rays: "__init__ t_min t_max skipped units up shape ndim_space reshape",
    rb.Boxes: "lower upper ids labels colors properties skipped units up ndim_space",
    rb.Mesh: "vertices faces objects ids labels colors properties skipped units up ndim_space triangles"
    " corners",
    rb.Planes: "normals offsets ids labels colors properties skipped units up ndim_space",
    rb.Region: "normals offsets planes ndim_space",
    rb.Frustum: "normals offsets planes ndim_space",
    rb.Grid: "shape edges occupied ids labels colors properties skipped units up ndim_space bounds",
    rb.Instances: "geometry transforms ids labels colors properties skipped units up ndim_space",
    rb.Hits: "__init__ index primitive t shape t_enter t_exit",
    rb.AllHits: "__init__ offsets index primitive t shape t_enter t_exit",
    rb.Scene: "geometry",
    hits.RayHits: "__init__ index primitive geometry object ids labels t t_enter t_exit lengths points"
    " distances uv normals",
    hits.Rows: "__init__ offsets index shape",
    hits.Neighbors: "__init__ index distance shape",
    hits.ObjectHits: "__init__ ray geometry object t_first t_last contacts",
    RayMeshIntersector: "",
    trimesh.RayTriangleIntersector: "",
    open3d.RaycastingScene: "",
    viewer.Viewer: "url selection answer save_png on_pick wait stop",
}
DATA_ONLY = {"check_target", "install", "uninstall"}  # functions that test a path, or replace classes
MODULES = (rb, rb.stream, rb.cluster, plotting, textbook, files, hits, viewer, trimesh, open3d)


def is_guarded(member) -> bool:
    function = getattr(member, "func", None) or getattr(member, "fget", None) or member
    code = getattr(getattr(function, "__func__", function), "__code__", None)
    return code is not None and code.co_filename == float_environment.__file__


def is_query(cls, name) -> bool:
    """Return whether a method does nothing but run a query, for which its scene is guarded."""
    code = getattr(getattr(cls, name), "__code__", None)
    return code is not None and "_run" in code.co_names and cls in QueryMethods.__bases__


def public_members(cls):
    for base in cls.__mro__[:-1]:
        for name, member in vars(base).items():
            kinds = (property, classmethod, staticmethod, cached_property)
            if inspect.isfunction(member) or isinstance(member, kinds):
                public = name == "__init__" or not name.startswith("_")
                if public or isinstance(member, cached_property):
                    yield base, name, member


def test_every_public_member_is_guarded():
    count = 0
    for cls, stored in STORED.items():
        for base, name, member in public_members(cls):
            assert is_guarded(member) or name in stored.split() or is_query(base, name), (cls, name)
            count += is_guarded(member)
    assert count > 50
    assert is_guarded(rb.Rays._convert)  # `__init__` itself copies and tests arrays


def public_names(module):
    """Return `__all__`, or without it the public names that a module defines."""
    own = [name for name, value in vars(module).items() if getattr(value, "__module__", 0) == module.__name__]
    return getattr(module, "__all__", [name for name in own if not name.startswith("_")])


def test_every_public_function_and_class_is_guarded():
    count = 0
    for module in MODULES:
        for name in public_names(module):
            value = getattr(module, name)
            if inspect.isfunction(value) and name not in DATA_ONLY:
                assert is_guarded(value), name
                count += 1
            elif inspect.isclass(value) and not issubclass(value, tuple | Exception):
                assert value in STORED, name
    assert count > 24


@pytest.mark.parametrize("name", ["DAZ", "FTZ and DAZ"])
def test_what_textbook_results_compute(name):
    """A point nearer to a face than the smallest normal number is inside of the box."""
    found = textbook.near_far((0, 0, 0), (1, 1, 1), (-5e-324, -1, -1), (1, 1, 1))
    assert (found.hit, found.inside) == (True, True)
    with modes(name):
        assert (found.hit, found.inside) == (True, True)


class Case:
    """Geometry and rays of a scale, made anew at each call; results as bytes."""

    def __init__(self, scale: float, count: int) -> None:
        rng = np.random.default_rng(7)
        corner = rng.integers(-40, 40, (300, 3))
        self.lower, self.upper = corner * scale, (corner + rng.integers(0, 9, (300, 3))) * scale
        self.origins = rng.integers(-60, 60, (count, 3)) * scale
        self.directions = rng.integers(-9, 10, (count, 3)) * scale
        self.directions[::3] = rng.normal(size=self.directions[::3].shape)
        self.directions[::5, 0] = 5e-324
        self.directions[::7] *= 1 / scale if scale > 1e-300 else 1.0

    def results(self):
        """Yield names and arrays of public results."""
        boxes = rb.Boxes(self.lower, self.upper)
        yield from (("centers", boxes.centers), ("sizes", boxes.sizes), ("volumes", boxes.volumes))
        yield "expanded", boxes.expanded(MARGIN).lower
        yield "contains", boxes.contains(self.origins[:10])
        rays = rb.Rays(self.origins, self.directions)
        yield "at", rays.at(THIRD)
        yield "segments", rb.Rays.segments(self.origins, self.lower[0]).directions
        scene = rb.Scene(boxes)
        yield "bounds", scene.bounds
        hits = scene.nearest(rays)
        yield from (("nearest", hits.index), ("t", hits.t), ("enter", hits.t_enter), ("exit", hits.t_exit))
        yield from (("points", hits.points), ("normals", hits.normals))
        yield from (("occluded", scene.occluded(rays)), ("count", scene.count(rays)))
        first = scene.first(rays, 3)
        yield from (("first", first.index), ("first t", first.t))
        found = scene.all(rays)
        yield from (("all", found.index), ("all t", found.t), ("lengths", found.lengths))
        near = scene.closest(self.origins, 3)
        yield from (("closest", near.index), ("distances", near.distance))
        yield "within", scene.within_distance(self.origins, near.distance[:, 1]).index
        yield from (
            ("containing", scene.containing(self.origins).index),
            ("overlapping", scene.overlapping(boxes).index),
            ("join", scene.join(distance=THIRD)),
        )
        view = rb.Region(self.directions[:3], np.abs(self.origins[:3]).sum(axis=1))
        yield "intersecting", scene.intersecting(view)
        pairs = rb.intersect(rays, rb.Boxes(self.lower[0], self.upper[0]))
        yield from (("pairs", pairs.index), ("pairs t", pairs.t))
        moved = rb.sweep(rb.Boxes(self.lower[:9], self.upper[:9]), self.directions[-1], scene)
        yield from (("sweep", moved.index), ("sweep t", moved.t))


def bits(results) -> dict[str, bytes]:
    return {name: np.ascontiguousarray(array).tobytes() for name, array in results}


CASES = {(scale, count): Case(scale, count) for scale in (TINY, 1.0) for count in (1, 9, 4000)}


def assert_same(expected, results, name):
    """Assert that results in these modes have the same bits, and that the modes stay."""
    with modes(name) as word:
        found = bits(results())
        assert control_word() == word
    assert {what: found[what] == expected[what] for what in expected} == dict.fromkeys(found, True)


@pytest.fixture(scope="module")
def expected():
    return {key: bits(case.results()) for key, case in CASES.items()}


def test_the_cases_have_hits_and_misses(expected):
    for (_, count), found in expected.items():
        if count == 4000:
            index = np.frombuffer(found["nearest"], np.int64)
            assert (index >= 0).sum() > 300
            assert (index < 0).sum() > 300


@every_mode
def test_no_result_depends_on_the_modes(name, expected):
    for key, case in CASES.items():
        assert_same(expected[key], case.results, name)


CORNERS = np.array([[0, 0, 0], [3, 0, 0], [0, 3, 0], [0, 0, 3]]) * TINY
UPPER = CORNERS[1] + TINY
STARTS, AHEAD = np.array([[1, 1, 9], [1, 1, -9]]) * TINY, np.array([[0, 0, -1], [0, 0, 1]]) / 3


def other_results():
    mesh = rb.Mesh(CORNERS, [[0, 1, 2], [0, 1, 3], [1, 2, 3]])
    rays = rb.Rays(STARTS, AHEAD)
    hits = rb.Scene(mesh).nearest(rays)
    yield from (("mesh", hits.t), ("uv", hits.uv), ("normals", hits.normals))
    planes = rb.Planes.through(CORNERS[1:], [[1, 1, 1]])
    yield from (("offsets", planes.offsets), ("planes", rb.Scene(planes).nearest(rays).t))
    copies = rb.Instances.from_poses(mesh, [[0, 0, 0], [THIRD, 0, 0]], yaw=0.3)
    yield from (("transforms", copies.transforms), ("copies", rb.Scene([copies, planes]).nearest(rays).t))
    yield "bounds of copies", copies.bounds
    yield "inside", RayMeshIntersector(mesh).contains_points(CORNERS)
    camera = rb.Rays.pinhole([0, 0, 9], [0, 0, 0], up=[0, 1, 0], fov=41, width=3, height=3)
    yield "camera", camera.directions
    yield "explain", np.array(str(rb.explain(rays[0], rb.Boxes(CORNERS[0], UPPER))))
    yield "slab", np.array(str(textbook.slab(CORNERS[0], (1, 0, 0), CORNERS[0], UPPER).steps))


@every_mode
def test_other_geometries_and_texts(name):
    assert_same(bits(other_results()), other_results, name)


@every_mode
def test_files(name, tmp_path):
    boxes = rb.Boxes(np.array([[0, 0, 0], [1, 2, 3]]) * TINY, np.array([[1, 1, 1], [2, 3, 4]]) / 3)
    rays = rb.Rays(np.full((5, 3), -TINY), np.array([[1, 1, k] for k in range(5)]) / 7)

    def results():
        rb.save(tmp_path / "boxes.csv", boxes)
        rb.save(tmp_path / "rays.csv", rays)
        scene = rb.Scene(rb.load(tmp_path / "boxes.csv"))
        rb.stream.cast(scene, tmp_path / "rays.csv", tmp_path / "hits.csv")
        for path in tmp_path.glob("*.csv"):
            yield path.name, np.frombuffer(path.read_bytes(), np.uint8)
            path.unlink()

    plain = bits(results())
    assert len(plain) == 3
    assert_same(plain, results, name)


def on_two_threads(work) -> None:
    """Call a function on this thread and on one of the pool."""
    threads = set()

    def chunk(begin, end):
        threads.add(threading.current_thread().name)
        for _ in range(10_000):
            if len(threads) > 1:
                break
            time.sleep(0.001)  # so that the other thread gets a chunk as well
        work()

    run_chunks(chunk, 200_000, workers=2)
    assert len(threads) == 2


def states_of_workers() -> list[bool]:
    states = []
    on_two_threads(lambda: states.append((threading.current_thread().name, is_default())))
    return [state for thread, state in states if thread.startswith("raybox")]


@every_mode
def test_threads_started_in_other_modes_work_in_the_default_ones(name, monkeypatch):
    monkeypatch.setattr(pool, "_POOLS", {})
    with modes(name):
        states = states_of_workers()
        states += states_of_workers()
    assert states
    assert all(states)


@every_mode
def test_a_loop_that_changes_the_modes_of_a_worker_does_not_change_the_next(name):
    word = control_word()
    on_two_threads(lambda: set_control_word(word | MODES[name]))
    set_control_word(word)
    states = states_of_workers()
    assert states
    assert all(states)


def run(code: str, **environ: str) -> str:
    path = os.pathsep.join([str(Path(rb.__file__).parents[1]), str(HELPERS)])
    return output_of("-W", "ignore", "-c", code, PYTHONPATH=path, **environ)


CONSTANTS = """
import sys, float_modes
import numpy as np
name = NAME
def load():
    import raybox.scene.scene, raybox.scene.sweep, raybox.stream, raybox.adapters.trimesh
if name:
    with float_modes.modes(name) as word:
        load()
        assert float_modes.control_word() == word
else:
    load()
for module in sorted(key for key in sys.modules if key.startswith('raybox')):
    for key, value in sorted(vars(sys.modules[module]).items()):
        if isinstance(value, float | np.floating | np.ndarray) and key != '_START':
            print(module, key, np.asarray(value).tobytes().hex())
"""


@pytest.mark.parametrize("name", ["FTZ, DAZ, up", "down"])
def test_constants_do_not_depend_on_the_modes_of_the_import(name, tmp_path):
    plain = run(CONSTANTS.replace("NAME", "''"))
    found = run(CONSTANTS.replace("NAME", repr(name)), PYTHONPYCACHEPREFIX=str(tmp_path))
    assert found == plain
    assert plain.count("\n") > 100


def test_decorated_functions_keep_names_and_signatures():
    def half(x, *, times=1):
        """Return the half."""
        return x / 2 * times

    guarded = in_default_environment(half)
    assert (guarded.__name__, guarded.__doc__) == ("half", "Return the half.")
    assert inspect.signature(guarded) == inspect.signature(half)
    assert guarded(3, times=2) == 3.0
