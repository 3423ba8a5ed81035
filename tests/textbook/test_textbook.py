"""The five rays of one source, the conventions of all sources, and their errors, which are not repeated."""

import subprocess
import sys
from math import inf, nan, nextafter

import numpy as np
import pytest

from raybox import InvalidInput, textbook
from raybox.textbook.slab import Face

pytestmark = pytest.mark.core

BOX_ALGORITHMS = [textbook.slab, textbook.cyrus_beck, textbook.candidate_planes, textbook.near_far]
BOUNDED = [(textbook.slab, "t_max"), (textbook.candidate_planes, "length")]
LOWER, UPPER = (1.0, 1.0, 1.0), (2.0, 3.0, 4.0)


def names(functions):
    return [function.__name__ for function in functions]


every_box_algorithm = pytest.mark.parametrize("algorithm", BOX_ALGORITHMS, ids=names(BOX_ALGORITHMS))


# ---------------------------------------------------------------- the five rays of "Raycast AABB"


@every_box_algorithm
@pytest.mark.parametrize(
    ("origin", "direction", "hit"),
    [
        ((-2, -2, -2), (2, 2, 2), True),
        ((0, 0, 0), (0, 1, 0), False),
        ((0, 0, 0), (-1, 0, 0), False),
        ((1, 1, 1), (1, 1, 0), True),
        ((0.4, 1, 1), (-1, 0, 0), False),
    ],
)
def test_the_five_rays(algorithm, origin, direction, hit):
    found = algorithm(origin, direction, (0.5, 0.5, 0.5), (2, 2, 2))
    assert found.hit is hit
    assert bool(found) is hit
    assert all(line and line == line.strip() and "\n" not in line for line in found.steps)


# ---------------------------------------------------------------- the conventions, one by one

OUTSIDE, INSIDE, FORWARD = (0.0, 2.0, 2.0), (1.5, 2.0, 2.0), (2.0, 0.0, 0.0)


def test_slab_convention():
    miss = textbook.slab((0, 0, 0), FORWARD, LOWER, UPPER)
    assert (miss.hit, miss.t, miss.point) == (False, inf, None)
    hit = textbook.slab(OUTSIDE, FORWARD, LOWER, UPPER)
    assert (hit.hit, hit.t, hit.point) == (True, 0.5, (1.0, 2.0, 2.0))
    inside = textbook.slab(INSIDE, FORWARD, LOWER, UPPER)
    assert (inside.hit, inside.t, inside.point) == (True, 0.0, INSIDE)
    assert textbook.slab(OUTSIDE, FORWARD, LOWER, UPPER, t_max=0.5).hit
    assert not textbook.slab(OUTSIDE, FORWARD, LOWER, UPPER, t_max=nextafter(0.5, 0)).hit
    assert textbook.slab(OUTSIDE, FORWARD, LOWER, UPPER, t_max=0.0).hit is False


def test_slab_names_the_candidate_faces():
    found = textbook.slab((0, 0, 5), (1, 0.5, -1), LOWER, UPPER)
    assert found.faces == (Face(0, 1.0, 1.0), Face(1, 1.0, 2.0), Face(2, 4.0, 1.0))
    assert found.t == max(face.t for face in found.faces)
    assert textbook.slab((0, 2, 2), (1, 0, 0), LOWER, UPPER).faces == (Face(0, 1.0, 1.0),)


def test_cyrus_beck_convention():
    miss = textbook.cyrus_beck((0, 0, 0), FORWARD, LOWER, UPPER)
    assert (miss.hit, miss.t, miss.point) == (False, -1.0, None)
    behind = textbook.cyrus_beck((3, 2, 2), FORWARD, LOWER, UPPER)
    assert (behind.hit, behind.t, behind.point) == (False, -1.0, None)
    hit = textbook.cyrus_beck(OUTSIDE, FORWARD, LOWER, UPPER)
    assert (hit.hit, hit.t, hit.point) == (True, 0.5, (1.0, 2.0, 2.0))
    inside = textbook.cyrus_beck(INSIDE, FORWARD, LOWER, UPPER)
    assert (inside.hit, inside.t, inside.point) == (True, 0.25, (2.0, 2.0, 2.0))
    assert textbook.cyrus_beck((1.0, 2.0, 2.0), FORWARD, LOWER, UPPER).t == 0.0
    assert textbook.cyrus_beck((2.0, 2.0, 2.0), FORWARD, LOWER, UPPER).t == 0.0
    assert textbook.cyrus_beck((-1e9, 2.0, 2.0), FORWARD, LOWER, UPPER).hit
    assert textbook.cyrus_beck(INSIDE, (0, 0, 0), LOWER, UPPER)[:2] == (inf, None)


