"""The functions of arrays that the C module has, against those of NumPy in their place."""

import subprocess
import sys
from math import inf, nan

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import raybox as rb
from raybox import validation
from raybox.geometry import ray_input

_WITHOUT = """
import sys
sys.modules["raybox.compiler._calls"] = None
import numpy as np, raybox as rb
from raybox import validation
from raybox.compiler import calls
assert validation.freeze.__module__ == "raybox.validation" and calls.Entry.__module__.endswith("ctypes_calls")
scene = rb.Scene(rb.Boxes([[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [6, 1, 1]]))
for o, d in (([[0.0, 0, 0]], [[1.0, 0, 0]]), (np.zeros((3, 3)), np.ones((3, 3)) * [1, 0, 0])):
    hits = scene.nearest(rb.Rays(o, d))
    found = hits.index, hits.t, scene.count(rb.Rays(o, d))
    print(*(values.tolist() for values in found), hits.index.flags.writeable)
for bad in ([[0, 0, np.nan]], np.array([[0, 0, np.inf]])):
    try:
        rb.Rays(bad, np.array([[1.0, 0, 0]]))
    except rb.InvalidInput as error:
        print(error)
"""


def test_results_without_the_c_module_are_the_same():
    found = [
        subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True).stdout
        for text in (_WITHOUT, "\n".join(line for line in _WITHOUT.split("\n") if "_calls" not in line))
    ]
    assert found[0] == found[1]
    assert found[0].splitlines()[:2] == ["[0] [2.0] [2] False", "[0, 0, 0] [2.0, 2.0, 2.0] [2, 2, 2] False"]
    assert found[0].count("origins must be finite; 1 of 1 break this") == 2


numbers = st.sampled_from(
    [0.0, -0.0, 5e-324, -1.5, 1.75, 2.0**52 - 0.5, -(2.0**52), 1.7976931348623157e308, inf, -inf, nan]
)


@given(hnp.arrays(np.float64, hnp.array_shapes(min_dims=1, max_dims=3, max_side=9), elements=numbers))
def test_all_below_is_that_of_numpy(values):
    for limit in (inf, 2.0**52, 2.0):
        assert validation.all_below(limit, values) == bool((np.abs(values) < limit).all())
        assert validation.all_below(limit, np.zeros(3), values) == validation.all_below(limit, values)


@pytest.mark.parametrize("count", range(1, 40))
def test_every_number_is_tested(count):
    for place in range(count):
        for bad in (inf, -inf, nan):
            values = np.ones(count)
            values[place] = bad
            assert not validation.all_below(inf, values)
        assert validation.all_below(inf, np.full(count, 1.7976931348623157e308))


def test_first_rows_are_copies():
    one, two = np.arange(12).reshape(4, 3), np.arange(4.0)
    validation.freeze(one, two)
    for count in range(5):
        found = validation.first_rows(count, one, two)
        assert [values.tolist() for values in found] == [one[:count].tolist(), two[:count].tolist()]
        assert [values.dtype for values in found] == [one.dtype, two.dtype]
        assert all(values.flags.writeable and values.flags.c_contiguous for values in found)


IN_C = pytest.mark.skipif(
    validation.freeze.__module__ == "raybox.validation", reason="the C module is not built"
)


@IN_C
def test_wrong_arguments_of_the_c_module_are_refused():
    one, two = np.arange(12).reshape(4, 3), np.arange(4.0)
    for wrong in ((5, two), (-1, two), (2, one.T), (0, np.zeros(()))):
        with pytest.raises(ValueError, match="first_rows"):
            validation.first_rows(*wrong)
    for function, arguments in (
        (validation.first_rows, (1, [1])),
        (validation.freeze, ([1],)),
        (validation.all_below, (inf, [1.0])),
        (validation.all_below, (inf, np.zeros(3, np.float32))),
        (validation.all_below, (inf, np.zeros((3, 3))[:, 0])),
        (validation.all_below, ("a", two)),
    ):
        with pytest.raises(TypeError):
            function(*arguments)


def test_freeze_sets_arrays_read_only():
    arrays = np.zeros(3), np.zeros((2, 2), np.int32)
    assert validation.freeze(*arrays) is None
    assert not any(values.flags.writeable for values in arrays)


@given(hnp.arrays(np.float64, hnp.array_shapes(min_dims=1, max_dims=3, max_side=4), elements=numbers))
def test_finite_vectors_are_read_only_copies(values):
    for given_values in (values, values.T, values[::-1], values.astype(values.dtype.newbyteorder())):
        found = validation.finite_vectors(given_values.size + 1, given_values, given_values)
        valid = given_values.shape[-1] in (2, 3) and np.isfinite(given_values).all()
        if found is None:
            assert not valid or not given_values.dtype.isnative
            continue
        assert valid
        for copied in found:
            assert copied.tobytes() == np.ascontiguousarray(given_values, np.float64).tobytes()
            assert copied.shape == given_values.shape
            assert copied.flags.c_contiguous
            assert not copied.flags.writeable
            assert not np.shares_memory(copied, given_values)


@pytest.mark.parametrize(
    "pair",
    [
        (np.zeros((2, 3)), np.zeros((1, 3))),
        (np.zeros((2, 3)), np.zeros((2, 3), np.float32)),
        (np.zeros((2, 4)), np.zeros((2, 4))),
        (np.zeros(()), np.zeros(())),
        ([[0.0, 0, 0]], np.zeros((1, 3))),
        (np.ma.zeros((1, 3)), np.ma.zeros((1, 3))),
    ],
)
def test_other_vectors_are_left_to_the_checks(pair):
    assert validation.finite_vectors(1 << 20, *pair) is None


@pytest.mark.parametrize("count", [0, 1, 5, ray_input.LARGE // 3, ray_input.LARGE // 3 + 1])
def test_small_and_large_arrays_of_rays_are_copies(count):
    for dtype in (np.float64, np.float32):
        o, d = np.ones((count, 3), dtype), np.full((count, 3), 2, dtype)
        rays = rb.Rays(o, d)
        o[...], d[...] = 7, nan
        assert (rays.origins == 1).all()
        assert (rays.directions == 2).all()
        assert rays.origins.dtype == np.float64
        for values in (rays.origins, rays.directions):
            assert not values.flags.writeable
        if count:
            with pytest.raises(rb.InvalidInput, match="directions must be finite"):
                rb.Rays(o, d)


def test_lists_that_numpy_rounds_are_refused():
    for large in (2**53 + 1, 2**60 + 1):
        with pytest.raises(rb.InvalidInput, match="float64 holds exactly"):
            rb.Rays([[large, 0.5, 0.0]], [[1.0, 0.0, 0.0]])
    assert rb.Rays([[2**53, 0.5, 0.0]], [[1.0, 0.0, 0.0]]).origins[0, 0] == 2**53
