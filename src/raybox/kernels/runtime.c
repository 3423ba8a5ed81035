/* What kernels call at run time: functions of libm as Numba defines them, and memory that Numba counts. */
#include <math.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#if defined(_WIN32)
#define HIDDEN
int _fltused = 0; /* LLVM refers to it where code uses floats */
#else
#define HIDDEN __attribute__((visibility("hidden")))
#endif

HIDDEN double numba_frexp(double x, int *exponent)
{
    if (isfinite(x) && x != 0.0)
        return frexp(x, exponent);
    *exponent = 0;
    return x;
}

HIDDEN double numba_ldexp(double x, int exponent)
{
    return exponent == 0 || x == 0.0 || !isfinite(x) ? x : ldexp(x, exponent);
}

HIDDEN double numba_nextafter(double x, double to) { return nextafter(x, to); }

/* The head of counted memory; compiled code counts references in its first word, and reads `data`. */
typedef struct {
    size_t references;
    void (*destructor)(void *, size_t, void *);
    void *destructor_info;
    void *data;
    size_t size;
    void *allocator;
} MemInfo;

/* By malloc: aligned_alloc of glibc takes longer for the few words of a big integer. */
HIDDEN MemInfo *NRT_MemInfo_alloc_aligned(size_t size, unsigned alignment)
{
    MemInfo *info = malloc(sizeof(MemInfo) + size + alignment);
    if (info != NULL) {
        uintptr_t end = (uintptr_t)(info + 1), rest = alignment ? end % alignment : 0;
        MemInfo made = {1, NULL, NULL, (char *)(end + (rest ? alignment - rest : 0)), size, NULL};
        *info = made;
    }
    return info;
}

HIDDEN MemInfo *NRT_MemInfo_alloc_safe_aligned(size_t size, unsigned alignment)
{
    return NRT_MemInfo_alloc_aligned(size, alignment);
}

HIDDEN MemInfo *NRT_MemInfo_alloc_aligned_external(size_t size, unsigned alignment, void *allocator)
{
    (void)allocator;
    return NRT_MemInfo_alloc_aligned(size, alignment);
}

HIDDEN void NRT_MemInfo_call_dtor(MemInfo *info) { free(info); }

/* Arrays of kernels are C-ordered: any other shape of the same size is. */
HIDDEN int numba_attempt_nocopy_reshape(
    intptr_t dimensions, const intptr_t *shape, const intptr_t *strides, intptr_t new_dimensions,
    const intptr_t *new_shape, intptr_t *new_strides, intptr_t itemsize, int is_fortran)
{
    intptr_t stride = itemsize;
    (void)dimensions, (void)shape, (void)strides, (void)is_fortran;
    for (intptr_t k = new_dimensions - 1; k >= 0; k--) {
        new_strides[k] = stride;
        stride *= new_shape[k];
    }
    return 1;
}
