"""Every contact with Numba and LLVM: decorators, code cache, linking, SIMD, structs."""
