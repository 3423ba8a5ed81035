"""The instructions of compiled code, by the machine code that LLVM generates for a few small functions.

The list of features that Numba passes to LLVM does not say it: with `NUMBA_CPU_FEATURES=""` it is empty, and
the processor's name implies them; an instruction set also implies others. Only code that is compiled here
depends on the result, which follows from the processor's name, the list and LLVM's version: the key of stored
code (`raybox.compiler.jit.store`) covers all three.
"""

from __future__ import annotations

import re
from functools import cache
from typing import NamedTuple

from raybox.compiler.llvm_ir import binding

_PROBES = """
define void @one(ptr %p) {
  %x = load <8 x float>, ptr %p
  %y = call <8 x float> @llvm.fma.v8f32(<8 x float> %x, <8 x float> %x, <8 x float> %x)
  store <8 x float> %y, ptr %p
  %u = load <4 x double>, ptr %p
  %v = call <4 x double> @llvm.fma.v4f64(<4 x double> %u, <4 x double> %u, <4 x double> %u)
  store <4 x double> %v, ptr %p
  ret void
}
define void @two(ptr %p) {
  %x = load <8 x i32>, ptr %p
  %y = sub <8 x i32> zeroinitializer, %x
  store <8 x i32> %y, ptr %p
  ret void
}
define void @three(ptr %p) {
  %x = load <16 x float>, ptr %p
  %y = fadd <16 x float> %x, %x
  store <16 x float> %y, ptr %p
  ret void
}
declare <8 x float> @llvm.fma.v8f32(<8 x float>, <8 x float>, <8 x float>)
declare <4 x double> @llvm.fma.v4f64(<4 x double>, <4 x double>, <4 x double>)
"""
_LIBRARY_CALL = re.compile(r"(?<![a-z])fmaf?(?![a-z0-9])")  # of the C library: also "_fmaf", "fma@PLT"
_SIGNS = {"avx2": re.compile(r"vpsubd\s.*%ymm"), "avx512f": re.compile(r"vaddps\s.*%zmm")}


class CodeTarget(NamedTuple):
    """What code is compiled for, in LLVM's words."""

    triple: str
    processor: str
    features: str


def compile_target() -> CodeTarget:
    """Return what this process compiles for."""
    from numba.core.registry import cpu_target

    return CodeTarget(*cpu_target.target_context.codegen().magic_tuple())


def machine_for(target: CodeTarget) -> binding.TargetMachine:
    """Return LLVM's generator of code for a target, for object files that are linked into libraries."""
    return binding.Target.from_triple(target.triple).create_target_machine(
        cpu=target.processor, features=target.features, opt=3, reloc="pic", codemodel="small"
    )


@cache
def has(instructions: str) -> bool:
    """Return whether compiled code may use an instruction set: "fma", "avx2" or "avx512f"."""
    return instructions in _instruction_sets(compile_target())


@cache
def _instruction_sets(target: CodeTarget) -> frozenset[str]:
    """Return the names of instruction sets that LLVM uses for a processor with these features."""
    found = binding.Target.from_triple(target.triple)
    machine = found.create_target_machine(cpu=target.processor, features=target.features)
    code = machine.emit_assembly(binding.parse_assembly(_PROBES))
    found = {name for name, sign in _SIGNS.items() if sign.search(code)}
    return frozenset(found if _LIBRARY_CALL.search(code) else found | {"fma"})
