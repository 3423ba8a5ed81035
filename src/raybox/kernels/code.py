"""Compiled loops as they lie on disk: machine code, and which names are in it.

Numba keeps intermediate code beside it, for linking it into other code, and before it loads anything, it
imports and sorts all that it might need to compile. Loops that Python calls need neither: of the 0.4 s that
loading the loops of `Scene` and `nearest` took, a tenth is left (measured).
"""

from typing import Any, NamedTuple

import llvmlite.binding
from numba.core import compiler
from numba.core.caching import CompileResultCacheImpl
from numba.core.runtime import rtsys


class Code(NamedTuple):
    """The machine code of a library."""

    name: str
    code: bytes
    defined: tuple[str, ...]  # names in it that may be asked for
    wanted: tuple[str, ...]  # names that the process has to know


class Kept(CompileResultCacheImpl):
    """How the result of a compilation is kept, and made of what is kept."""

    def reduce(self, cres: Any) -> Any:
        """Return what is kept of a result."""
        cres.fndesc.typemap = cres.fndesc.calltypes = None  # of use to the compiler alone, and large
        environments = tuple(cres._find_referenced_environments())
        code = _code_of(cres.library, cres.fndesc)
        return code, cres.fndesc, cres.environment, cres.signature, cres.reload_init, environments

    def rebuild(self, target_context: Any, payload: Any) -> Any:
        """Return a result, ready to be called; None where this process has not got what it calls."""
        code, fndesc, environment, signature, reload_init, environments = payload
        for function in reload_init:
            function()
        if not _make_known(code.wanted, target_context):
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


def _code_of(library: Any, fndesc: Any) -> Code:
    module = library._final_module
    items = [*module.functions, *module.global_variables]
    entries = {fndesc.llvm_func_name, fndesc.llvm_cpython_wrapper_name, fndesc.llvm_cfunc_wrapper_name}
    defined = tuple(entries & {item.name for item in items if not item.is_declaration})
    wanted = tuple(item.name for item in items if item.is_declaration and not item.name.startswith("llvm."))
    return Code(library.name, library._get_compiled_object(), defined, wanted)


def _load(code: Code, codegen: Any) -> Any:
    library = codegen.create_library(code.name)
    library.enable_object_caching()
    library._set_compiled_object(code.code)
    library._finalize_final_module()
    codegen._engine._defined_symbols.update(code.defined)
    return library


def _make_known(names: tuple[str, ...], target_context: Any) -> bool:
    """See that the process knows all of some names: if not, LLVM would end it."""
    for prepare in (rtsys.initialize, lambda context: context.refresh()):
        if _known(names):
            return True
        prepare(target_context)
    return _known(names)


def _known(names: tuple[str, ...]) -> bool:
    return all(map(llvmlite.binding.address_of_symbol, names))
