"""Load object files into this process."""

from __future__ import annotations

from functools import cache
from typing import Any

from llvmlite import binding
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys

from raybox.compiler.jit.store import ObjectFile


def load(made: ObjectFile) -> int:
    """Return the address of a function. What it calls is loaded already."""
    _prepare(made.requires)
    engine = _engine(is_entry=bool(made.results))
    engine.add_object_file(binding.ObjectFileRef.from_data(made.code))
    engine.finalize_object()
    return int(engine.get_function_address(made.symbol))


@cache
def _engine(is_entry: bool) -> Any:
    """Return an engine of entries, or one of functions of `apart`, which entries call by symbols."""
    machine = binding.Target.from_default_triple().create_target_machine(opt=3)
    return binding.create_mcjit_compiler(binding.parse_assembly(""), machine)


def _prepare(names: tuple[str, ...]) -> None:
    """Define symbols of Numba's runtime, as far as they are needed: a missing one makes LLVM abort."""
    for prepare in (rtsys.initialize, lambda context: context.refresh()):
        if all(map(binding.address_of_symbol, names)):
            return
        prepare(cpu_target.target_context)
    missing = [name for name in names if not binding.address_of_symbol(name)]
    if missing:
        raise RuntimeError(f"this process does not define {', '.join(missing)}")
