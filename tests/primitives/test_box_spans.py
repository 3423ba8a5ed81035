"""Spans of hits, eight at a time, against rational arithmetic."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import exact
import families
import raybox as rb
from raybox.primitives import box_spans
from raybox.primitives.box_simd import LANES
from scenes import as_rays

pytestmark = pytest.mark.core


def spans(pairs, order):
    """Return the true answers of hits in an order, and the compiled spans of the same."""
    want = exact.box_rows(*pairs)
    chosen = np.flatnonzero(want.hit)[order % max(1, want.hit.sum())] if want.hit.any() else order[:0]
    boxes, rays = rb.Boxes(pairs.lower, pairs.upper)._rows(), as_rays(pairs)._rows()
    enter, leave = np.empty(len(chosen)), np.empty(len(chosen))
    box_spans.write_spans(rays, boxes, chosen, chosen, enter, leave)
    return want, chosen, enter, leave


def test_spans_are_the_exact_ones_rounded_once():
    counts = Counter()
    for name in families.FAMILIES:
        pairs = families.make(name, 5, 3001)
        want, chosen, enter, leave = spans(pairs, np.random.default_rng(5).integers(0, 10**9, 4099))
        np.testing.assert_array_equal(enter, want.t_enter[chosen], name)
        np.testing.assert_array_equal(leave, want.t_exit[chosen], name)
        assert not (np.signbit(enter) & (enter == 0.0)).any()
        assert not (np.signbit(leave) & (leave == 0.0)).any()
        counts["hits"] += len(chosen)
        counts["touches"] += int(want.touch[chosen].sum())
        counts["endless"] += int(np.isinf(enter).sum())
    assert min(counts.values()) > 1000, counts


def test_differences_past_the_range_of_floats():
    """A plane and an origin may be further apart than the largest float, and the time a small one."""
    far = 1.5e308
    pairs = families.Pairs(
        *(np.tile(row, (8, 1)) for row in ([-far, 0.0, 0.0], [2.0**299, 0.0, 0.0])),
        np.full(8, -np.inf),
        np.full(8, np.inf),
        *(np.tile(row, (8, 1)) for row in ([-far, -1.0, -1.0], [far, 1.0, 1.0])),
    )
    for sign in (1.0, -1.0):
        turned = pairs._replace(origins=sign * pairs.origins, directions=sign * pairs.directions)
        want, chosen, enter, leave = spans(turned, np.arange(8))
        assert np.isfinite(want.t_enter).all()
        np.testing.assert_array_equal(enter, want.t_enter[chosen])
        np.testing.assert_array_equal(leave, want.t_exit[chosen])


@pytest.mark.parametrize("number", [0, 1, LANES - 1, LANES, LANES + 1, 3 * LANES + 5])
def test_misses_and_lists_of_any_length(number):
    boxes, rays = (
        rb.Boxes([[2, -1, -1]], [[3, 1, 1]])._rows(),
        rb.Rays([[0, 0, 0], [1, 0, 0]], [1, 0, 0])._rows(),
    )
    index, ray_of = np.arange(number) % 3 // 2 - 1, np.arange(number) % 2
    enter, leave = np.empty(number), np.empty(number)
    box_spans.write_spans(rays, boxes, ray_of, index, enter, leave)
    np.testing.assert_array_equal(enter, np.where(index < 0, np.nan, 2.0 - ray_of))
    np.testing.assert_array_equal(leave, np.where(index < 0, np.nan, 3.0 - ray_of))


def test_misses_without_any_box():
    none, rays = rb.Boxes(np.empty((0, 3)), np.empty((0, 3)))._rows(), rb.Rays([0, 0, 0], [1, 0, 0])._rows()
    enter, leave = np.empty(20), np.empty(20)
    box_spans.write_spans(rays, none, np.zeros(20, np.int64), np.full(20, -1), enter, leave)
    assert np.isnan([enter, leave]).all()


FLOATS = st.floats(allow_nan=False, allow_infinity=False)


@given(st.lists(st.tuples(*[FLOATS] * 9), min_size=8, max_size=8), st.integers(0, 2))
def test_any_floats(numbers, axis):
    """Boxes around points of rays, so that they are hit; eight rays of any size at once."""
    rows = np.array(numbers)
    o, d, size = rows[:, :3], rows[:, 3:6], np.abs(rows[:, 6:])
    d[:, axis] = np.where(d[:, axis] == 0.0, 1.0, d[:, axis])
    with np.errstate(all="ignore"):
        middle = np.clip(o + d, -1e308, 1e308)
        lower, upper = np.clip(middle - size, -1.7e308, 1.7e308), np.clip(middle + size, -1.7e308, 1.7e308)
    pairs = families.Pairs(o, d, np.full(8, -np.inf), np.full(8, np.inf), lower, upper)
    want, chosen, enter, leave = spans(pairs, np.arange(24))
    np.testing.assert_array_equal(enter, want.t_enter[chosen])
    np.testing.assert_array_equal(leave, want.t_exit[chosen])
