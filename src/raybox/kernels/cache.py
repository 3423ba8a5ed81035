"""Compiled code kept on disk, right for any number of processes and after any edit.

Numba numbers the files of a function and tells in an index which number is what. Of two processes that
compile at once, each writes the index that it has read: the files of one may then bear the numbers of the
other's, and a third process be given machine code for other arguments. And where an index is new, a number
may still be that of a file of the version before. So files have no numbers here: their names follow from
what they hold, and they say themselves what that is.
"""

import hashlib
import os
import pickle
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any
from uuid import uuid4

import numba
from numba.core.caching import FunctionCache
from numba.core.serialize import dumps

from raybox.kernels.code import Kept


@cache
def source_stamp() -> str:
    """Hash the sources of every layer that compiled code can come from."""
    package = Path(__file__).parent.parent
    digest = hashlib.sha256()
    for folder in ("kernels", "bvh"):
        for path in sorted((package / folder).glob("*.py")):
            digest.update(path.read_bytes())
    return digest.hexdigest()


class Shelf:
    """The files of one function: for each kind of arguments and processor one, the newest."""

    def __init__(self, folder: Path, base: str, stamp: str) -> None:
        self.folder, self.base = folder, base
        self.stamp = numba.__version__, stamp

    def load(self, key: Any) -> Any:
        """Return what is kept under a key; None for nothing, what is out of date or what is damaged."""
        try:
            with self._path(key).open("rb") as file:
                if pickle.load(file) == (self.stamp, repr(key)):
                    return pickle.load(file)
        except (OSError, EOFError, ValueError, pickle.UnpicklingError):
            pass
        return None

    def save(self, key: Any, data: Any) -> None:
        """Keep data under a key, as a whole or, where that cannot be written, not at all."""
        path = self._path(key)
        new = path.with_name(f"{path.name}.{uuid4().hex[:8]}")
        with suppress(OSError):
            try:
                new.write_bytes(pickle.dumps((self.stamp, repr(key))) + dumps(data))
                os.replace(new, path)
            finally:
                new.unlink(missing_ok=True)

    def flush(self) -> None:
        """Forget everything."""
        for path in self.folder.glob(f"{self.base}.*.nbc"):
            path.unlink(missing_ok=True)

    def _path(self, key: Any) -> Path:
        name = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return self.folder / f"{self.base}.{name}.nbc"


class StampedCache(FunctionCache):
    """Numba's disk cache, made stale by an edit in any kernel file.

    Numba itself watches only the file of the entry function: an edit in a function that it
    calls would go on answering with the old code (seen with an installation in place).
    """

    _impl_class = Kept

    def __init__(self, py_func: Callable[..., Any]) -> None:
        super().__init__(py_func)
        self._cache_file = Shelf(Path(self._cache_path), self._impl.filename_base, source_stamp())

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return what is kept for these arguments, or None; unlike Numba, be ready for that alone."""
        with self._guard_against_spurious_io_errors():
            return self._load_overload(sig, target_context)
