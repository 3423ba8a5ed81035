"""Thread pools: one pool serves one query at a time, chunk loop by chunk loop, and is then reused.

Starting a thread costs 0.3 ms, and the chunk loops of a query follow each other within a millisecond. So a
worker spins for a moment before it sleeps. The calling thread spins at the end of a loop, too.

A halted core of a virtual machine can look busy to Linux, which then wakes a thread on the core of the thread
that woke it: both share that core, 4 ms each, while another is idle. Workers are therefore kept off the core
of the calling thread during a query. The affinity of the calling thread is never changed, and
RAYBOX_PIN_THREADS=0 in the environment leaves that of the workers unchanged, too.
"""

import ctypes
import os
from collections.abc import Callable, Iterable, Set
from contextlib import suppress
from functools import cache
from threading import Condition, Thread
from typing import Any, TypeVar
from weakref import WeakSet

import numpy as np
from numpy.typing import NDArray

from raybox.compiler.cores import cores
from raybox.compiler.float_environment import in_default_environment
from raybox.compiler.fork import after_fork_in_child, fork_safe_lock
from raybox.errors import RayboxError

T = TypeVar("T")
_SWITCH = "RAYBOX_PIN_THREADS"


def other_cores() -> frozenset[int]:
    """Return the cores that this thread may run on, less its current one.

    Empty if workers are not to be pinned, or cannot be: only Linux has the system calls.
    """
    current_core = _current_core()
    if current_core is None or os.environ.get(_SWITCH) == "0" or (core := int(current_core())) < 0:
        return frozenset()
    return frozenset(os.sched_getaffinity(0)) - {core}


def pin(threads: Iterable[int], cores: Set[int]) -> None:
    """Restrict threads, by native id, to these cores; an empty set changes nothing."""
    for thread in threads if cores else ():
        with suppress(OSError):  # it has ended, or may not be moved
            if os.sched_getaffinity(thread) != cores:
                os.sched_setaffinity(thread, cores)


@cache
def _current_core() -> Callable[[], int] | None:
    """Return the C function for the number of the current core, or None."""
    return getattr(ctypes.CDLL(None), "sched_getcpu", None) if hasattr(os, "sched_setaffinity") else None


# runs chunks as thread number k until none are left; returns their results
Drain = Callable[[int], list[T]]

_LOOP, _BUSY = 0, 1  # indices in the signal array: number of the current loop, and of workers running it
_WORKER_READS = 8192  # reads of a signal before a worker sleeps, 20 to 50 ns each
_CALLER_READS = 16 * _WORKER_READS
_POOLS: dict[int, list["ThreadPool"]] = {}  # idle pools by number of workers
_ALL: WeakSet["ThreadPool"] = WeakSet()  # in use, too


def acquire(number: int) -> "ThreadPool":
    """Return a pool of so many workers, in exclusive use until `ThreadPool.release`."""
    try:
        return _POOLS.setdefault(number, []).pop()
    except IndexError:
        return ThreadPool(number)


def _nothing() -> None:
    pass


def _spin(signal: NDArray[np.int64], index: int, span: tuple[int, int], reads: int) -> None:
    """Wait while signal[index] is within the span, for at most so many reads."""
    # imported late: queries of one or two pairs need no compiled code
    from raybox.compiler.runtime import spin_while

    spin_while(signal, index, *span, reads)


