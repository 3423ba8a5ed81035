"""Sums that tell whether a scene, its names, or a file are still what they were."""

from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

_ENDS = 1 << 16  # bytes looked at at each end of a file


def of_arrays(*arrays: NDArray[Any]) -> str:
    """Return the sum of arrays."""
    state = blake2b(digest_size=16)
    for array in arrays:
        state.update(repr(array.shape).encode())
        state.update(np.ascontiguousarray(array).reshape(-1).view(np.uint8).data)
    return state.hexdigest()


def of_text(*texts: str) -> str:
    """Return the sum of texts."""
    state = blake2b(digest_size=16)
    for text in texts:
        state.update(f"{len(text)}:{text}".encode())
    return state.hexdigest()


def of_file(path: Path) -> dict[str, Any]:
    """Tell a file from what it may become: its size, when it was changed, the sum of both of its ends."""
    if path.is_dir():
        inside = sorted(item for item in path.rglob("*") if item.is_file())
        stats = [(str(item.relative_to(path)), item.stat()) for item in inside]
        lines = (f"{name} {found.st_size} {found.st_mtime_ns}" for name, found in stats)
        return {"bytes": sum(found.st_size for _, found in stats), "files": of_text(*lines)}
    found = path.stat()
    with path.open("rb") as file:
        head = file.read(_ENDS)
        file.seek(max(0, found.st_size - _ENDS))
        ends = blake2b(head + file.read(_ENDS), digest_size=16).hexdigest()
    return {"bytes": found.st_size, "changed": found.st_mtime_ns, "ends": ends}
