"""Processes that compile kernels on other cores, and store them, while this one goes on.

A process is given lines of `kernels.txt` one by one, by a thread of its own, and reports each that it has
stored (`raybox.compiler.jit.worker`). It ends when no line is left, or when its input ends with this process.
While this one waits for a line, it compiles the next. What a process does not store, for whatever reason, is
compiled here.
"""

import subprocess
import sys
from collections import deque
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from threading import Thread

from raybox.compiler.cores import cores
from raybox.compiler.fork import after_fork_in_child, fork_safe_lock
from raybox.compiler.jit.store import is_writable

STORED = b"stored\n"
_PROGRAM = "import sys; sys.path[:] = sys.argv[1:]; from raybox.compiler.jit.worker import main; main()"
_POLL = 0.1  # seconds after which a wait can be interrupted, on Windows, too

_LOCK = fork_safe_lock()
_LINES: dict[str, "Future[bool]"] = {}  # whether it was stored
_QUEUE: deque[str] = deque()
_RUNNING: set["_Process"] = set()


def are_allowed() -> bool:
    """Return whether this process may start others to compile.

    Not on one core, without a folder to store code in, or where `sys.executable` is not Python. Nor in
    processes of `multiprocessing` and workers of Dask, of which there is one for each core already.
    """
    if cores() == 1 or not Path(sys.executable or "").stem.lower().startswith("python"):
        return False
    multiprocessing = sys.modules.get("multiprocessing.process")
    if multiprocessing and multiprocessing.parent_process():
        return False
    worker = getattr(sys.modules.get("distributed.worker"), "Worker", None)
    return not getattr(worker, "_instances", ()) and is_writable()


def start(lines: Iterable[str]) -> None:
    """Compile lines in other processes, in this order: one for each core but that of this process."""
    with _LOCK:
        new = [line for line in lines if line not in _LINES]
        _LINES.update((line, Future()) for line in new)
        _QUEUE.extend(new)
        for _ in range(min(len(_QUEUE), cores() - 1 - len(_RUNNING))):
            process = _Process()
            _RUNNING.add(process)
            Thread(target=_run, args=(process,), daemon=True).start()


def wait_for(line: str, store: Callable[[str], bool]) -> bool:
    """Return whether another process has stored a line; until then, store lines that none has begun.

    False if the line is not begun, or could not be stored.
    """
    future = _LINES.get(line)
    if future is None or future.cancel():
        return False
    while not future.done():
        if not _take_over(store):
            with suppress(TimeoutError):
                return future.result(_POLL)
    return future.result()


def _take_over(store: Callable[[str], bool]) -> bool:
    """Store the next line in this process; return False if there is none."""
    with _LOCK:
        line = _QUEUE.popleft() if _QUEUE else ""
        future = _LINES.get(line)
    if future and future.set_running_or_notify_cancel():
        stored = False
        try:
            stored = store(line)
        finally:
            future.set_result(stored)
    return future is not None


def counts() -> tuple[int, int]:
    """Return how many of these lines are stored, and how many are or will be."""
    futures = [future for future in list(_LINES.values()) if not future.cancelled()]
    stored = [future.done() and future.result() for future in futures]
    failed = sum(future.done() for future in futures) - sum(stored)
    return sum(stored), len(futures) - failed


def stop() -> None:
    """End all processes; this one compiles what they have not stored."""
    with _LOCK:
        _drop_queue()
        for process in _RUNNING:
            process.kill()


def _drop_queue() -> None:
    while _QUEUE:
        _LINES.pop(_QUEUE.popleft()).cancel()


class _Process:
    """A process, as far as it was started."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._is_killed = False

    def start(self) -> None:
        """Start Python with the flags, the environment and the path of modules of this one."""
        flags = subprocess._args_from_interpreter_flags()  # type: ignore[attr-defined]  # as multiprocessing does
        paths = [path for path in sys.path if isinstance(path, str)]
        process = subprocess.Popen(
            [sys.executable, *flags, "-c", _PROGRAM, *paths],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            bufsize=0,
            creationflags=getattr(subprocess, "CREATE_NO_WINDOW", 0),
        )
        with _LOCK:
            self._process = process
            if self._is_killed:
                process.kill()

    def compile(self, line: str) -> bool | None:
        """Return whether a line was compiled and stored; None if the process has ended."""
        process = self._process
        assert process
        assert process.stdin
        assert process.stdout
        process.stdin.write(line.encode() + b"\n")
        reply = process.stdout.readline()
        return reply == STORED if reply else None

    def kill(self) -> None:
        """End the process, or do not start it."""
        self._is_killed = True
        if self._process:
            self._process.kill()

    def close(self) -> None:
        """Let the process end, and wait for it."""
        if self._process:
            with self._process:
                pass

    def forget(self) -> None:
        """Close the pipes of a parent's process: it ends when the last copy is closed."""
        if self._process and self._process.stdin and self._process.stdout:
            self._process.stdin.close()
            self._process.stdout.close()
            self._process.returncode = 0  # nobody waits for it here


def _run(process: _Process) -> None:
    """Give lines to a process until none is left, or it has ended."""
    try:
        with suppress(OSError):
            process.start()
            while _next(process):
                pass
    finally:
        with _LOCK:
            _RUNNING.discard(process)
            if not _RUNNING:
                _drop_queue()
        process.close()


def _next(process: _Process) -> bool:
    """Let a process compile the next line; return False if there is none, or the process has ended."""
    with _LOCK:
        line = _QUEUE.popleft() if _QUEUE else ""
        future = _LINES.get(line)
        if future is None:
            _RUNNING.discard(process)  # from now on, `start` starts another
            return False
    if not future.set_running_or_notify_cancel():
        return True
    stored = None
    try:
        stored = process.compile(line)
    finally:
        future.set_result(bool(stored))
    return stored is not None


def _forget_all() -> None:
    for process in _RUNNING:
        process.forget()
    _RUNNING.clear()
    _QUEUE.clear()
    _LINES.clear()


after_fork_in_child(_forget_all)
