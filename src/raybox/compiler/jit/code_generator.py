"""Numba's code generator for another processor or system than this one."""

from typing import Any

from llvmlite import binding
from numba.core.codegen import JITCPUCodegen
from numba.core.registry import cpu_target
from numba.core.runtime import rtsys

from raybox.compiler.target import CodeTarget, machine_for


def compile_for(target: CodeTarget) -> None:
    """Make Numba compile for a target from now on; this process cannot run that code.

    Raises
    ------
    RuntimeError
        If this process has compiled before.
    """
    if rtsys._init:
        raise RuntimeError("this process has compiled for its own processor already; start a new one")
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    cpu_target.target_context._internal_codegen = _TargetCodegen(target)


class _NoEngine:
    """In the place of Numba's engine, which loads code into this process: nothing is loaded."""

    def __getattr__(self, _name: str) -> Any:
        return lambda *_args, **_options: 0


class _TargetCodegen(JITCPUCodegen):
    """A code generator for a target. It has no engine."""

    def __init__(self, target: CodeTarget) -> None:
        self._target = target
        super().__init__("raybox")

    def _init(self, _module: Any) -> None:
        machine = machine_for(self._target)
        self._tm, self._tm_features, self._engine = machine, self._target.features, _NoEngine()
        self._target_data, self._data_layout = machine.target_data, str(machine.target_data)
        self._loopvect, self._opt_level = False, 0  # as Numba optimizes for this processor

    def _create_empty_module(self, name: str) -> Any:
        module = super()._create_empty_module(name)
        module.triple = self._target.triple
        return module

    def magic_tuple(self) -> CodeTarget:
        """Return what code is compiled for."""
        return self._target

    def set_env(self, _name: str, _environment: Any) -> None:
        """Do nothing: Numba would write an address into code that was loaded."""
