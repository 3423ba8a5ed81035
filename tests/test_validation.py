"""Validation of input: accepted and refused values, error texts; input is never changed."""

from decimal import Decimal
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from raybox import InvalidInput, validation

pytestmark = pytest.mark.core

WIDE = np.dtype(np.longdouble).itemsize > 8


class Exporter:
    """A tensor of another library: DLPack and nothing else."""

    def __init__(self, values: np.ndarray) -> None:
        self.values = values

    def __dlpack__(self, **options: object) -> object:
        return self.values.__dlpack__(**options)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.values.__dlpack_device__()


class Stubborn:
    """A tensor whose conversion to an array raises an error."""

    def __init__(self, error: Exception) -> None:
        self.error = error

    def __array__(self, *_args: object, **_options: object) -> np.ndarray:
        raise self.error


def refusal(value: object) -> str:
    with pytest.raises(InvalidInput) as caught:
        validation.floats(value, "origins")
    return str(caught.value)


@given(
    hnp.arrays(
        st.sampled_from(["f2", "f4", "f8", ">f8", "<f4", "i1", "u2", "i4", "u4", "?"]),
        hnp.array_shapes(min_dims=0, max_dims=3, min_side=0),
        elements=None,
    ),
    st.sampled_from([np.asarray, np.asfortranarray, lambda a: a.tolist(), np.flip]),
)
def test_exact_numbers_are_converted_in_new_memory(values, dressed):
    came = dressed(values)
    found = validation.floats(came, "x")
    assert found.dtype == np.float64
    assert found.flags.c_contiguous
    assert found.flags.writeable
    assert not np.shares_memory(found, values)
    assert np.array_equal(found, np.asarray(came, dtype=np.float64), equal_nan=True)
    assert np.array_equal(np.signbit(found), np.signbit(np.asarray(came, dtype=np.float64)))


@given(st.lists(st.one_of(st.integers(-(2**70), 2**70), st.floats(allow_nan=False)), max_size=6))
def test_a_list_is_accepted_only_if_every_number_is_a_float64(numbers):
    if all(isinstance(x, float) or Fraction(x) == Fraction(float(x)) for x in numbers) and all(
        isinstance(x, float) or -(2**63) <= x < 2**63 for x in numbers
    ):
        assert validation.floats(numbers, "x").tolist() == [float(x) for x in numbers]
    elif any(isinstance(x, int) and Fraction(x) != Fraction(float(x)) for x in numbers):
        refusal(numbers)


@given(hnp.arrays(st.sampled_from([np.int64, np.uint64]), st.integers(0, 8)))
def test_wide_integers_are_accepted_only_if_every_one_is_a_float64(numbers):
    if all(int(x) == int(float(int(x))) for x in numbers):
        assert [int(x) for x in validation.floats(numbers, "x")] == [int(x) for x in numbers]
    else:
        assert "float64 holds exactly" in refusal(numbers)


def test_the_limits_of_the_wide_integers():
    assert validation.floats(np.int64(-(2**63)), "x") == -(2.0**63)
    assert validation.floats(np.uint64(2**63), "x") == 2.0**63
    refusal(np.int64(2**63 - 1))
    refusal(np.uint64(2**64 - 1))


def test_a_lossy_number_is_named():
    text = refusal(np.array([[1, 2], [3, 2**53 + 1]]))
    assert "origins must be numbers that float64 holds exactly" in text
    assert "1 of 4" in text
    assert "first number (1, 1): origins[1, 1] = 9007199254740993" in text
    assert "Subtract a common origin" in text
    assert "origins[1] = 9007199254740993" in refusal([0.5, 2**53 + 1])
    assert "origins[0, 1] = 9007199254740993" in refusal([[0.5, 2**53 + 1], [np.inf, 3]])


def test_a_list_with_large_floats_is_accepted():
    assert validation.floats([[2.0**80, 2**60], [np.inf, -np.inf]], "x")[0].tolist() == [2.0**80, 2.0**60]


@pytest.mark.skipif(not WIDE, reason="long double is float64 here")
def test_longdouble_is_accepted_where_float64_is_exact():
    one = np.longdouble(1)
    assert validation.floats([one / 4, np.longdouble("inf"), np.longdouble("nan")], "x")[0] == 0.25
    assert "1 of 2" in refusal(np.array([one, one / 3]))
    assert "1 of 1" in refusal(np.array([np.longdouble("1e400")]))


