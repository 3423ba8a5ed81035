"""Build libraries of kernels: ``python -m raybox.kernels.build v3 v4``.

Each line of `kernels.txt` becomes an object file (`raybox.compiler.jit`); these are linked with `runtime.c`
into one library a level, and a manifest says what it holds and of which sources it was made. Objects are
stored as all compiled code is, so that a second build compiles only what an edit has changed. The same
sources give the same bytes.

Everything that a build needs is imported, and every line is checked, before the first kernel is compiled.
"""

import argparse
import importlib
import multiprocessing
import os
import re
import sys
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from inspect import signature
from pathlib import Path
from pkgutil import iter_modules
from tempfile import TemporaryDirectory
from typing import NamedTuple

from raybox.compiler import jit
from raybox.compiler.jit.code_generator import compile_for
from raybox.compiler.jit.compile import apart_object, object_of
from raybox.compiler.jit.lines import HOOKS, ListedEntry, class_names, expanded, named_tuples
from raybox.compiler.jit.store import ObjectFile
from raybox.compiler.jit.struct_type import types_of
from raybox.compiler.kinds import without_marks, writable_arrays
from raybox.compiler.library import FOLDER, MANIFEST, Entries, LibraryManifest, stamp, usable_levels
from raybox.compiler.target import CodeTarget
from raybox.kernels.platforms import PLATFORMS, BuildError, Platform, compile_c, link, native
from raybox.kernels.symbols import imported
from raybox.store import checksum, record

MAX_BYTES = 6_000_000
_LINE = re.compile(r"(raybox(?:\.\w+)*)\.(\w+)\((.*)\)")
_VALUE = r"(?:[a-z]\d:\dr?|[ifgbn])"
_TUPLE = re.compile(rf"[\w.]*\((?:{_VALUE}(?:,{_VALUE})*)?\)")


class Line(NamedTuple):
    """A line of the list: an entry point, and the kinds of its arguments."""

    module: str
    function: str
    kinds: str

    @property
    def entry(self) -> str:
        """Its name in a manifest."""
        return f"{self.module}.{self.function}({without_marks(self.kinds)})"

    @property
    def writable(self) -> int:
        """Which arrays must be writable, as bits."""
        return writable_arrays(self.kinds)


def parse(text: str) -> Line:
    """Return a line of the list."""
    found = _LINE.fullmatch(text)
    kinds = found[3] if found else "?"
    while _TUPLE.search(kinds):
        kinds = _TUPLE.sub("n", kinds)
    if not found or not re.fullmatch(rf"(?:{_VALUE}(?:,{_VALUE})*)?", kinds):
        raise BuildError(f"a line of kernels.txt is module.function(kinds of arguments); got {text!r}")
    return Line(*found.groups())


def find_entry(line: Line) -> ListedEntry:
    """Return what a line names in the modules that are imported; raise `BuildError` if they lack it."""
    function = getattr(getattr(sys.modules[line.module], line.function, None), "__wrapped__", None)
    if function is None:
        raise BuildError(f"{line.module} has no entry {line.function}")
    classes, names = named_tuples(), class_names(line.kinds)
    if missing := sorted(names - classes.keys()):
        raise BuildError(f"raybox has no named tuple {', '.join(missing)}")
    return ListedEntry(function, line.kinds, {name: classes[name] for name in names})


def check(lines: list[Line]) -> None:
    """Import what kernels are compiled from; raise `BuildError` if a line names what is not there."""
    _import_modules(lines)
    problems = [f"{line.entry}: {problem}" for line in lines if (problem := _problem(line))]
    if problems:
        raise BuildError("\n".join(["kernels.txt has lines that fit no entry of raybox:", *problems]))


def _problem(line: Line) -> str:
    """Return why a line cannot be compiled; an empty text if it can."""
    try:
        entry = find_entry(line)
        signature(entry.function).bind(*types_of(line.kinds, entry.classes))
    except (BuildError, TypeError) as error:
        return str(error)
    return ""


def _import_modules(lines: list[Line]) -> None:
    """Import the modules of lines, all hooks of queries, and the compiler."""
    compilers = (info.name for info in iter_modules(jit.__path__, f"{jit.__name__}."))
    for name in [*sorted({*HOOKS, *(line.module for line in lines)}), *compilers]:
        try:
            importlib.import_module(name)
        except ImportError as error:
            raise BuildError(f"{name}, of which kernels are compiled, cannot be imported: {error}") from error


def build(levels: Iterable[str], built_for: Platform, folder: Path, lines: list[Line]) -> None:
    """Write a library and a manifest into a folder for each level."""
    check(lines)
    folder.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as name:
        runtime = compile_c(FOLDER / "runtime.c", built_for, Path(name))  # a C compiler is there
        for level in levels:
            path = built_for.library(folder, level)
            made, apart, sources = _compile(built_for.target(level), lines)
            objects = sorted({one.symbol: one.code for one in [*made, *apart]}.items())
            files = [Path(name, f"{k:04}.o") for k in range(len(objects))]
            for file, (_, code) in zip(files, objects, strict=True):
                file.write_bytes(code)
            link([*files, runtime], built_for, path)
            entries = {
                line.entry: (one.symbol, one.results, line.writable)
                for line, one in zip(lines, made, strict=True)
            }
            _write_manifest(path, built_for, sources, entries)
            print(f"{path}: {len(objects)} kernels, {path.stat().st_size:,} bytes", flush=True)


