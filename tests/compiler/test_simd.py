"""Vector code against NumPy: every operation, in one compiled function."""

import math
from fractions import Fraction

import numpy as np
import pytest

from aim import INF
from loops import loop
from raybox.compiler import simd, simd_arrays
from raybox.compiler.entry_points import entry
from raybox.compiler.intrinsics import larger, lowest_bit, smaller, vector_code, void
from raybox.compiler.simd import (
    F32,
    F64,
    I32,
    I64,
    Lanes,
    constant,
    greater,
    joined,
    lesser,
    multiply_add,
    splat,
    steps,
)
from raybox.compiler.simd_transpose import transposed
from raybox.compiler.target import has
from raybox.traversal import packet_tiles

pytestmark = pytest.mark.jit

NAN = math.nan


@vector_code(void)
def _operate(b, floats, wide, words, out, out64, out32):
    x, y, z = (floats.load(16 * k, 16) for k in range(3))
    for k, row in enumerate(
        [
            *transposed([floats.load(16 * k, 16) for k in range(16)]),
            *(lesser(x, y), greater(x, y), multiply_add(x, y, z), x.magnitude(), x / y - z * 2.0 + 1.0),
            *((x < y).choose(x, 7.0), (x >= y).choose(0.0, y), (x.equals(y) | ~(x <= y)).choose(y, x)),
            floats.gather([I64((7 * k + 3) % 48) for k in range(16)]),
            *(floats.splat(5, 16), constant(b, F32, 16, 2.5), splat(b, x.lane(3), 16)),
            *(x.shuffled(y, SHUFFLED), -x, x.permuted(REPEATED)),
            *(greater(z, LISTED) * LISTED, x.with_lane(9, y.lane(2))),
        ]
    ):
        out.store(row, 16 * k)
    u, v = wide.load(0, 8), wide.load(8, 8)
    for k, row in enumerate(
        [
            *transposed([wide.load(8 * k, 8) for k in range(8)]),
            *(lesser(u, v), greater(u, v), multiply_add(u, v, u), u.magnitude(), u / v, u.to(F32).to(F64)),
            *((u > v).choose(u, v), words.load(0, 8).to(I64).bits(F64)),
        ]
    ):
        out64.store(row, 8 * k)
    i, j = words.load(0, 16), words.load(16, 16)
    numbers = Lanes(b, b.trunc(steps(b, I64(40), 16).value, i.to(I64).to(I32).value.type))
    for k, row in enumerate(
        [-i, i + j, i - j, i * 3, i & 12, i | j, i ^ j, i << 2, i >> 3, (i < j).to(I32), (x.to(I32)), numbers]
    ):
        out32.store(row, 16 * k)
    words.squeeze(i, x < y, I64(100))
    words.put(b.trunc((x < y).mask(), I32), 99)


LISTED = [0.5 * k - 4.0 for k in range(16)]
REPEATED = [3, 3, 15, 0, *range(4, 14), 0, 1]
SHUFFLED = [31, 0, 16, 15, 1, 17, *range(2, 12)]


@loop
def operate(floats, wide, words, out, out64, out32):
    _operate(floats, wide, words, out, out64, out32)


def test_operations_on_lanes_equal_those_of_numpy():
    rng = np.random.default_rng(1)
    f, w = rng.uniform(-9, 9, (16, 16)).astype(np.float32), rng.uniform(-9, 9, (8, 8))
    f[0, 3:8], f[1, 3:8] = [NAN, 1.0, NAN, 2.0, -0.0], [1.0, NAN, NAN, 2.0, 0.0]
    w[0, 2:5], w[1, 2:5] = [NAN, 1.0, INF], [1.0, NAN, -INF]
    words = rng.integers(-1000, 1000, 128).astype(np.int32)
    i, j = words[:16].copy(), words[16:32].copy()
    out, out64, out32 = np.zeros((33, 16), np.float32), np.zeros((16, 8)), np.zeros((12, 16), np.int32)
    with np.errstate(all="ignore"):
        operate(f, w, words, out, out64, out32)
        (x, y, z), (u, v) = f[:3], w[:2]
        product = x.astype(float) * y  # exact
        both = product + z if has("fma") else product.astype(np.float32) + z
        want = [*f.T, np.where(x < y, x, y), np.where(x > y, x, y), both, np.abs(x)]
        want += [x / y - z * np.float32(2) + np.float32(1), np.where(x < y, x, 7), np.where(x >= y, 0, y)]
        want += [np.where((x == y) | ~(x <= y), y, x), f.ravel()[(7 * np.arange(16) + 3) % 48]]
        want += [f[0, [5] * 16], [2.5] * 16, x[[3] * 16], np.concatenate([x, y])[SHUFFLED]]
        listed = np.array(LISTED, np.float32)
        want += [-x, x[REPEATED], np.where(z > listed, z, listed) * listed, x.copy()]
        want[-1][9] = y[2]
        want64 = [*w.T, np.where(u < v, u, v), np.where(u > v, u, v)]
        want64 += [[fused_once(*p) for p in zip(u, v, u, strict=True)] if has("fma") else u * v + u]
        want64 += [np.abs(u), u / v, u.astype(np.float32), np.where(u > v, u, v)]
        want64 += [i[:8].astype(np.int64).view(float)]
        want32 = [-i, i + j, i - j, i * 3, i & 12, i | j, i ^ j, i << 2]
        want32 += [(i.view(np.uint32) >> 3).view(np.int32)]
    want32 += [i < j, np.trunc(np.nan_to_num(x)), np.arange(40, 56)]
    out32[10] = np.where(np.isnan(x), 0, out32[10])
    for k, (got, row) in enumerate(zip([*out, *out64, *out32], [*want, *want64, *want32], strict=True)):
        np.testing.assert_array_equal(got, np.asarray(row).astype(got.dtype), err_msg=f"operation {k}")
    less = x < y
    np.testing.assert_array_equal(words[100 : 100 + less.sum()], i[less])
    assert np.signbit(out[19, 7]) == np.signbit(np.float32(0.0))  # the magnitude of -0.0
    assert (x[7], np.signbit(out[29, 7])) == (0.0, False)  # -(-0.0)
    assert words[99] == sum(1 << k for k in np.flatnonzero(less).tolist())


