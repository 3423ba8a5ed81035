"""What tests of rb.cluster share: casts by workers and by one process, casts cut short, a log of tasks."""

import os

import pytest

import raybox as rb
from raybox.distributed.dask import join_parts, tasks
from raybox.io.chunked import output_folder as folders
from streaming import IDS, SCENE, content

distributed = pytest.importorskip("distributed")

QUERIES = ("nearest", "occluded", "count", "all")


class Log(distributed.WorkerPlugin):
    """Notes, in a file, which tasks a worker begins and ends."""

    name = "log"

    def __init__(self, path):
        self.path = str(path)

    def setup(self, worker):
        self.note("setup", os.getpid())

    def transition(self, key, start, finish, **_):
        if "raybox" in str(key):
            self.note(finish, str(key).rpartition("-")[2])

    def note(self, *words):
        with open(self.path, "a") as file:
            print(*words, file=file)


def numbers_of(task):
    """Tell which parts a task is of, by the end of its key."""
    first, number = map(int, task.split(":"))
    return range(first, first + number)


def asked(lines):
    """Tell the parts of all tasks that workers began."""
    return [number for line in lines if line[0] == "executing" for number in numbers_of(line[1])]


def both(cluster, rays, ending, **how):
    """Cast by workers and by this process; hold the bytes of one to those of the other."""
    scene, folder = how.pop("scene", SCENE), rays.parent
    found, wanted = folder / f"found.{ending}", folder / f"wanted.{ending}"
    how = {"ids": IDS, "chunk": 20, **how}
    done = rb.cluster.cast(scene, rays, found, cluster=cluster, **how)
    alone = rb.stream.cast(SCENE, rays, wanted, **how)
    assert (done.rays, done.met, done.rows) == (alone.rays, alone.met, alone.rows)
    assert list(content(found).values()) == list(content(wanted).values())
    assert not list(folder.glob("*raybox-part*"))
    return found, done


def begun(cluster, rays, out, after=3, settled=False, **how):
    """Cast, and stop when so many parts are taken in; give the parts that are there.

    settled: when so many are joined, each noted, and removed, at once.
    """
    take, taken, add = tasks._Run._take, [], join_parts.Joiner.add

    def stopping(run, number, told):
        take(run, number, told)
        taken.append(number)
        if (run._next if settled else len(taken)) >= after:
            raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tasks._Run, "_take", stopping)
        patch.setattr(folders, "_SECONDS", 1e6)
        if settled:
            patch.setattr(join_parts.Joiner, "add", lambda self, *part: add(self, *part) or self.settle())
        with pytest.raises(KeyboardInterrupt) as stopped:
            rb.cluster.cast(SCENE, rays, out, cluster=cluster, **{"chunk": 20, "ids": IDS, **how})
    assert "parts are done and kept in " in stopped.value.__notes__[0]
    folder = out.with_name(out.name + ".raybox-parts")
    # workers may still be at parts that were handed out: what comes next has to wait for their one thread
    cluster.gather([cluster.submit(os.getpid, workers=[one], pure=False) for one in cluster.nthreads()])
    return sorted(path.name for path in folder.glob("part-*"))
