"""What a process of its own can be told to do, by name: each takes and gives plain values."""

import sys
from collections.abc import Callable
from typing import Any

from raybox.bench import first_use, own, runner


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def versus(**how: Any) -> dict[str, Any]:
    """Time and compare contestants: see `raybox.bench.runner`."""
    hashable: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in how.items()}
    return runner.measure(runner.Spec(**hashable), _say)


JOBS: dict[str, Callable[..., Any]] = {
    "versus": versus,
    "builds": own.builds,
    "memory": own.memory,
    "sizes": own.sizes,
    "mixed": own.mixed,
    "brute": own.brute,
    "cores": own.cores,
    "first_use": first_use.first_use,
}