def test_candidate_planes_convention():
    hit = textbook.candidate_planes(OUTSIDE, FORWARD, LOWER, UPPER)
    assert (hit.hit, hit.t, hit.plane, hit.moving_away) == (True, 0.5, Face(0, 1.0, 0.5), False)
    inside = textbook.candidate_planes(INSIDE, FORWARD, LOWER, UPPER)
    assert (inside.hit, inside.t, inside.plane, inside.moving_away) == (True, 0.0, None, False)
    away = textbook.candidate_planes(OUTSIDE, (-2, 0, 0), LOWER, UPPER)
    assert (away.hit, away.t, away.plane, away.moving_away) == (False, inf, Face(0, 1.0, inf), True)
    assert len(away.steps) == 1, "leaves at the first axis"
    beside = textbook.candidate_planes(OUTSIDE, (1, 9, 0), LOWER, UPPER)
    assert (beside.hit, beside.plane, beside.moving_away) == (False, Face(0, 1.0, 1.0), False)
    reached = textbook.candidate_planes(OUTSIDE, FORWARD, LOWER, UPPER, length=0.5)
    short = textbook.candidate_planes(OUTSIDE, FORWARD, LOWER, UPPER, length=nextafter(0.5, 0))
    assert (reached.hit, short.hit, short.moving_away) == (True, False, False)
    along_the_side = textbook.candidate_planes((0, 0, 2), (0, 1, 0), LOWER, UPPER)
    assert (along_the_side.hit, along_the_side.moving_away) == (False, True)
    assert textbook.candidate_planes(INSIDE, FORWARD, LOWER, UPPER, length=0).hit


def test_near_far_convention():
    def distance(origin, direction):
        return textbook.near_far(origin, direction, LOWER, UPPER).distance

    assert distance((0, 0, 0), FORWARD) == inf
    assert distance((3, 2, 2), FORWARD) == inf
    assert distance(OUTSIDE, FORWARD) == 0.5
    assert distance(INSIDE, FORWARD) == -0.25
    assert distance((2, 2, 2), FORWARD) == -0.5, "far = 0 is still a hit"
    assert distance(INSIDE, (0, 0, 0)) == -inf
    assert textbook.near_far(INSIDE, FORWARD, LOWER, UPPER).inside
    assert not textbook.near_far(OUTSIDE, FORWARD, LOWER, UPPER).inside
    assert not textbook.near_far((0, 0, 0), FORWARD, LOWER, UPPER).inside


def test_bounded_plane_convention():
    def intersect(z, dz, length):
        found = textbook.bounded_plane((0, 0, z), (0, 1, dz), (0, 0, 1), 0.0, length=length)
        return found.hit, found.t

    assert intersect(1.0, -1.0, 4.0) == (True, 0.25)
    assert intersect(1.0, -1.0, 1.0) == (True, 1.0)
    assert intersect(0.0, -1.0, 1.0) == (True, 0.0)
    assert intersect(1.0, -1.0, 0.5) == (False, inf)
    assert intersect(-1.0, -1.0, 4.0) == (False, inf), "the plane lies behind"
    assert intersect(-1.0, 1.0, 4.0) == (False, inf), "from behind"
    assert intersect(0.0, 0.0, 4.0) == (False, inf), "along the plane, within it"
    assert intersect(0.0, -1.0, 0.0) == (False, inf), "a ray of no length goes nowhere"


def test_moller_trumbore_convention():
    triangle = (0, 0, 0), (4, 0, 0), (0, 4, 0)
    down = textbook.moller_trumbore((1, 2, 5), (0, 0, -2), *triangle)
    assert down[:4] == (True, 2.5, 0.25, 0.5)
    up = textbook.moller_trumbore((1, 2, -5), (0, 0, 2), *triangle)
    assert up[:4] == (True, 2.5, 0.25, 0.5), "both sides count"
    assert textbook.moller_trumbore((2, 2, 0), (0, 0, 1), *triangle).t == 0.0, "edges and t = 0 belong"
    assert not textbook.moller_trumbore((1, 2, -5), (0, 0, -2), *triangle)
    assert not textbook.moller_trumbore((-1, 1, 0), (1, 0, 0), *triangle), "in its plane"
    assert not textbook.moller_trumbore((1, 0, 5), (0, 0, -2), (0, 0, 0), (4, 0, 0), (2, 0, 0)), "no area"
    small = [tuple(1e-9 * x for x in corner) for corner in triangle]
    assert textbook.moller_trumbore((1e-9, 1e-9, 5), (0, 0, -2), *small).t == 2.5, "small is not zero"


