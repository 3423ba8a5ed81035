"""Shared by tests of rb.cluster: casts by workers and by one process, interrupted casts, a log of tasks."""

import os

import pytest

import raybox as rb
from raybox.casting import engine
from streaming import IDS, SCENE, content

distributed = pytest.importorskip("distributed")


class Log(distributed.WorkerPlugin):
    """Logs, in a file, which tasks a worker starts and ends."""

    name = "log"

    def __init__(self, path):
        self.path = str(path)

    def setup(self, worker):
        self.write("setup", os.getpid())

    def transition(self, key, start, finish, **_):
        if "raybox" in str(key):
            self.write(finish, str(key).rpartition("-")[2])

    def write(self, *words):
        with open(self.path, "a") as file:
            print(*words, file=file)


def worker_pids(client):
    """Return the processes of the workers that answer: one that was killed may still be listed."""
    found = client.run(os.getpid, on_error="return").values()
    return [pid for pid in found if isinstance(pid, int)]


def folder_of(out):
    """Return the folder of an unfinished output."""
    return out.with_name(out.name + ".raybox")


def parts_of(out):
    """Return the paths of the parts of an unfinished output that are there."""
    return sorted(folder_of(out).joinpath("parts").glob("part-*"))


def both(cluster, rays, ending, **how):
    """Cast by workers and by this process; compare the bytes of both."""
    scene, whole, folder = how.pop("scene", SCENE), how.pop("whole", SCENE), how.pop("folder", rays.parent)
    found, wanted = folder / f"found.{ending}", folder / f"wanted.{ending}"
    how = {"ids": IDS, "chunk": 20, **how}
    done = rb.cast(scene, rays, found, cluster=cluster, **how)
    alone = rb.cast(whole, rays, wanted, **how)
    assert (done.rays, done.hit_count, done.rows) == (alone.rays, alone.hit_count, alone.rows)
    assert list(content(found).values()) == list(content(wanted).values())
    assert not list(folder.glob("*.raybox"))
    return found, done


def interrupted(cluster, rays, out, after=3, **how):
    """Cast, and interrupt it when `after` parts are there; return the names of the parts that exist."""
    collected = []

    def stopping(_bar, done):
        collected.append(done.rays)
        if len(collected) >= after:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(engine, "_advance", stopping)
        with pytest.raises(KeyboardInterrupt) as stopped:
            rb.cast(SCENE, rays, out, cluster=cluster, **{"chunk": 20, "ids": IDS, **how})
    assert "the same command continues" in stopped.value.__notes__[0]
    # workers may still write parts that were submitted: these tasks wait for their one thread
    cluster.gather([cluster.submit(os.getpid, workers=[one], pure=False) for one in cluster.nthreads()])
    return [path.name for path in parts_of(out)]
