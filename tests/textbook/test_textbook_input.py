"""The textbook's steps as text, and its input errors."""

import subprocess
import sys
from math import inf, nan

import numpy as np
import pytest

from raybox import InvalidInput, textbook
from test_textbook import FORWARD, LOWER, OUTSIDE, UPPER, every_box_algorithm


def test_steps_as_text():
    assert textbook.slab((0, 0, 0), (1, 1, 0), LOWER, UPPER).steps == (
        "x: inside its slab for t in 1 to 2; common to all so far: 1 to 2",
        "y: inside its slab for t in 1 to 3; common to all so far: 1 to 2",
        "z: parallel, and 0 is not between 1 and 4",
        "miss",
    )
    assert textbook.cyrus_beck((1.5, 0), (0, 2), (1, 1), (2, 3)).steps == (
        "x: parallel, and 1.5 is between 1 and 2",
        "y: in at t = 0.5, out at t = 1.5",
        "last way in 0.5, first way out 1.5",
        "the origin is not past the way in, which counts: t = 0.5, point (1.5, 1)",
    )
    assert textbook.candidate_planes((0, 2, 0), (1, 0, 1), LOWER, UPPER, length=3).steps == (
        "x: candidate x = 1, crossed at t = 1",
        "y: the origin is between the planes; no candidate",
        "z: candidate z = 1, crossed at t = 1",
        "the last is x = 1, crossed in (1, 2, 1), on the box; hit",
    )
    assert textbook.near_far((4, 0), (-1, 1), (1, 1), (2, 3)).steps == (
        "x: planes at 3 and 2; near 2, far 3",
        "y: planes at 1 and 3; near 2, far 3",
        "distance 2",
    )
    assert textbook.bounded_plane((0, 3), (0, -1), (0, 2), 2, length=4).steps == (
        "the whole way is (0, -4), and goes -8 along the normal",
        "the plane is crossed at 0.5 of the way; hit",
    )
    assert textbook.moller_trumbore((1, 1, 1), (0, 0, -1), (0, 0, 0), (2, 0, 0), (0, 2, 0)).steps == (
        "determinant 4",
        "u = 0.5, the weight of b",
        "v = 0.5, the weight of c",
        "t = 1",
        "hit",
    )


def test_zero_is_written_without_a_sign():
    step = textbook.near_far((2, 0), (-1, -0.0), (1, -0.0), (2, 3)).steps
    assert step[0] == "x: planes at 1 and 0; near 0, far 1"
    assert step[1] == "y: parallel, and 0 is between 0 and 3"


def test_results_are_frozen():
    found = textbook.slab(OUTSIDE, FORWARD, LOWER, UPPER)
    with pytest.raises(AttributeError):
        found.hit = False
    assert isinstance(found.steps, tuple)


@every_box_algorithm
def test_arrays_are_accepted_and_not_changed(algorithm):
    arrays = [np.array(x, dtype=np.float32) for x in (OUTSIDE, FORWARD, LOWER, UPPER)]
    before = [array.copy() for array in arrays]
    assert algorithm(*arrays) == algorithm(OUTSIDE, FORWARD, LOWER, UPPER)
    assert all(map(np.array_equal, arrays, before))


@every_box_algorithm
@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (((nan, 0, 0), FORWARD, LOWER, UPPER), "origin must be finite"),
        ((OUTSIDE, (inf, 0, 0), LOWER, UPPER), "direction must be finite"),
        ((OUTSIDE, FORWARD, (nan, 0, 0), UPPER), "NaN"),
        ((OUTSIDE, FORWARD, UPPER, LOWER), "lower must not exceed upper"),
        ((OUTSIDE, FORWARD, (inf, 0, 0), (inf, 1, 1)), "on x both its bounds are inf"),
        ((OUTSIDE, FORWARD, (0, -inf, 0), (1, -inf, 1)), "on y both its bounds are -inf"),
        ((OUTSIDE, (1, 0), LOWER, UPPER), "direction must have shape (..., 3)"),
        ((OUTSIDE, FORWARD, (1, 1), (2, 2)), "one row of 3 numbers"),
        ((OUTSIDE, FORWARD, [LOWER, LOWER], [UPPER, UPPER]), "one row of 3 numbers"),
        (([OUTSIDE], FORWARD, LOWER, UPPER), "origin must be one row of numbers"),
        ((5.0, FORWARD, LOWER, UPPER), "origin must have shape"),
        (((1,), (1,), (1,), (1,)), "origin must have shape"),
        ((("a", "b", "c"), FORWARD, LOWER, UPPER), "origin must be real numbers"),
    ],
)
def test_bad_rays_and_boxes(algorithm, arguments, words):
    with pytest.raises(InvalidInput) as caught:
        algorithm(*arguments)
    assert words in str(caught.value)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (
            lambda: textbook.slab(OUTSIDE, FORWARD, LOWER, UPPER, t_max=-1),
            "t_max must not be negative or NaN",
        ),
        (
            lambda: textbook.slab(OUTSIDE, FORWARD, LOWER, UPPER, t_max=nan),
            "t_max must not be negative or NaN",
        ),
        (lambda: textbook.candidate_planes(OUTSIDE, FORWARD, LOWER, UPPER, length=-1), "length must not be"),
        (lambda: textbook.bounded_plane((0, 0), (0, 1), (0, 1), 1, length=inf), "length must be finite"),
        (lambda: textbook.bounded_plane((0, 0), (0, 1), (0, 1), 1, length=-2), "length must not be negative"),
        (lambda: textbook.bounded_plane((0, 0), (0, 1), (0, 1), nan, length=1), "offset must be finite"),
        (
            lambda: textbook.bounded_plane((0, 0), (0, 1), (0, 1, 0), 1, length=1),
            "normal must have shape (..., 2)",
        ),
        (lambda: textbook.bounded_plane((0, 0), (0, 9), (0, 1), 1, length=1e308), "length * direction"),
        (
            lambda: textbook.moller_trumbore((0, 0), (0, 1), (0, 0), (1, 0), (0, 1)),
            "origin must have shape (..., 3)",
        ),
        (lambda: textbook.moller_trumbore(OUTSIDE, FORWARD, LOWER, UPPER, (0, nan, 0)), "c must be finite"),
    ],
)
def test_bad_ends_planes_and_triangles(call, words):
    with pytest.raises(InvalidInput) as caught:
        call()
    assert words in str(caught.value)


def test_numba_is_not_loaded():
    code = "import sys, raybox.textbook; print('numba' in sys.modules)"
    assert subprocess.check_output([sys.executable, "-c", code], text=True).strip() == "False"