@pytest.mark.parametrize(
    ("value", "words"),
    [
        ([1j, 2], ["complex", "x.real"]),
        ([Decimal(1), Decimal(2)], ["Python objects (Decimal)", "np.asarray(x, dtype=np.float64)"]),
        ([Fraction(1, 3)], ["Python objects (Fraction)"]),
        ([2**70, 1], ["Python objects (int)"]),
        ([None, 1.0], ["Python objects (NoneType)"]),
        (["1.5", "2"], ["text", "Parse them"]),
        (b"abc", ["text"]),
        ([1.0, "2"], ["text"]),
        (np.array(["2020-01-01"], dtype="M8[s]"), ["dates", "np.timedelta64"]),
        (np.array([1], dtype="m8[ns]"), ["time spans", "np.timedelta64"]),
        (np.zeros(2, dtype=[("x", float), ("y", float)]), ["records", "structured_to_unstructured"]),
        ({"x": 1}, ["Python objects (dict)"]),
        ([[1, 2, 3], [4, 5]], ["a list", "inhomogeneous", "same number of numbers"]),
    ],
)
def test_other_than_real_numbers_are_refused_with_a_way_out(value, words):
    text = refusal(value)
    assert text.startswith("origins must be ")
    for word in words:
        assert word in text


@pytest.mark.parametrize(
    ("error", "way_out"),
    [
        (
            RuntimeError(
                "Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead."
            ),
            "Call .detach() on the tensor first",
        ),
        (TypeError("can't convert cuda:0 device type tensor to numpy. Use Tensor.cpu()"), "x.cpu()"),
        (TypeError("Implicit conversion to a NumPy array is not allowed. Use `.get()`"), "x.get() in CuPy"),
        (BufferError("no"), "Pass a NumPy array"),
        (ValueError(""), "Pass a NumPy array"),
    ],
)
def test_the_error_of_a_tensor_has_a_way_out(error, way_out):
    text = refusal(Stubborn(error))
    assert "a Stubborn" in text
    assert way_out in text


def test_dlpack_alone_is_enough():
    values = np.arange(6.0).reshape(2, 3)
    found = validation.floats(Exporter(values), "x")
    assert np.array_equal(found, values)
    assert not np.shares_memory(found, values)
    assert validation.integers(Exporter(np.arange(3)), "x").tolist() == [0, 1, 2]


def test_a_memory_mapped_file_is_copied_and_released(tmp_path: Path):
    np.save(tmp_path / "x.npy", np.arange(6.0).reshape(2, 3))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    found = validation.floats(mapped, "x")
    assert type(found) is np.ndarray
    assert found.flags.writeable
    assert not np.shares_memory(found, mapped)


def test_masked_numbers_are_refused():
    numbers = np.ma.masked_equal([1.0, 2.0, 3.0], 2.0)
    assert "1 of 3 are masked" in refusal(numbers)
    assert "filled(np.nan)" in refusal(numbers)
    assert validation.floats(np.ma.masked_equal([1.0], 7.0), "x").tolist() == [1.0]


def test_shapes_are_named():
    with pytest.raises(InvalidInput, match=r"shape \(\.\.\., 2\) or \(\.\.\., 3\).*got shape \(2, 4\)"):
        validation.points(np.zeros((2, 4)), "origins")
    with pytest.raises(InvalidInput, match=r"got shape \(\)"):
        validation.points(1.0, "origins")
    with pytest.raises(InvalidInput, match=r"\(M, 3\).*got shape \(1, 2, 3\).*reshape\(-1, 3\)"):
        validation.rows(np.zeros((1, 2, 3)), "lower", (3,))
    assert validation.points([], "x").shape == (0, 3)
    assert validation.rows([1, 2], "x").shape == (1, 2)


def test_integers():
    assert validation.integers(np.array([1, 2], dtype=np.uint8), "faces").dtype == np.int64
    assert validation.integers([], "faces").dtype == np.int64
    with pytest.raises(InvalidInput, match=r"integer type; got float64.*astype\(np.int64\)"):
        validation.integers([0.0, 1.0], "faces")
    with pytest.raises(InvalidInput, match="integer type; got bool"):
        validation.integers([True], "faces")
    with pytest.raises(InvalidInput, match=r"less than 2\*\*63"):
        validation.integers(np.array([2**63], dtype=np.uint64), "faces")


@given(
    hnp.arrays(
        np.float64,
        hnp.array_shapes(max_dims=3, max_side=4),
        elements=st.sampled_from([0.0, 1.0, -1e308, 1.7e308, 5e-324, np.nan, np.inf, -np.inf]),
    )
)
def test_all_finite_equals_numpy(values):
    assert validation.all_finite(values) is bool(np.isfinite(values).all())


def test_refused_rows_are_counted_and_the_first_is_shown():
    values = np.zeros((2, 3, 2))
    values[1, 0, 1] = values[1, 2, 0] = np.nan
    with pytest.raises(InvalidInput) as caught:
        validation.require_finite(values, "points", "point", "Drop them")
    assert str(caught.value) == (
        "points must be finite; 2 of 6 break this, first point (1, 0): points[1, 0] = [0.0, nan]. Drop them."
    )
    with pytest.raises(InvalidInput) as caught:
        validation.require_finite(np.array([np.inf, 0.0]), "points", "point", "Drop them")
    assert str(caught.value) == "points must be finite; got points = [inf, 0.0]. Drop them."