@entry
def _lowest_bit(mask):
    return lowest_bit(mask)


def test_the_lowest_bit_is_that_of_python():
    masks = [1 << k for k in range(63)] + [-(1 << 63), -1, 6, 0b1011000]
    masks += np.random.default_rng(10).integers(1, 1 << 62, 50).tolist()
    assert [_lowest_bit(mask) for mask in masks] == [(mask & -mask).bit_length() - 1 for mask in masks]


MASKS = [0, 0xFFFF, 0xFF, 0xFF00, 1, 0x8000, 0x180]
MASKS += np.random.default_rng(5).integers(0, 1 << 16, 200).tolist()


def emulate(way, monkeypatch):
    """Emit the code for this machine, for one with AVX2 at most, or for one without either."""
    if way == "avx2" and not has("avx2"):
        pytest.skip("this machine has no AVX2")
    if way != "own":
        for module in (simd_arrays, packet_tiles, simd):
            monkeypatch.setattr(module, "has", lambda instructions: instructions == way)


WAYS = ["own", "avx2", "none"]


@pytest.mark.parametrize(
    ("count", "dtype"), [(8, "i4"), (16, "i4"), (8, "f4"), (16, "f4"), (4, "i8"), (8, "i8")]
)
@pytest.mark.parametrize("way", WAYS)
def test_lanes_are_squeezed_and_counted_in_every_way(way, count, dtype, monkeypatch):
    emulate(way, monkeypatch)

    @vector_code(void)
    def write(b, numbers, chosen, out, counts, place):
        some = chosen.load(0, count) > 0
        out.squeeze(numbers.load(0, count), some, place)
        counts.put(b.trunc(some.mask(), I32), 0)
        counts.put(b.zext(some.any(), I32), 1)

    @loop
    def squeeze(numbers, chosen, out, counts, place):
        write(numbers, chosen, out, counts, place)

    numbers = np.random.default_rng(6).integers(-(1 << 20), 1 << 20, count).astype(dtype)
    for mask in MASKS:
        chosen = np.array([mask >> k & 1 for k in range(count)], "i8" if dtype == "i8" else "i4")
        out, counts, number = np.full(42, -5, dtype), np.zeros(2, np.int32), chosen.sum()
        squeeze(numbers, chosen, out, counts, 7)
        np.testing.assert_array_equal(out[7 : 7 + number], numbers[chosen > 0])
        assert (out[:7] == -5).all()
        assert (out[7 + count :] == -5).all()
        assert counts.tolist() == [mask & (1 << count) - 1, chosen.any()]


@pytest.mark.parametrize("way", WAYS)
def test_vectors_are_loaded_axis_by_axis_in_every_way(way, monkeypatch):
    emulate(way, monkeypatch)

    @vector_code(void)
    def write(b, vectors, at, out):
        rows = packet_tiles.rows_of(b, at, I64(6))
        for k, column in enumerate(packet_tiles.load_columns(b, vectors, rows)):
            out.store(column, b.mul(I64(k), I64(16)))

    @loop
    def load(vectors, at, out):
        write(vectors, at, out)

    vectors, out = np.random.default_rng(7).random((40, 3)), np.zeros((3, 16))
    load(vectors, 5, out)
    tile = np.add.outer(5 + 6 * np.arange(4), np.arange(4)).ravel()
    np.testing.assert_array_equal(out, vectors[tile].T)


@pytest.mark.parametrize(("count", "dtype"), [(8, np.float32), (16, np.float32), (8, np.float64)])
def test_rows_become_columns(count, dtype):
    @vector_code(void)
    def write(_b, rows, out, parts):
        columns = transposed([rows.load(count * k, count) for k in range(count)])
        for k, column in enumerate(columns):
            out.store(column, count * k)
            parts.store(joined([eight for eight in column.eights() for _ in range(2)]), 2 * count * k)

    @loop
    def turn(rows, out, parts):
        write(rows, out, parts)

    rows = np.random.default_rng(8).random((count, count)).astype(dtype)
    out, parts = np.zeros_like(rows), np.zeros((count, 2 * count), dtype)
    turn(rows, out, parts)
    np.testing.assert_array_equal(out, rows.T)
    twice = np.repeat(rows.T.reshape(count, -1, 8), 2, axis=1)
    np.testing.assert_array_equal(parts, twice.reshape(count, -1))


def fused_once(x, y, z) -> float:
    if not all(map(math.isfinite, (x, y, z))):
        return x * y + z
    return float(Fraction(x) * Fraction(y) + Fraction(z))


@entry
def _ends(one, other):
    return smaller(one, other), larger(one, other)


@pytest.mark.parametrize("one", [2, -3, np.int32(-7), 0.5, -0.0, np.inf, np.nan])
@pytest.mark.parametrize("other", [2, -4, 0.25, 0.0, np.nan])
def test_smaller_and_larger_equal_min_and_max_of_python(one, other):
    if isinstance(one, float) == isinstance(other, float):
        np.testing.assert_array_equal(_ends(one, other), (min(one, other), max(one, other)))
