"""Open files, and files compressed by gzip, as files with a path, as readers need them."""

import gzip
import os
import shutil
import tempfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path, PurePath
from typing import IO, BinaryIO, TypeAlias

from raybox.errors import InvalidInput, RayboxError
from raybox.io.formats.common import PACKED, extension_problem, file_error, path_of, reader_errors, suffix_of
from raybox.io.formats.foreign_files import EXTENSIONS
from raybox.io.formats.mesh_parts import cut_off
from raybox.io.formats.table import FORMATS, extensions, first_bytes

Source: TypeAlias = str | os.PathLike[str] | BinaryIO
_GROWTH = 200  # times its size: numbers as text grow to less than 30 times, a bomb to 1,000 times
_SMALL = 1 << 26  # bytes that any file may have once it is unpacked
_BLOCK = 1 << 20


def name_of(source: Source) -> str:
    """Return the path of a file, or an open one's name."""
    if isinstance(source, str | os.PathLike):
        return str(source)
    name = getattr(source, "name", None)
    return name if isinstance(name, str) else "file"


@contextmanager
def with_path(source: Source, form: str | None) -> Iterator[Path]:
    """Yield the path of a file, or of a copy of a compressed or an open one; form: its extension."""
    if isinstance(source, str | os.PathLike):
        if form is not None:
            raise InvalidInput("format is for open files: the extension of a path gives its format.")
        with _unpacked(path_of(source)) as path:
            yield path
        return
    if not hasattr(source, "read"):
        raise InvalidInput(f"path must be a path or an open file; got {type(source).__name__}.")
    name = name_of(source)
    given = PurePath(name if form is None else f"{PurePath(name).stem}.{form.lower().removeprefix('.')}")
    if suffix_of(given) not in FORMATS or FORMATS[suffix_of(given)].is_folder:
        known = extensions().removesuffix(" .zarr")
        raise InvalidInput(f"an open file needs format, one of {known}; got {form!r} for {name!r}.")
    if isinstance(source.read(0), str):
        raise InvalidInput(f"an open file must be binary: open({name!r}, 'rb'); got text.")
    write = lambda copy: shutil.copyfileobj(source, copy, _BLOCK)  # noqa: E731
    with _copy(given, name, write) as file, _unpacked(file) as path:
        yield path


@contextmanager
def _copy(name: PurePath, shown: str, write: Callable[[IO[bytes]], None]) -> Iterator[Path]:
    """Yield the path of a temporary file that `write` writes; errors about it give another name."""
    with tempfile.TemporaryDirectory(prefix="raybox-") as folder:
        ending = "".join(name.suffixes[-2:]) if name.suffix.lower() == PACKED else name.suffix
        stem = name.name.removesuffix(ending)[:80]  # it names some meshes
        path = Path(folder) / f"{stem}{ending.lower()}"
        try:
            with path.open("wb") as copy:
                write(copy)
            yield path
        except RayboxError as error:
            raise type(error)(str(error).replace(str(path), shown)) from error


@contextmanager
def _unpacked(path: Path) -> Iterator[Path]:
    """Yield the path of a file, or of an unpacked copy if it ends in .gz."""
    suffix = suffix_of(path)
    if path.suffix.lower() != PACKED:
        yield path
        return
    if suffix not in FORMATS or FORMATS[suffix].is_folder or suffix == ".gltf":  # its buffers are next to it
        way_out = EXTENSIONS.get(suffix, "decompress it (gunzip), and name it by its format")
        raise file_error(path, extension_problem(Path(f"a{suffix}{PACKED}")), way_out)
    with _copy(path.with_suffix(""), str(path), lambda copy: _unpack(path, copy)) as copy:
        yield copy


def _unpack(path: Path, copy: IO[bytes]) -> None:
    """Write the content of a file that gzip compressed; raise if it is cut off, damaged, or a bomb."""
    with reader_errors(path, "gzip"):
        if not first_bytes(path).startswith(b"\x1f\x8b"):
            raise file_error(path, "is not compressed by gzip", f"rename it to end in {suffix_of(path)}")
        most = max(_SMALL, _GROWTH * path.stat().st_size)
        try:
            with gzip.open(path) as file:
                while block := file.read(_BLOCK):
                    copy.write(block)
                    if copy.tell() > most:
                        problem = f"is larger than {most:,} bytes once decompressed, {_GROWTH} times its size"
                        raise file_error(path, problem, "if it is no bomb, decompress it yourself (gunzip)")
        except EOFError as error:
            raise cut_off(path, f"byte {path.stat().st_size}") from error
        except (zlib.error, gzip.BadGzipFile) as error:
            raise file_error(path, "its gzip data are damaged", "copy or download it again") from error
