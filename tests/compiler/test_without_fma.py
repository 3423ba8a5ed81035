"""Results of code without fused operations, or of other vectors, equal those of this processor's code."""

import os
import platform
import sys
from pathlib import Path

import numpy as np
import pytest

import target_sweep
from processes import output_of, python
from raybox.compiler.target import has
from raybox.traversal.ray_setup import at_a_time

pytestmark = [pytest.mark.long, pytest.mark.jit]
TESTS = Path(__file__).parents[1]


def results_of_a_process(folder, code="", **environment):
    """Return the results of a process that runs code first, and stores machine code in a folder."""
    paths = [*(str(each) for each in TESTS.iterdir() if each.is_dir()), *sys.path]
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    path = folder / "results.npz"
    code += f"import target_sweep; target_sweep.write({str(path)!r})"
    output_of("-c", code, RAYBOX_CACHE_DIR=str(folder / "code"), **environment)
    with np.load(path) as got:
        return dict(got)


@pytest.fixture(scope="module")
def generic(tmp_path_factory):
    """Return the results of a processor of which nothing is known, and the folder of its code."""
    folder = tmp_path_factory.mktemp("generic")
    return results_of_a_process(folder, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES=""), folder / "code"


def assert_same(got):
    """Assert that results, of which some are of packets, are those of this process."""
    own = target_sweep.results()
    assert min(each.pop("batches with packets") for each in (own, got)) >= len(target_sweep.QUERIES)
    assert own.keys() == got.keys()
    for name, array in own.items():
        assert array.dtype == got[name].dtype, name
        assert array.tobytes() == got[name].tobytes(), name
    assert got["random: nearest index"].size >= target_sweep.MANY


def test_results_do_not_depend_on_fused_operations(generic):
    got = generic[0].copy()
    assert not got.pop("fused") or platform.machine().lower() not in {"x86_64", "amd64"}
    assert got.pop("width") == 8
    assert_same(got)


OTHER_WIDTH = """
import sys
from raybox.traversal import ray_setup
assert "raybox.traversal.node_test" not in sys.modules  # it imports the function
own = ray_setup.at_a_time
ray_setup.at_a_time = lambda: ray_setup.LANES + 8 - own()
"""


def test_results_do_not_depend_on_the_width_of_vectors(tmp_path):
    """LLVM splits vectors of sixteen for processors without AVX-512; those with it also execute eights."""
    got = results_of_a_process(tmp_path, OTHER_WIDTH)
    assert {int(got.pop("width")), at_a_time()} == {8, 16}
    assert got.pop("fused") == has("fma")
    assert_same(got)


def test_code_without_fused_operations_calls_no_library_for_them(generic):
    """A symbol that machine code needs is a text in its file."""
    _, code = generic
    files = list(code.rglob("*.o"))
    assert sum("traverse" in file.name for file in files) > 6
    assert sum(b"memset\0" in file.read_bytes() for file in files) > 6
    for file in files:
        content = file.read_bytes()
        assert b"\0fmaf\0" not in content, file.name
        assert b"\0fma\0" not in content, file.name


MARGINS = (
    "traversal/test_stream.py::test_packed_rays_lose_no_box_and_are_seldom_loose",
    "traversal/test_stream.py::test_slabs_of_distant_rays_lose_no_box",
    "traversal/test_stream.py::test_roundings_that_add_up_stay_within_margins",
    "traversal/test_stream.py::test_the_growth_exceeds_all_relative_errors",
    "queries/test_box_sets.py::test_results_are_those_of_fractions[close-streams-count]",
    "queries/test_box_sets.py::test_results_are_those_of_fractions[close-streams-nearest]",
    "queries/test_box_sets.py::test_results_are_those_of_fractions[map-one by one-nearest]",
    "queries/test_box_sets.py::test_results_are_those_of_fractions[map-packets-nearest]",
    "compiler/test_simd.py::test_operations_on_lanes_equal_those_of_numpy",
)


def test_margins_without_fused_operations_lose_no_box():
    """These tests compare margins with Fractions: here for the code of a processor without the operations."""
    command = ["-m", "pytest", "-q", "-n", "0", *(TESTS / name for name in MARGINS)]
    done = python(*command, NUMBA_CPU_NAME="generic", NUMBA_CPU_FEATURES="")
    assert done.returncode == 0, done.stdout[-4000:]
    assert "17 passed" in done.stdout
