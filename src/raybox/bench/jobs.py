"""The jobs of worker processes, by name; arguments and results are plain values."""

import sys
from collections.abc import Callable
from typing import Any

from raybox.bench import first_use, raybox_only, runner


def _log(line: str) -> None:
    print(line, file=sys.stderr, flush=True)


def versus(**how: Any) -> dict[str, Any]:
    """Return times and agreement of contestants: see `raybox.bench.runner`."""
    hashable: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in how.items()}
    return runner.measure(runner.Spec(**hashable), _log)


JOBS: dict[str, Callable[..., Any]] = {
    "versus": versus,
    "builds": raybox_only.builds,
    "memory": raybox_only.memory,
    "sizes": raybox_only.sizes,
    "mixed": raybox_only.mixed,
    "brute": raybox_only.brute,
    "cores": raybox_only.cores,
    "first_use": first_use.first_use,
}
