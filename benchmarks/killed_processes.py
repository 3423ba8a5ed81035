"""Processes that `killed_casts.py` kills: forks of this one, commands, and what became of them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import raybox as rb
from disk_faults import kill_at

KILLED, REFUSED, FOREIGN, HANGS = "killed", "refused", "foreign error", "hangs"
SECONDS = 900.0  # a busy machine may need minutes


class Kill(NamedTuple):
    """When a process is killed: after some seconds, or at a call that changes what is on the disk."""

    seconds: float | None = None
    call: int | None = None

    def __str__(self) -> str:
        return f"{self.seconds:.3f} s" if self.call is None else f"call {self.call}"


class Ended(NamedTuple):
    """How a process ended: "", or one of `KILLED`, `REFUSED`, `FOREIGN`, `HANGS`."""

    outcome: str
    text: str
    seconds: float


class Disturbance(NamedTuple):
    """What happens to others while a process runs, after some seconds."""

    seconds: float
    act: Callable[[], None]


def run_forked(
    call: Callable[[], object], kill: Kill | None, log: Path, disturbance: Disturbance | None = None
) -> Ended:
    """Run a call in a fork of this process, and kill it."""
    log.unlink(missing_ok=True)
    started, child = time.perf_counter(), os.fork()
    if not child:
        _run_child(call, kill, log)
    status = None
    if disturbance is not None:
        status = _status(child, disturbance.seconds)
        if status is None:
            disturbance.act()
    return _wait(child, status, kill, log, started)


def _run_child(call: Callable[[], object], kill: Kill | None, log: Path) -> None:
    """Run a call and end this process; its code and a file say how."""
    code = 9
    try:
        if kill is not None and kill.call is not None:
            kill_at(kill.call)
        log.write_text(repr(call()))
        code = 0
    except rb.RayboxError as error:
        log.write_text(str(error))
        code = 3
    except BaseException as error:
        log.write_text(f"{type(error).__name__}: {error}")
        code = 4
    finally:
        os._exit(code)


def _wait(child: int, status: int | None, kill: Kill | None, log: Path, started: float) -> Ended:
    """Kill a child in time, unless it has a status, and return how it ended."""
    limit = SECONDS if kill is None or kill.seconds is None else kill.seconds
    status, hangs = _status(child, limit) if status is None else status, False
    if status is None:
        hangs = limit == SECONDS
        os.kill(child, signal.SIGKILL)
        status = os.waitpid(child, 0)[1]
    text = log.read_text() if log.exists() else ""
    return Ended(HANGS if hangs else _outcome(status), text, time.perf_counter() - started)


def _status(child: int, limit: float) -> int | None:
    """Return the status of a child that ends within a limit, or None."""
    ends = time.perf_counter() + limit
    while time.perf_counter() < ends:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return status
        time.sleep(0.002)
    return None


def _outcome(status: int) -> str:
    if os.WIFSIGNALED(status):
        return KILLED if os.WTERMSIG(status) == signal.SIGKILL else FOREIGN
    return {0: "", 3: REFUSED}.get(os.WEXITSTATUS(status), FOREIGN)


def mortal(call: int) -> str:
    """Return code that ends its process at a call."""
    path = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r})"
    return f"{path}; import disk_faults; disk_faults.kill_at({call}); "


def run_command(arguments: list[str], kill: Kill | None, folder: Path) -> Ended:
    """Run the command `raybox` in a process, and kill it."""
    start = mortal(kill.call) if kill is not None and kill.call is not None else ""
    words = [sys.executable, "-c", f"{start}import sys; from raybox.cli import main; main()", *arguments]
    limit = SECONDS if kill is None or kill.seconds is None else kill.seconds
    started, hangs = time.perf_counter(), False
    with (folder / "stderr").open("w+b") as errors:
        made = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=errors)
        try:
            code = made.wait(limit)
        except subprocess.TimeoutExpired:
            made.kill()
            code, hangs = made.wait(), limit == SECONDS
        text = (folder / "stderr").read_text(errors="replace")
    failed = FOREIGN if "Traceback" in text else REFUSED
    outcome = HANGS if hangs else {-signal.SIGKILL: KILLED, 0: ""}.get(code, failed)
    return Ended(outcome, text, time.perf_counter() - started)
