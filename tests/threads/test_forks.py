"""Forks while another thread is at work: the child has that thread's locks anew, and gives right results."""

import os
import textwrap

import pytest

from streaming import run

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="no forks here")

# `paused(owner, name, work)` runs work in a thread that stops in a function; `in_child` forks meanwhile.
START = """
    import os, signal, sys, threading
    import numpy as np
    import raybox as rb

    LIMIT = 300  # seconds, after which a child that waits for good is ended
    LOW = np.array([[2.0 * k, -1.0, -1.0] for k in range(1, 60)])
    RAYS = rb.Rays(np.zeros((5000, 3)), np.tile([1.0, 0.0, 0.0], (5000, 1)))

    def boxes(shift=0.0):
        return rb.Boxes(LOW + [shift, 0, 0], LOW + [1.0 + shift, 2, 2])

    def check(scene, shift):
        nearest = scene.nearest(RAYS, workers=2)
        assert (nearest.index == 0).all() and (nearest.t == 2.0 + shift).all()
        assert (nearest.t_exit == 3.0 + shift).all()
        assert (scene.count(RAYS, workers=2) == len(LOW)).all()

    class paused:
        def __init__(self, owner, name, work, after=False):
            self.inside, self.go_on = threading.Event(), threading.Event()
            self.owner, self.name, self.real, self.after = owner, name, getattr(owner, name), after
            self.thread = threading.Thread(target=work)

        def __enter__(self):
            def waiting(*args, **kwargs):
                done = self.after and self.real(*args, **kwargs)
                if threading.current_thread() is self.thread:
                    self.inside.set()
                    assert self.go_on.wait(LIMIT)
                return done if self.after else self.real(*args, **kwargs)
            setattr(self.owner, self.name, waiting)
            self.thread.start()
            assert self.inside.wait(LIMIT)

        def __exit__(self, *_):
            self.go_on.set()
            self.thread.join()

    def in_child(work):
        child = os.fork()
        if child == 0:
            signal.alarm(LIMIT)
            try:
                work()
            except BaseException:
                import traceback
                traceback.print_exc()
                os._exit(1)
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0

    warm = rb.Scene(boxes())
    check(warm, 0.0)
    warm.update(boxes(1.0))
    check(warm, 1.0)
"""


def forked(code):
    return run(textwrap.dedent(START) + textwrap.dedent(code))


@pytest.mark.parametrize("quality", ["balanced", "fast"])
def test_during_an_update(quality):
    """The child has the scene of before, and updates it."""
    forked(f"""
        from raybox.scene import geometry_parts
        scene = rb.Scene(boxes(), quality={quality!r})
        scene.update(boxes(0.25))
        def child():
            check(scene, 0.25)
            for shift in (0.5, 3.0, 0.75):
                scene.update(boxes(shift))
                check(scene, shift)
                scene.check()
        for at in (geometry_parts, "moved"), (geometry_parts.RefitPolicy, "move"), (geometry_parts, "_made"):
            with paused(*at, lambda: scene.update(boxes(9.0))):
                in_child(child)
            check(scene, 9.0)
            scene.update(boxes(0.25))
    """)


def test_at_every_line_of_an_update():
    """Whatever the thread has done of it, the child's update is right."""
    lines = forked("""
        from queue import SimpleQueue
        from raybox.scene import geometry_parts
        scene, at, go_on = rb.Scene(boxes()), SimpleQueue(), SimpleQueue()
        methods = [getattr(geometry_parts.RefitPolicy, name) for name in ("move", "build", "_shared")]
        codes = [f.__code__ for f in (rb.Scene.update.__wrapped__, geometry_parts.moved, *methods)]
        def trace(frame, event, _):
            if event == "line" and frame.f_code in codes:
                at.put(frame.f_lineno)
                assert go_on.get(timeout=LIMIT)
            return trace
        def work():
            sys.settrace(trace)
            scene.update(boxes(1.0))
            far = np.random.default_rng(1).random((len(LOW), 3)) * 1e6  # the tree is built again
            scene.update(rb.Boxes(far, far + 1.0))
            sys.settrace(None)
            at.put(None)
        def child():
            for shift in (0.5, 0.75):
                scene.update(boxes(shift))
                check(scene, shift)
        threading.Thread(target=work).start()
        lines = []
        while (line := at.get(timeout=LIMIT)) is not None:
            if line not in lines:
                in_child(child)
            lines.append(line)
            go_on.put(True)
        assert scene._parts[0].refit_policy.rebuilds == 1
        print(len(set(lines)))
    """)
    assert int(lines) > 25


def test_during_a_query():
    """The child has threads of its own, and properties of hits that another thread computes."""
    forked("""
        from raybox.hits.hits import Hits
        from raybox.queries import scheduler
        from raybox.threads import chunks
        scene = rb.Scene(boxes())
        work = lambda: check(scene, 0.0)
        threads = (chunks._Chunks, "next_chunk"), (chunks._Chunks, "adjust_size")
        for at in *threads, (vars(Hits)["_spans"], "func"):
            with paused(*at, work):
                in_child(work)
    """)


