"""A process that compiles lines of `kernels.txt` for another one, and stores them.

Lines come from stdin; after each, a line on stdout says whether it was stored. The process ends when stdin
does: at once, even if it is compiling, as nobody needs it then. At most as many as there are cores compile
for all programs that use a cache folder.
"""

import os
import signal
import sys
import time
from contextlib import ExitStack, suppress
from importlib import import_module
from queue import SimpleQueue
from threading import Thread

from raybox.compiler.cores import cores
from raybox.compiler.jit.lines import HOOKS
from raybox.compiler.jit.processes import STORED
from raybox.compiler.jit.store import cache_folder
from raybox.errors import FileFormatError
from raybox.store.lock import locked

_SLOT = "compiling-"
_END = 0.1  # seconds after the end of stdin, in which the lock is released


def main() -> None:
    """Compile the lines that stdin has."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    replies = os.dup(sys.stdout.fileno())
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for what compilers print
    lines: SimpleQueue[str] = SimpleQueue()
    Thread(target=_read, args=(lines,), daemon=True).start()
    with ExitStack() as stack:
        if _takes_slot(stack):
            from raybox.compiler.jit.compile import store_line  # imports Numba

            for name in HOOKS:
                import_module(name)
            for line in iter(lines.get, ""):
                os.write(replies, STORED if store_line(line) else b"failed\n")


def _read(lines: "SimpleQueue[str]") -> None:
    for line in sys.stdin:
        lines.put(line.strip())
    lines.put("")
    time.sleep(_END)
    os._exit(1)


def _takes_slot(stack: ExitStack) -> bool:
    """Take one of as many locks as there are cores until the stack is closed; return False without any."""
    folder = cache_folder()
    for path in [folder / f"{_SLOT}{number}" for number in range(cores())] if folder else []:
        with suppress(FileFormatError, OSError):
            stack.enter_context(locked(path, path))
            return True
    return False
