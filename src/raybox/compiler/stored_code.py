"""Store the machine code of an entry point, and load it without the compiler.

Numba stores LLVM's intermediate code too, for linking it into other code, and before it loads anything, it
imports and sorts all that it might need to compile. Entry points need neither: loading takes a tenth of the
time.
"""

from typing import Any, NamedTuple

import llvmlite.binding
from numba.core import compiler
from numba.core.runtime import rtsys


class MachineCode(NamedTuple):
    """The machine code of a library."""

    name: str
    code: bytes
    defined: tuple[str, ...]
    """Names of its functions that Python or Numba look up."""
    required: tuple[str, ...]
    """Names that the process must define."""


def reduce(cres: Any) -> Any:
    """Return what is stored of the result of a compilation."""
    cres.fndesc.typemap = cres.fndesc.calltypes = None  # of use to the compiler alone, and large
    environments = tuple(cres._find_referenced_environments())
    code = _code_of(cres.library, cres.fndesc)
    return code, cres.fndesc, cres.environment, cres.signature, cres.reload_init, environments


def rebuild(target_context: Any, payload: Any) -> Any:
    """Return a result that can be called; None if this process lacks a function that it calls."""
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
    """Return whether the process defines some names, once prepared; LLVM would end it otherwise."""
    for prepare in (rtsys.initialize, lambda context: context.refresh()):
        if _is_defined(names):
            return True
        prepare(target_context)
    return _is_defined(names)


def _is_defined(names: tuple[str, ...]) -> bool:
    return all(map(llvmlite.binding.address_of_symbol, names))