# ---------------------------------------------------------------- errors of the sources


@every_box_algorithm
@pytest.mark.parametrize("tiny", [1e-9, 1e-300, 5e-324])
def test_a_small_component_is_not_zero(algorithm, tiny):
    """From below the slab, rising very slowly: a far hit; inside it, drifting out: a miss."""
    far = 0.5 / tiny
    if far < 1e300:
        assert algorithm((0, 0.5, 2), (1, tiny, 0), (far, 1, 1), (2 * far, 3, 4)).hit
        assert not algorithm((0, 2, 2), (1, tiny, 0), (5 * far, 1, 1), (6 * far, 3, 4)).hit
    assert not algorithm((0, nextafter(1, 0), 2), (1, -tiny, 0), LOWER, UPPER).hit


@every_box_algorithm
@pytest.mark.parametrize("distance", [20000.0, 1e9, 1e30])
def test_rays_are_not_cut(algorithm, distance):
    assert algorithm((-distance, 2, 2), (1, 0, 0), LOWER, UPPER).hit


@pytest.mark.parametrize(("algorithm", "limit"), BOUNDED, ids=["slab", "candidate_planes"])
def test_rays_are_cut_at_the_limit(algorithm, limit):
    assert not algorithm((-20000, 2, 2), (1, 0, 0), LOWER, UPPER, **{limit: 10000}).hit
    assert algorithm((-20000, 2, 2), (1, 0, 0), LOWER, UPPER, **{limit: 20001}).hit


@every_box_algorithm
@pytest.mark.parametrize("zero", [0.0, -0.0])
@pytest.mark.parametrize("y", [1.0, 3.0])
def test_touching_is_a_hit_along_a_face_and_across_it(algorithm, zero, y):
    assert algorithm((0, y, 2), (1, zero, 0), LOWER, UPPER).hit, "parallel, on the face"
    assert algorithm((0, y, 1), (1, zero, zero), LOWER, UPPER).hit, "parallel, on an edge"
    assert algorithm((0, 4 - y + (y - 2) * 2, 2), (1, 2 - y, 0), LOWER, UPPER).hit, (
        "oblique, touching an edge"
    )
    outward = nextafter(y, inf if y == 3.0 else -inf)
    assert not algorithm((0, outward, 2), (1, zero, 0), LOWER, UPPER).hit, "one float off"


@every_box_algorithm
def test_an_origin_on_a_face_divides_nothing_by_zero(algorithm):
    assert algorithm((1, 2, 2), (0, 1, 0), LOWER, UPPER).hit
    assert algorithm((1, 2, 2), (-1, 0, 0), LOWER, UPPER).hit
    assert algorithm((1, 1, 1), (0, 0, 0), LOWER, UPPER).hit
    assert not algorithm((1, 0, 2), (0, -1, 0), LOWER, UPPER).hit


@every_box_algorithm
def test_lower_and_upper_of_every_axis_are_distinguished(algorithm):
    """One text writes max.y where max.x is meant: a box of three different sizes shows it."""
    for axis in range(3):
        for at, step, hit in ((0.0, 1.0, True), (0.0, -1.0, False), (9.0, -1.0, True), (9.0, 1.0, False)):
            origin, direction = [1.5, 2.5, 3.5], [0.0, 0.0, 0.0]
            origin[axis], direction[axis] = at, step
            assert algorithm(origin, direction, LOWER, UPPER).hit is hit
            assert textbook.cyrus_beck([1.5, 2.5, 3.5], direction, LOWER, UPPER).t in (0.5, 1.5, 2.5)


@every_box_algorithm
def test_endless_boxes(algorithm):
    half_space = (-inf, 1.0), (inf, inf)
    assert algorithm((5, 0), (0, 2), *half_space).hit
    assert algorithm((5, 3), (1, -2), *half_space).hit
    assert not algorithm((5, 0), (1, 0), *half_space).hit
    assert algorithm((5, 3), (1, 0), (-inf, -inf), (inf, inf)).hit


# Steps as text, and errors of input


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
