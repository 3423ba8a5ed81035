"""Ctrl-C ends a command at any point.

C code that Python calls may drop it, or turn it into another error: it is then raised again.
"""

import _thread
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import cast


@contextmanager
def interruptible() -> Iterator[None]:
    """Make Ctrl-C raise ``KeyboardInterrupt`` within this context.

    It is raised again where an import or a callback would lose it. Where SIGINT is ignored, or outside the
    main thread, nothing changes.
    """
    handler, hook = signal.getsignal(signal.SIGINT), sys.unraisablehook
    if handler is not signal.default_int_handler or threading.current_thread() is not threading.main_thread():
        yield
        return
    interrupt = _Interrupt()
    signal.signal(signal.SIGINT, interrupt.handle)
    sys.unraisablehook = interrupt.unraisable
    try:
        yield
    except KeyboardInterrupt as raised:
        # Half-made LLVM objects fail in __del__: delete them here, where such errors are not printed.
        traceback.clear_frames(raised.__traceback__)
        raise
    finally:
        signal.signal(signal.SIGINT, handler)
        sys.unraisablehook = hook


class _Interrupt:
    """The handlers of Ctrl-C, and whether it was raised."""

    def __init__(self) -> None:
        self.hook = sys.unraisablehook
        self.raised = False

    def handle(self, _: int, frame: FrameType | None) -> None:
        """Raise it; during an import, send it again later: C modules may lose it."""
        if _is_importing(frame):
            _send_again()
            return
        self.raised = True
        raise KeyboardInterrupt

    def unraisable(self, what: "sys.UnraisableHookArgs") -> None:
        """Send it again if a callback lost it, as Numba's do while it loads code."""
        if issubclass(what.exc_type, KeyboardInterrupt):
            _send_again()
        elif not self.raised:
            self.hook(what)


def _is_importing(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__") == "importlib._bootstrap":
            return True
        frame = frame.f_back
    return False


def _interrupt_main() -> None:
    """Send Ctrl-C to the main thread: as a signal where there is one, which ends a wait in C code, too."""
    if hasattr(signal, "pthread_kill"):
        signal.pthread_kill(cast(int, threading.main_thread().ident), signal.SIGINT)
    else:
        _thread.interrupt_main()


def _send_again() -> None:
    timer = threading.Timer(0.01, _interrupt_main)
    timer.daemon = True
    timer.start()
