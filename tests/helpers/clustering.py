"""Shared by tests of rb.cluster: casts by workers and by one process, interrupted casts, a log of tasks."""

import os

import pytest

import raybox as rb
from raybox.distributed.dask import join_parts, tasks
from raybox.io.chunked import output_folder
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


def numbers_of(task):
    """Return the parts of a task, from the end of its key."""
    first, number = map(int, task.split(":"))
    return range(first, first + number)


def started_parts(lines):
    """Return the parts of all tasks that workers started."""
    return [number for line in lines if line[0] == "executing" for number in numbers_of(line[1])]


def both(cluster, rays, ending, **how):
    """Cast by workers and by this process; compare the bytes of both."""
    scene, whole, folder = how.pop("scene", SCENE), how.pop("whole", SCENE), rays.parent
    found, wanted = folder / f"found.{ending}", folder / f"wanted.{ending}"
    how = {"ids": IDS, "chunk": 20, **how}
    done = rb.cluster.cast(scene, rays, found, cluster=cluster, **how)
    alone = rb.stream.cast(whole, rays, wanted, **how)
    assert (done.rays, done.hit_count, done.rows) == (alone.rays, alone.hit_count, alone.rows)
    assert list(content(found).values()) == list(content(wanted).values())
    assert not list(folder.glob("*raybox-part*"))
    return found, done


def interrupted(cluster, rays, out, after=3, synced=False, **how):
    """Cast, and interrupt it when `after` parts are collected; return the parts that exist.

    synced: when `after` are joined, each synced and removed at once.
    """
    collect, collected, add = tasks._TaskQueue._collect, [], join_parts.Joiner.add

    def stopping(run, number, info):
        collect(run, number, info)
        collected.append(number)
        if (run._next_to_join if synced else len(collected)) >= after:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks._TaskQueue, "_collect", stopping)
        patch.setattr(output_folder, "_SYNC_SECONDS", 1e6)
        if synced:
            patch.setattr(join_parts.Joiner, "add", lambda self, *part: add(self, *part) or self.sync())
        with pytest.raises(KeyboardInterrupt) as stopped:
            rb.cluster.cast(SCENE, rays, out, cluster=cluster, **{"chunk": 20, "ids": IDS, **how})
    assert "parts are done and stored in " in stopped.value.__notes__[0]
    folder = out.with_name(out.name + ".raybox-parts")
    # workers may still write parts that were submitted: these tasks wait for their one thread
    cluster.gather([cluster.submit(os.getpid, workers=[one], pure=False) for one in cluster.nthreads()])
    return sorted(path.name for path in folder.glob("part-*"))
