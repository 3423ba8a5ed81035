"""Open files as files with a path, as readers need them."""

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import BinaryIO, TypeAlias

from raybox.errors import InvalidInput, RayboxError
from raybox.io.formats.common import path_of
from raybox.io.formats.table import FORMATS, extensions

Source: TypeAlias = str | os.PathLike[str] | BinaryIO


def name_of(source: Source) -> str:
    """Return the path of a file, or an open one's name."""
    if isinstance(source, str | os.PathLike):
        return str(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "file"


@contextmanager
def with_path(source: Source, form: str | None) -> Iterator[Path]:
    """Yield the path of a file, or of a copy of an open one.

    form: the extension of an open file whose name does not tell it. Errors give the open file's name.
    """
    if isinstance(source, str | os.PathLike):
        if form is not None:
            raise InvalidInput("format is for open files: the extension of a path gives its format.")
        yield path_of(source)
        return
    name = name_of(source)
    suffix = PurePath(name).suffix.lower() if form is None else f".{form.rpartition('.')[2].lower()}"
    if not hasattr(source, "read"):
        raise InvalidInput(f"path must be a path or an open file; got {type(source).__name__}.")
    if suffix not in FORMATS or FORMATS[suffix].is_folder:
        known = extensions().removesuffix(" .zarr")
        raise InvalidInput(f"an open file needs format, one of {known}; got {form!r} for {name!r}.")
    if isinstance(source.read(0), str):
        raise InvalidInput(f"an open file must be binary: open({name!r}, 'rb'); got text.")
    with tempfile.TemporaryDirectory(prefix="raybox-") as folder:
        path = Path(folder) / f"{PurePath(name).stem[:80]}{suffix}"  # the stem names some meshes
        with path.open("wb") as copy:
            shutil.copyfileobj(source, copy, 1 << 20)
        try:
            yield path
        except RayboxError as error:
            raise type(error)(str(error).replace(str(path), name)) from error
