"""Casts on a cluster of processes: a worker, the scheduler or the client dies; for `killed_casts.py`."""

import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

import distributed
import numpy as np

import raybox as rb
from killed_cases import Case, Files, arguments, content, left_over, scene_of
from killed_outcomes import Found, Outcome, Reference, failure_of, forked, reference, was_resumed
from killed_processes import KILLED, REFUSED, Disturbance, Ended, Kill, mortal, run_forked

_WORKERS = 2


class Cluster:
    """A scheduler and workers: one process each, without nannies."""

    def __init__(self) -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            self._port = taken.getsockname()[1]
        self.address = f"tcp://127.0.0.1:{self._port}"
        self._scheduler = self._start_scheduler()
        self._workers = [self._start_worker() for _ in range(_WORKERS)]

    def _start_scheduler(self) -> "subprocess.Popen[bytes]":
        words = ["scheduler", "--host", "127.0.0.1", "--port", str(self._port), "--no-dashboard", "--no-show"]
        return _started(words)

    def _start_worker(self, call: int | None = None) -> "subprocess.Popen[bytes]":
        words = ["worker", self.address, "--no-nanny", "--nthreads", "1", "--no-dashboard"]
        return _started(words, "" if call is None else mortal(call))

    def kill_worker(self) -> None:
        """Kill a worker, and start another."""
        self._workers.append(self._start_worker())
        _end(self._workers.pop(0))

    def add_mortal_worker(self, call: int) -> None:
        """Replace a worker by one that is killed at a call that changes the disk."""
        self._workers.append(self._start_worker(call))
        _end(self._workers.pop(0))

    def kill_scheduler(self) -> None:
        """Kill the scheduler; workers and scheduler are started again by `restore`."""
        _end(self._scheduler)

    def restore(self) -> None:
        """Start again what has ended."""
        if self._scheduler.poll() is not None:
            for worker in self._workers:
                _end(worker)
            self._scheduler = self._start_scheduler()
        alive = [worker for worker in self._workers if worker.poll() is None]
        self._workers = alive + [self._start_worker() for _ in range(_WORKERS - len(alive))]

    def close(self) -> None:
        """End all processes."""
        for process in (*self._workers, self._scheduler):
            _end(process)


def _started(words: list[str], start: str = "") -> "subprocess.Popen[bytes]":
    code = (
        start
        + "import sys; from distributed.cli import dask_{0} as d; sys.argv[0] = '{0}'; d.main()".format(
            words[0]
        )
    )
    command = [sys.executable, "-c", code, *words[1:]]
    return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _end(process: "subprocess.Popen[bytes]") -> None:
    process.kill()
    process.wait()


class ClusterCase(NamedTuple):
    """A case, and the process that is killed: the client, a worker, or the scheduler."""

    case: Case
    dies: str

    def __str__(self) -> str:
        return f"{self.case}, the {self.dies} killed"


def caller(case: Case, files: Files, target: str, cluster: Cluster) -> Callable[[], object]:
    """Return what casts on a cluster."""
    scene, how = scene_of(case.scene), arguments(case, files)

    def call() -> object:
        with distributed.Client(cluster.address, set_as_default=False) as client:
            client.wait_for_workers(1, timeout=60)
            return rb.cast(scene, files.rays(case.rays), target, cluster=client, **how)

    return call


def meet_death(call: Callable[[], object], log: Path, cluster: Cluster, dies: str, kill: Kill) -> Ended:
    """Cast while the client, a worker or the scheduler is killed."""
    if dies == "client":
        return run_forked(call, kill, log)
    if dies == "worker" and kill.call is not None:
        cluster.add_mortal_worker(kill.call)
        return run_forked(call, None, log)
    act = cluster.kill_worker if dies == "worker" else cluster.kill_scheduler
    return run_forked(call, None, log, Disturbance(kill.seconds or 0.5, act))


def cast_with_death(
    call: Callable[[], object], target: str, cluster: Cluster, dies: str, kill: Kill
) -> tuple[Ended, bool]:
    """Return how a cast ended in the end, and whether it was stopped and continued."""
    log = Path(target.rstrip("/")).with_name("log")
    ended = meet_death(call, log, cluster, dies, kill)
    cluster.restore()
    if ended.outcome != {"client": KILLED, "scheduler": REFUSED}.get(dies):
        return ended, False
    if content(target) is not None and not left_over(target):  # all was done before the kill
        return ended._replace(outcome=""), False
    return run_forked(call, None, log), True


def kill_of(seconds: float, random: np.random.Generator, number: int) -> Kill:
    """Return when something is killed: at a call that changes the disk for each second cast."""
    if number % 2:
        return Kill(call=int(random.integers(1, 60)))
    return Kill(seconds=float(random.uniform(0.2, 1.0)) * seconds)


def casts_of(dies: str, casts: int, files: Files, chosen: list[Case], seed: int) -> Found:
    """Yield the outcome of each cast."""
    random, references = np.random.default_rng(seed), dict[Case, Reference | str]()
    with closing(Cluster()) as cluster:
        for number in range(casts):
            case = chosen[number % len(chosen)]
            with tempfile.TemporaryDirectory(dir=files.folder) as name:
                folder = Path(name)
                (folder / "whole").mkdir()
                if case not in references:
                    references[case] = _on_one_machine(case, files, folder / "whole", cluster)
                wanted, target = references[case], case.target(folder)
                if isinstance(wanted, str):
                    yield ClusterCase(case, dies), Outcome(failure=wanted, offered=False)
                    continue
                call, kill = caller(case, files, target, cluster), kill_of(wanted.seconds, random, number)
                ended, continued = cast_with_death(call, target, cluster, dies, kill)
                resumed = continued and was_resumed(ended)
                failure = failure_of(ended, target, wanted)
                yield ClusterCase(case, dies), Outcome(1, resumed, failure=failure)


def _on_one_machine(case: Case, files: Files, folder: Path, cluster: Cluster) -> Reference | str:
    """Return what a cast writes here, and its seconds on the cluster; a text if it is refused."""
    here = reference(case, files, forked, folder)
    if isinstance(here, str):
        return here
    (folder / "cluster").mkdir()
    target = case.target(folder / "cluster")
    ended = run_forked(caller(case, files, target, cluster), None, folder / "log")
    if ended.outcome == REFUSED or "unexpected keyword argument" in ended.text:
        return ended.text
    return here._replace(seconds=ended.seconds)


def campaigns(casts: int, files: Files, chosen: list[Case], seed: int) -> Iterator[tuple[str, Found]]:
    """Yield the campaigns on clusters: a third of the casts each."""
    spread = chosen[:: max(1, len(chosen) // max(1, casts))]  # every format and query in a few casts
    for number, dies in enumerate(("client", "worker", "scheduler")):
        some = spread[number::3] or spread
        yield f"on a cluster, the {dies} killed", casts_of(dies, casts // 3, files, some, seed)
