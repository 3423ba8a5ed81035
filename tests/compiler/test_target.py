"""Instruction sets that code is compiled for, by processor and features, and when they are determined."""

import os
import platform
from unittest import mock

import pytest

from processes import output_of
from raybox.compiler import target

pytestmark = pytest.mark.jit

IS_X86 = platform.machine().lower() in {"x86_64", "amd64"}
SETS = {
    ("generic", ""): set(),
    ("x86-64-v2", ""): set(),
    ("sandybridge", ""): set(),  # AVX without AVX2: vectors of eight int32 are two
    ("bdver2", ""): {"fma"},
    ("haswell", ""): {"fma", "avx2"},
    ("haswell", "-fma"): {"avx2"},
    ("haswell", "-avx2"): {"fma"},
    ("generic", "+fma"): {"fma"},
    ("generic", "+avx2,+fma"): {"fma", "avx2"},
    ("generic", "+avx512f"): {"fma", "avx2", "avx512f"},  # each implies the ones before
    ("skylake-avx512", ""): {"fma", "avx2", "avx512f"},
    ("skylake-avx512", "-avx512f"): {"fma", "avx2"},
}


@pytest.mark.skipif(not IS_X86, reason="LLVM of Numba generates code for this machine's architecture alone")
@pytest.mark.parametrize(("processor", "features"), SETS)
def test_instruction_sets_are_those_of_generated_code(processor, features):
    own = target.compile_target()
    assert (
        target._instruction_sets(own._replace(processor=processor, features=features))
        == SETS[processor, features]
    )


def run(code, **environment) -> list[str]:
    """Return the words that code prints in a process with these variables."""
    own = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA_CPU")}
    with mock.patch.dict(os.environ, own, clear=True):
        return output_of("-c", code, **environment).split()


NAMES = """
from raybox.compiler.target import has
print(*(name for name in ("fma", "avx2", "avx512f") if has(name)))
"""


def test_the_processors_name_implies_its_features():
    """An empty list of features says nothing of them."""
    own = run(NAMES)
    assert run(NAMES, NUMBA_CPU_FEATURES="") == own
    if IS_X86:
        assert run(NAMES, NUMBA_CPU_NAME="generic") == []
        assert run(NAMES, NUMBA_CPU_NAME="haswell", NUMBA_CPU_FEATURES="") == ["fma", "avx2"]


QUERY = """
import numpy as np
import raybox as rb
from raybox.compiler import target

rng = np.random.default_rng(1)
scene = rb.Scene(rb.Boxes.from_centers(rng.random((500, 3)), 0.1))
rays = rb.Rays(rng.random((3000, 3)), rng.standard_normal((3000, 3)))
print(scene.occluded(rays).sum(), target._instruction_sets.cache_info().currsize)
"""


@pytest.mark.long
def test_stored_code_is_loaded_without_generating_any(tmp_path):
    first, again = (run(QUERY, RAYBOX_CACHE_DIR=str(tmp_path)) for _ in range(2))
    assert first[0] == again[0]
    assert 500 < int(first[0]) < 3000
    assert (first[1], again[1]) == ("1", "0")
