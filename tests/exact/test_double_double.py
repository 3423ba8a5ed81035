"""Double-double: each number is within its slack of the exact one, and equal to it at slack 0."""

from fractions import Fraction

import numpy as np

from loops import loop
from raybox.exact import double_double


@loop
def chains(x, out):
    """Write (a - b) (c - d), that minus (e - f), and that times a."""
    for k in range(len(x)):
        a, b, c, d, e, f = x[k, 0], x[k, 1], x[k, 2], x[k, 3], x[k, 4], x[k, 5]
        product = double_double.mul(double_double.diff(a, b), double_double.diff(c, d))
        total = double_double.sub(product, double_double.diff(e, f))
        again = double_double.mul(total, double_double.lift(a))
        for place, value in ((0, product), (1, total), (2, again)):
            out[k, place, 0], out[k, place, 1], out[k, place, 2] = value.head, value.tail, value.slack
        out[k, 3, 0], out[k, 3, 1] = double_double.signed(total), double_double.certain(total)


def exactly(row):
    a, b, c, d, e, f = map(Fraction, row)
    product = (a - b) * (c - d)
    return product, product - (e - f), (product - (e - f)) * a


def test_slack_bounds_the_error_and_zero_slack_is_exact():
    rng = np.random.default_rng(1)
    whole = rng.integers(-(2**25), 2**25, (2000, 6)).astype(float)
    whole[::3, 4] = (whole[::3, 0] - whole[::3, 1]) * (whole[::3, 2] - whole[::3, 3])
    whole[::3, 5] = 0.0  # the total is 0
    full = rng.uniform(-8, 8, (2000, 6)) * 2.0 ** rng.integers(-40, 40, (2000, 6))
    x = np.concatenate([whole, full])
    out = np.zeros((len(x), 4, 3))
    chains(x, out)
    free = 0
    for row, got in zip(x.tolist(), out.tolist(), strict=True):
        for want, (head, tail, slack) in zip(exactly(row), got, strict=False):
            off = abs(want - Fraction(head) - Fraction(tail))
            assert off <= slack
            free += slack == 0
        total = exactly(row)[1]
        if got[3][0]:
            assert np.sign(got[1][0]) == (total > 0) - (total < 0)
        assert not got[3][1] or total != 0
    assert free > 5000
    assert out[:2000, 3, 0].all()
    assert (out[:2000:3, 1, 0] == 0).all()
    assert not out[:2000:3, 3, 1].any()
