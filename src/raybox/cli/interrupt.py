"""Ctrl-C, wherever it falls: left to Python, C code on the way may lose it, or make another error of it."""

import _thread
import signal
import sys
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any


@contextmanager
def heard() -> Iterator[None]:
    """Have Ctrl-C raise ``KeyboardInterrupt`` where it gets through; where it is ignored, it stays so."""
    usual = signal.getsignal(signal.SIGINT), sys.unraisablehook
    if (
        usual[0] is not signal.default_int_handler
        or threading.current_thread() is not threading.main_thread()
    ):
        yield
        return
    stop = _Stop()
    signal.signal(signal.SIGINT, stop.take)
    sys.unraisablehook = stop.lost
    try:
        yield
    except KeyboardInterrupt as stopped:
        # Objects of LLVM that were half made complain as they go: in here, where nobody hears them.
        traceback.clear_frames(stopped.__traceback__)
        raise
    finally:
        signal.signal(signal.SIGINT, usual[0])
        sys.unraisablehook = usual[1]


class _Stop:
    """One Ctrl-C on its way."""

    def __init__(self) -> None:
        self.usual = sys.unraisablehook
        self.raised = False

    def take(self, _: int, frame: FrameType | None) -> None:
        """Raise it; not in the midst of an import: modules written in C lose it there, or fail by halves."""
        if _imports(frame):
            _again()
            return
        self.raised = True
        raise KeyboardInterrupt

    def lost(self, what: Any) -> None:
        """Send it again where it fell into a callback, as Numba's are while it loads code."""
        if issubclass(what.exc_type, KeyboardInterrupt):
            _again()
        elif not self.raised:
            self.usual(what)


def _imports(frame: FrameType | None) -> bool:
    while frame is not None:
        if frame.f_globals.get("__name__") == "importlib._bootstrap":
            return True
        frame = frame.f_back
    return False


def _again() -> None:
    later = threading.Timer(0.01, _thread.interrupt_main)
    later.daemon = True
    later.start()
