"""The steps of a cast that change what is on the disk, by name, for tests that stop it there."""

import os
import signal
from collections.abc import Callable

STEPS = (
    "folder made",
    "job stored",
    "part written",
    "part named",
    "part joined",
    "prefix synced",
    "prefix stored",
    "part removed",
    "output complete",
    "place stored",
    "trailer removed",
    "output placed",
    "file removed",
)
VARIABLE = "RAYBOX_KILL_AT"
"""An environment variable: ``STEP:N`` kills this process when it passes a step for the N-th time."""

_passed: dict[str, int] = {}


def _kill(name: str) -> None:
    """Kill this process at the step that the environment names."""
    wanted, _, count = os.environ.get(VARIABLE, "").partition(":")
    if name == wanted:
        _passed[name] = _passed.get(name, 0) + 1
        if _passed[name] == int(count or 1):
            os.kill(os.getpid(), getattr(signal, "SIGKILL", signal.SIGTERM))


hook: Callable[[str], None] = _kill
"""Called at each step; tests replace it."""


def step(name: str) -> None:
    """Pass a step."""
    hook(name)
