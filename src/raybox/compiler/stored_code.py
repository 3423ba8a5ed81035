"""Store the machine code of an entry point, and load it without the compiler.

Numba also stores LLVM IR, for linking, and before loading it imports and initializes everything that
compiling needs. Entry points need neither: loading takes a tenth of the time.
"""

from typing import Any, NamedTuple

import llvmlite.binding
from numba.core import compiler
from numba.core.runtime import rtsys


class MachineCode(NamedTuple):
    """Machine code of a library, with the names it defines and requires."""

    name: str
    code: bytes
    defined: tuple[str, ...]
    """Functions that Python or Numba look up by name."""
    required: tuple[str, ...]
    """Names that the process must define."""


def reduce(cres: Any) -> Any:
    """Return the picklable part of a compile result."""
    cres.fndesc.typemap = cres.fndesc.calltypes = None  # large, and only used by the compiler
    environments = tuple(cres._find_referenced_environments())
    code = _code_of(cres.library, cres.fndesc)
    return code, cres.fndesc, cres.environment, cres.signature, cres.reload_init, environments


def rebuild(target_context: Any, payload: Any) -> Any:
    """Return a callable compile result.

    None if this process lacks a required symbol.
    """
    code, fndesc, environment, signature, reload_init, environments = payload
    for function in reload_init:
        function()
    if not _define(code.required, target_context):
        return None
    library = _load(code, target_context.codegen())
    for one in environments:
        library.codegen.set_env(one.env_name, one)
    return compiler.compile_result(
        target_context=target_context,
        typing_context=target_context.typing_context,
        library=library,
        environment=environment,
        entry_point=target_context.get_executable(library, fndesc, environment),
        fndesc=fndesc,
        type_annotation="",
        signature=signature,
        objectmode=False,
        lifted=(),
        reload_init=reload_init,
        referenced_envs=environments,
    )


def _code_of(library: Any, fndesc: Any) -> MachineCode:
    module = library._final_module
    items = [*module.functions, *module.global_variables]
    entries = {fndesc.llvm_func_name, fndesc.llvm_cpython_wrapper_name, fndesc.llvm_cfunc_wrapper_name}
    defined = tuple(entries & {item.name for item in items if not item.is_declaration})
    required = tuple(item.name for item in items if item.is_declaration and not item.name.startswith("llvm."))
    return MachineCode(library.name, library._get_compiled_object(), defined, required)


def _load(code: MachineCode, codegen: Any) -> Any:
    library = codegen.create_library(code.name)
    library.enable_object_caching()
    library._set_compiled_object(code.code)
    library._finalize_final_module()
    codegen._engine._defined_symbols.update(code.defined)
    return library


def _define(names: tuple[str, ...], target_context: Any) -> bool:
    """Return whether the process defines these symbols.

    A missing one makes LLVM abort.

    Numba's runtime and context are initialized only as far as needed.
    """
    for prepare in (rtsys.initialize, lambda context: context.refresh()):
        if _is_defined(names):
            return True
        prepare(target_context)
    return _is_defined(names)


def _is_defined(names: tuple[str, ...]) -> bool:
    return all(map(llvmlite.binding.address_of_symbol, names))