def _write_manifest(path: Path, built_for: Platform, sources: list[str], entries: Entries) -> None:
    """Check a library, and write what it must be and what it has."""
    content = path.read_bytes()
    _check(path, content, built_for)
    manifest = LibraryManifest(len(content), checksum.of_bytes(content), stamp(sources), sources, entries)
    path.with_suffix(".json").write_bytes(record.encode(MANIFEST, manifest._asdict()))


class _Compiled(NamedTuple):
    """What is linked into a library."""

    lines: list[ObjectFile]
    apart: list[ObjectFile]
    sources: list[str]


def _compile(target: CodeTarget, lines: list[Line]) -> _Compiled:
    """Return the object files of lines, compiled by a process for each core."""
    os.environ.update(RAYBOX_LEVEL="jit", NUMBA_DISABLE_INTEL_SVML="1")  # for the new processes
    with ProcessPoolExecutor(
        mp_context=multiprocessing.get_context("spawn"), initializer=_start, initargs=(target, lines)
    ) as pool:
        sources = pool.submit(_sources).result()  # first: what a compilation imports depends on the store
        # Neighbours in the list share callees, which a process compiles once. The last lines take longest.
        chunk = max(1, len(lines) // (8 * (os.cpu_count() or 1)))
        made = list(pool.map(_compile_line, reversed(lines), chunksize=chunk))[::-1]
        names = sorted({name for one in made for name in one.requires if "." in name})
        apart = list(pool.map(apart_object, names))
        return _Compiled(made, apart, sources)


def _start(target: CodeTarget, lines: list[Line]) -> None:
    """Prepare a process to compile for a target; all hooks of queries are imported before."""
    _import_modules(lines)
    compile_for(target)


def _compile_line(line: Line) -> ObjectFile:
    """Return the object file of a line."""
    return object_of(*find_entry(line))


def _sources() -> list[str]:
    """Return the modules in this process that wheels have, by their paths in the package."""
    return sorted(
        Path(module.__file__).relative_to(FOLDER.parent).as_posix()
        for name, module in sys.modules.items()
        if name.startswith("raybox.") and module.__file__ and not name.startswith("raybox.kernels")
    )


def _check(path: Path, content: bytes, built_for: Platform) -> None:
    """Compare what a library imports, and its size, with what is allowed."""
    allowed = re.compile(built_for.system.imports)
    foreign = sorted(name for name in imported(content) if not allowed.fullmatch(name))
    if foreign:
        raise BuildError(f"{path} imports {', '.join(foreign)}; allowed: {allowed.pattern}")
    if len(content) > MAX_BYTES:
        raise BuildError(f"{path} has {len(content):,} bytes; at most {MAX_BYTES:,}")


def _check_again(levels: list[str], built_for: Platform, folder: Path, lines: list[Line]) -> None:
    """Build again, with nothing stored, and compare the bytes."""
    with TemporaryDirectory() as name:
        os.environ["RAYBOX_CACHE_DIR"] = str(Path(name, "cache"))
        build(levels, built_for, Path(name), lines)
        for level in levels:
            for path in (library := built_for.library(folder, level), library.with_suffix(".json")):
                if path.read_bytes() != Path(name, path.name).read_bytes():
                    raise BuildError(f"{path}: a second build has other bytes")
    print("a second build has the same bytes")


def main(arguments: list[str]) -> None:
    """Build what the command line says."""
    parser = argparse.ArgumentParser("raybox.kernels.build", description="Build libraries of kernels.")
    parser.add_argument(
        "levels",
        nargs="+",
        help="levels of processors: v2, v3, v4; for ARM, generic; native: the highest here",
    )
    parser.add_argument("--target", default=native(), help=f"platform: {', '.join(PLATFORMS)}")
    parser.add_argument("--into", type=Path, help="folder (default: the package, for this platform)")
    parser.add_argument("--lines", type=Path, default=FOLDER / "kernels.txt", help="list of kernels")
    parser.add_argument("--check", action="store_true", help="build twice, and compare the bytes")
    options = parser.parse_args(arguments)
    if options.target not in PLATFORMS:
        parser.error(f"--target is one of {', '.join(PLATFORMS)}; got {options.target!r}")
    built_for = PLATFORMS[options.target]
    if options.levels == ["native"] and options.target == native():
        options.levels = usable_levels()[-1:] or parser.error("this processor has none of the levels")
    for level in options.levels:
        if level not in built_for.levels:
            parser.error(f"a level of {options.target} is {' or '.join(built_for.levels)}; got {level!r}")
    folder = options.into or (FOLDER if options.target == native() else Path("build", options.target))
    try:
        lines = list(map(parse, expanded(options.lines.read_text(encoding="utf-8"))))
        build(options.levels, built_for, folder, lines)
        if options.check:
            _check_again(options.levels, built_for, folder, lines)
    except BuildError as error:
        sys.exit(f"error: {error}")


if __name__ == "__main__":
    main(sys.argv[1:])
