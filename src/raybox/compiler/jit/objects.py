"""Compile an entry point, with all that it calls, to one object file."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

from llvmlite import binding
from llvmlite.binding.value import StorageClass, Visibility
from numba import njit
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys

from raybox.compiler.decorators import FLAGS, SYMBOL_FLAGS, ApartFunction
from raybox.compiler.jit.linking import EntryCompiler
from raybox.compiler.jit.numba_types import external, register_overloads
from raybox.compiler.jit.store import ObjectFile
from raybox.compiler.jit.wrapper import add_symbol, add_wrapper, results_of
from raybox.compiler.target import compile_target, machine_for

_LINKED: list[Any] = []
"""Objects that are loaded: code goes with them."""


def compile_entry(function: Any, kinds: tuple[Any, ...], symbol: str) -> ObjectFile:
    """Return an entry point for arguments of Numba's types `kinds`."""
    with _uncollected():
        result = _compile(function, kinds, None, FLAGS)
        add_wrapper(result.target_context, result.library, result.fndesc, symbol)
        return _emit(result, symbol, results_of(result.fndesc.restype))


def compile_apart(made: ApartFunction) -> ObjectFile:
    """Return a function that compiled code calls by its symbol."""
    with _uncollected():
        signature = external(made).sig
        result = _compile(made.py_func, signature.args, signature.return_type, SYMBOL_FLAGS)
        add_symbol(result.target_context, result.library, result.fndesc, made.symbol)
        return _emit(result, made.symbol, "")


def _compile(function: Any, args: tuple[Any, ...], result: Any, flags: dict[str, Any]) -> Any:
    register_overloads()
    options = {"no_cfunc_wrapper": True, "no_cpython_wrapper": True, "pipeline_class": EntryCompiler}
    return njit(**options, **flags)(function)._compiler._compile_core(args, result)


def _emit(compiled: Any, symbol: str, results: str) -> ObjectFile:
    compiled.library.symbol = symbol
    compiled.library.finalize()
    module = compiled.library.module
    function = module.get_function(symbol)
    if not results:
        function.visibility = Visibility.hidden  # not exported by a library
    elif "windows" in compile_target().triple:
        function.storage_class = StorageClass.dllexport
    code = machine_for(compile_target()).emit_object(module)
    requires = (item.name for item in module.functions if item.is_declaration)
    return ObjectFile(symbol, results, tuple(n for n in requires if not n.startswith("llvm.")), code)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Disable the cyclic garbage collector, which would take a tenth of the time."""
    collects = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if collects:
            gc.enable()


def load(made: ObjectFile) -> int:
    """Return the address of a function. What it calls is loaded already."""
    library = binding.JITLibraryBuilder().add_object_img(made.code).add_current_process()
    for name, address in _addresses(made.requires).items():
        library.import_symbol(name, address)
    linked = library.export_symbol(made.symbol).link(_linker(), made.symbol)
    _LINKED.append(linked)
    return int(linked[made.symbol])


@cache
def _linker() -> Any:
    """Return a linker that allocates the sections of an object together.

    MCJIT allocates each where there is room, and ends Python if two are more than 2 GB apart: then the small
    code model cannot reach one from the other.
    """
    target = binding.Target.from_default_triple()
    machine = target.create_target_machine(opt=3, reloc="pic", codemodel="small")
    return binding.create_lljit_compiler(machine, use_jit_link=sys.platform != "win32")


def _addresses(names: tuple[str, ...]) -> dict[str, int]:
    """Return the addresses of symbols; raise RuntimeError if this process lacks one.

    Symbols of Numba's runtime are defined as far as they are needed.
    """
    for prepare in (None, rtsys.initialize, lambda context: context.refresh()):
        if prepare:
            prepare(cpu_target.target_context)
        found = {name: binding.address_of_symbol(name) for name in names}
        if all(found.values()):
            return found
    missing = [name for name, address in found.items() if not address]
    raise RuntimeError(f"this process does not define {', '.join(missing)}")
