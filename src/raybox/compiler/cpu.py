"""Instruction sets of the machine that Numba compiles for."""

from functools import cache

from numba.core.registry import cpu_target


@cache
def has(instructions: str) -> bool:
    """Return whether the machine has an instruction set, by LLVM's name: "avx2", "avx512f"."""
    *_, features = cpu_target.target_context.codegen().magic_tuple()
    return f"+{instructions}" in features.split(",")
