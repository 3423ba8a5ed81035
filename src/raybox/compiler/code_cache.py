"""Compiled code stored on disk, right for any number of processes and after any edit.

Numba's own cache misses edits outside of the entry point's file, has an index that simultaneous processes
overwrite, and executes damaged machine code. Here the name of a file is a hash of what identifies its code,
and the file holds the full key and a checksum.
"""

import hashlib
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from numba.core.caching import _Cache
from numba.core.serialize import dumps
from numba.core.typing import Signature

from raybox.compiler.code_files import cache_folder, load, rebuild, reduce, save
from raybox.compiler.code_origin import describe, find_origin, source_stamp, version_stamp


def reload(cres: Any) -> Any:
    """Return a compile result that went through the bytes of a file."""
    return rebuild(cres.target_context, pickle.loads(dumps(reduce(cres))))


class _CacheFile(NamedTuple):
    """The path of compiled code, and the key that the file must contain."""

    path: Path
    key: bytes


class CodeCache(_Cache):
    """The cache of one entry point, with the interface of Numba's caches."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self._function = function
        self._name = f"{function.__module__}.{function.__qualname__}".replace("<", "").replace(">", "")
        source_stamp()  # now: sources may change before the first call
        self.enable()

    @property
    def cache_path(self) -> str | None:
        """Folder of the files; None without a cache folder."""
        folder = self._folder()
        return str(folder) if folder else None

    def enable(self) -> None:
        """Start to load and store code."""
        self._enabled = True

    def disable(self) -> None:
        """Stop loading and storing: each process compiles anew."""
        self._enabled = False

    def flush(self) -> None:
        """Remove all files of this entry point."""
        folder = self._folder()
        for path in folder.glob(f"{self._name}.{'?' * 16}.nbc") if folder else ():
            path.unlink(missing_ok=True)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """Return the stored code for argument types, ready to call.

        None if it must be compiled.
        """
        file = self._file(sig, target_context.codegen())
        stored = file and load(file.path, file.key)
        try:
            return stored and rebuild(target_context, stored)
        except Exception:  # whatever Numba and LLVM raise: compiling anew is always right
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        """Store compiled code, if it can be stored at all."""
        file = self._file(sig, data.codegen)
        if not file or data.lifted or data.library.has_dynamic_globals:
            return
        try:
            payload = dumps(reduce(data))
        except (pickle.PicklingError, TypeError, AttributeError):  # classes that have no name in a module
            return
        save(file.path, file.key, payload)

    def _folder(self) -> Path | None:
        root = cache_folder()
        return root / version_stamp() if root and self._enabled and source_stamp() else None

    def _file(self, sig: Any, codegen: Any) -> _CacheFile | None:
        """Return the file for argument types and this processor.

        None if code cannot be stored.
        """
        folder = self._folder()
        kinds = sig.args if isinstance(sig, Signature) else sig
        origin = find_origin(self._function, kinds) if folder else None
        if not (folder and origin):
            return None
        code = describe(self._function), repr(sig), repr(codegen.magic_tuple())
        text = "\n".join([version_stamp(), *code, origin.text])
        name = hashlib.blake2b(
            text.encode(), digest_size=8
        ).hexdigest()  # without contents: an edited user's file replaces its old code
        key = hashlib.blake2b(f"{text}\n{origin.contents}".encode(), digest_size=32).digest()
        return _CacheFile(folder / f"{self._name}.{name}.nbc", key)