class ThreadPool:
    """Worker threads that run one query's chunks beside the calling thread."""

    def __init__(self, number: int) -> None:
        self._number = number
        self._threads: list[Thread] | None = None
        self._signal, self._change = np.zeros(2, np.int64), Condition(fork_safe_lock())
        self._ready, self._spins = False, False
        self._cores: frozenset[int] = frozenset()
        self._reset()
        _ALL.add(self)

    def run(self, drain: Drain[T], threads: int, stop: Callable[[], None]) -> list[T]:
        """Run one loop of chunks on so many threads; return the results of all.

        The calling thread is number 0. It does not wait for workers that have not started by its end.
        After an error in any thread `stop` is called, which must end `drain` soon.
        """
        results = []
        try:
            self._prepare()
            self._wake(drain, threads, stop)
            results = drain(0)
        except BaseException as error:
            self._errors.insert(0, error)
        self._finish()
        if self._errors:
            raise self._errors[0]
        return results + self._results

    def release(self) -> None:
        """Return the pool to the idle ones, for the next query."""
        self._ready = False
        self._reset()
        _POOLS.setdefault(self._number, []).append(self)

    def lose_workers(self) -> None:
        """Forget the workers, which a child process has not, and fail a loop that they run."""
        if self._signal[_BUSY]:
            problem = "this process was forked within a query, without its threads; run the query again"
            self._errors.append(RayboxError(problem))
        self._signal[_BUSY], self._threads, self._ready = 0, None, False

    def _reset(self) -> None:
        self._drain: Drain[Any] | None = None
        self._wanted, self._stop = 0, _nothing
        self._results: list[Any] = []
        self._errors: list[BaseException] = []

    def _prepare(self) -> None:
        """Start the workers if needed, and keep them off the caller's core; once a query."""
        if self._ready:
            return
        self._ready = True
        self._spins = self._number < cores()  # a spinning thread must not hold up another
        self._cores = other_cores() if self._spins else frozenset()
        pin([thread.native_id or 0 for thread in self._threads or ()], self._cores)
        if self._threads is None:
            self._threads = list(filter(None, map(self._start, range(1, self._number + 1))))

    def _start(self, number: int) -> Thread | None:
        # a daemon: the interpreter does not wait for it at exit
        thread = Thread(target=self._serve, args=(number,), name=f"raybox_{number}", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system's limit of threads
            return None
        return thread

    def _wake(self, drain: Drain[T], threads: int, stop: Callable[[], None]) -> None:
        """Wake the workers for a loop."""
        with self._change:
            self._reset()
            self._drain, self._wanted, self._stop = drain, threads, stop
            self._signal[_LOOP] += 1
            self._change.notify_all()

    def _finish(self) -> None:
        """Let no more workers join the loop, and wait for those in it, whatever is raised meanwhile."""
        while True:
            try:
                with self._change:
                    self._drain = None
                if self._errors:
                    self._stop()
                else:
                    _spin(self._signal, _BUSY, (1, self._number), self._spins * _CALLER_READS)
                with self._change:
                    while self._signal[_BUSY] > 0:
                        self._change.wait(0.1)  # without a timeout, some systems hold Ctrl-C back
            except BaseException as error:
                self._errors.insert(0, error)
            else:
                return

    def _serve(self, number: int) -> None:
        """Run one loop after the other, as worker of this number."""
        pin((0,), self._cores)  # a new thread inherits the affinity of the calling thread
        loop = 0
        while True:
            loop = self._join(number, loop)
            _spin(self._signal, _LOOP, (loop, loop), self._spins * _WORKER_READS)

    @in_default_environment  # tested for each loop: what runs in one may change the modes
    def _join(self, number: int, last: int) -> int:
        """Wait for a loop after the last, run it if it needs this worker, and return its number."""
        with self._change:
            while self._signal[_LOOP] == last:
                self._change.wait()
            loop, drain = int(self._signal[_LOOP]), self._drain
            if drain is None or number >= self._wanted:
                return loop
            self._signal[_BUSY] += 1
        results = []
        try:
            results = drain(number)
        except BaseException as error:
            self._errors.append(error)
            self._stop()
        with self._change:
            self._results += results
            self._signal[_BUSY] -= 1
            self._change.notify_all()
        return loop


def _lose_all_workers() -> None:
    _POOLS.clear()
    for pool in list(_ALL):
        pool.lose_workers()


after_fork_in_child(_lose_all_workers)