def test_a_child_starts_workers_of_its_own():
    forked("""
        from raybox.threads.chunks import run_chunks
        def query():
            seen, both = set(), threading.Barrier(2, timeout=LIMIT)
            def work(begin, end):
                if threading.get_ident() not in seen:
                    seen.add(threading.get_ident())
                    both.wait()
            run_chunks(work, 200_000, workers=2)
            assert len(seen) == 2
        query()
        in_child(query)
    """)


@pytest.mark.long
@pytest.mark.parametrize("kind", ["scene", "trimesh", "open3d"])
def test_during_a_build(kind):
    forked(f"""
        from raybox.bvh import partial_rebuild
        from raybox.adapters import open3d, trimesh
        from raybox.scene import geometry_parts
        from types import SimpleNamespace
        kind = {kind!r}
        corners = np.array([[[4.0, -1, -1], [4, 1, -1], [4, 0, 1]], [[3.0, -1, -1], [3, 1, -1], [3, 0, 1]]])
        mesh = SimpleNamespace(vertices=corners.reshape(-1, 3), faces=np.arange(6).reshape(2, 3))
        adapter, other = trimesh.RayMeshIntersector(mesh), open3d.RaycastingScene()
        other.add_triangles(corners[0], [[0, 1, 2]])
        def query(kind):
            if kind == "trimesh":
                assert adapter.intersects_first(RAYS.origins[:2], RAYS.directions[:2]).tolist() == [1, 1]
            elif kind == "open3d":
                rays = np.hstack([RAYS.origins, RAYS.directions])
                assert (other.cast_rays(rays)["t_hit"] == 4.0).all()
            else:
                check(rb.Scene(boxes()), 0.0)
        def child():
            for one in (kind, "scene", "open3d"):
                query(one)
        with paused(geometry_parts, "_made", lambda: query(kind)):
            in_child(child)
        query(kind)
    """)


def test_a_mesh_is_added():
    """A child has the mesh, or has it not: never a scene without it."""
    forked("""
        from raybox.adapters import open3d
        corners = np.array([[4.0, -1, -1], [4, 1, -1], [4, 0, 1]])
        scene, rays = open3d.RaycastingScene(), np.array([[0.0, 0, 0, 1, 0, 0]])
        scene.add_triangles(corners, [[0, 1, 2]])
        assert scene.cast_rays(rays)["t_hit"] == 4.0
        class Meshes(list):
            def append(self, mesh):
                super().append(mesh)
        scene._meshes = Meshes(scene._meshes)
        def child():
            assert len(scene._meshes) == 2
            assert scene.cast_rays(rays)["t_hit"] == 2.0
        work = lambda: scene.add_triangles(corners - [2.0, 0, 0], [[0, 1, 2]])
        with paused(Meshes, "append", work, after=True):
            in_child(child)
    """)


@pytest.mark.long
@pytest.mark.jit
def test_a_fork_waits_for_the_compiler():
    """What is compiled only in part cannot be used; the child compiles something of its own."""
    forked("""
        import numba
        from numba.core.compiler_lock import global_compiler_lock
        inside, forking, done = threading.Event(), threading.Event(), []
        def work():
            with global_compiler_lock:
                inside.set()
                assert forking.wait(LIMIT)
                done.append(numba.njit(lambda x: x + 1)(2))
        def child():
            assert done == [3]
            assert numba.njit(lambda x: x + 2)(3) == 5
            check(rb.Scene(boxes()), 0.0)
            assert (rb.Scene(boxes()).integrate(RAYS) == len(LOW)).all()
        os.register_at_fork(before=forking.set)  # the hook that is registered last runs first
        threading.Thread(target=work).start()
        assert inside.wait(LIMIT)
        in_child(child)
        inside.clear()
        in_child(lambda: None)
    """)


def test_within_a_query_by_a_signal_handler():
    """The child returns into the query without the other threads, and gets an error; the parent a result."""
    forked("""
        from raybox.threads.chunks import run_chunks
        parent, entered, forked = os.getpid(), threading.Barrier(2, timeout=LIMIT), threading.Event()
        children, seen = [], set()
        def handle(*_):
            children.append(os.fork())
            if not children[-1]:
                signal.alarm(LIMIT)
        signal.signal(signal.SIGUSR1, handle)
        def work(begin, end):
            if threading.get_ident() not in seen:
                seen.add(threading.get_ident())
                entered.wait()
                if threading.current_thread() is threading.main_thread():
                    signal.raise_signal(signal.SIGUSR1)
                    forked.set()
                else:
                    assert forked.wait(LIMIT)
            return end - begin
        try:
            total = sum(run_chunks(work, 200_000, workers=2))
        except rb.RayboxError as error:
            assert os.getpid() != parent and "forked within a query" in str(error), error
            check(warm, 1.0)
            os._exit(0)
        assert os.getpid() == parent and total == 200_000
        assert os.waitpid(children[0], 0)[1] == 0
    """)
