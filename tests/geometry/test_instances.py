"""rb.Instances, the container: matrices, poses, refused input, bounds, indexing."""

import pickle

import numpy as np
import pytest

import raybox as rb

UNIT = rb.Boxes([-0.5] * 3, [0.5] * 3)


def maps(count=1) -> np.ndarray:
    return np.tile(np.eye(4)[:3], (count, 1, 1))


def test_matrices_of_three_or_four_rows_one_or_many():
    four = np.tile(np.eye(4), (2, 1, 1))
    assert rb.Instances(UNIT, four).transforms.tolist() == rb.Instances(UNIT, maps(2)).transforms.tolist()
    assert len(rb.Instances(UNIT, np.eye(4))) == len(rb.Instances(UNIT, maps()[0])) == 1
    assert repr(rb.Instances(UNIT, four)) == "Instances(2 of Boxes(1, D=3))"
    flat = rb.Instances(rb.Boxes([0, 0], [1, 1]), np.eye(3))
    assert (flat.ndim_space, flat.transforms.tolist()) == (2, [[[1, 0, 0], [0, 1, 0]]])


def test_input_is_copied_and_frozen():
    given = maps(2)
    instances = rb.Instances(UNIT, given)
    given[:] = 7
    assert instances.transforms[0, 0, 0] == 1
    with pytest.raises(ValueError, match="read-only"):
        instances.transforms[0, 0, 0] = 2


@pytest.mark.parametrize(
    ("transforms", "text"),
    [
        (np.zeros((3, 4)), "must not flatten space"),
        (
            np.stack([np.eye(4), np.ones((4, 4))]),
            r"the last row of transforms must be \[0, 0, 0, 1\]; 1 of 2",
        ),
        (np.eye(3), r"shape \(M, 4, 4\) or \(M, 3, 4\)"),
        (np.full((2, 3, 4), np.nan), "transforms must be finite; 2 of 2 break this, first instance 0"),
        (
            np.stack([maps()[0], 0.1 * np.array([[1, 2, 3, 0], [2, 4, 6, 0], [0, 0, 1, 0]])]),
            "1 of 2 .* first instance 1",
        ),
    ],
)
def test_bad_matrices_are_refused(transforms, text):
    with pytest.raises(rb.InvalidInput, match=text):
        rb.Instances(UNIT, transforms)


def test_singular_is_decided_exactly():
    """Equal rows are singular; rows one ulp apart are not, however small the determinant."""
    for number, good in ((np.nextafter(0.25, 1), True), (np.nextafter(0.25, 0), True), (0.25, False)):
        matrix = np.array([[number, 1.0, 0, 0], [0.25, 1.0, 0, 0], [0, 0, 1e-200, 0]])
        if good:
            assert len(rb.Instances(UNIT, matrix)) == 1
        else:
            with pytest.raises(rb.InvalidInput, match="flatten"):
                rb.Instances(UNIT, matrix)
    near = np.array([[1.0, 1.0, 0, 0], [1.0, np.nextafter(1.0, 2), 0, 0], [0, 0, 1.0, 0]])
    assert len(rb.Instances(UNIT, near)) == 1


def test_other_geometries_are_refused():
    for geometry in (rb.Planes([0, 0, 1], 0), rb.Instances(UNIT, np.eye(4)), "boxes"):
        with pytest.raises(rb.InvalidInput, match="copies of Boxes or of a Mesh"):
            rb.Instances(geometry, np.eye(4))
    with pytest.raises(rb.InvalidInput, match="finite bounds; 1 of 1 break this, first box 0"):
        rb.Instances(rb.Boxes([0, 0, 0], [1, 1, np.inf]), np.eye(4))


def test_poses_scale_then_rotate_then_translate():
    half = np.sqrt(0.5)
    for turn in (
        {"yaw": np.pi / 2},
        {"quaternions": [half * 3, 0, 0, half * 3]},
        {"rotations": [[0, -1, 0], [1, 0, 0], [0, 0, 1]]},
    ):
        made = rb.Instances.from_poses(UNIT, [[5, 6, 7], [0, 0, 0]], scales=[[2, 3, 4], [1, 1, 1]], **turn)
        want = [[[0, -3, 0, 5], [2, 0, 0, 6], [0, 0, 4, 7]], [[0, -1, 0, 0], [1, 0, 0, 0], [0, 0, 1, 0]]]
        np.testing.assert_allclose(made.transforms, want, atol=1e-15)
    each = rb.Instances.from_poses(UNIT, np.zeros((2, 3)), yaw=[0.0, np.pi], scales=[1.0, 5.0])
    np.testing.assert_allclose(each.transforms[:, 0, 0], [1, -5])
    flat = rb.Instances.from_poses(rb.Boxes([0, 0], [1, 2]), [[1, 1]], yaw=np.pi / 2)
    np.testing.assert_allclose(flat.bounds, [[-1, 1], [1, 2]], atol=1e-15)


def test_quaternions_rotate_vectors():
    rng = np.random.default_rng(1)
    for q in rng.normal(size=(20, 4)):
        w, axis = q[0], q[1:]
        p = rng.normal(size=3)
        twice = 2 * np.cross(axis, p) / (q @ q)
        want = p + w * twice + np.cross(axis, twice)
        got = rb.Instances.from_poses(UNIT, np.zeros(3), quaternions=q).transforms[0, :, :3] @ p
        np.testing.assert_allclose(got, want, atol=1e-14)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"yaw": 0.0, "quaternions": [1, 0, 0, 0]}, "in one way; got quaternions and yaw"),
        ({"quaternions": [0, 0, 0, 0]}, "quaternions must not be zero"),
        ({"quaternions": [1, 0, 0]}, r"quaternions must have shape \(2, 4\)"),
        ({"yaw": [0.0] * 3}, r"yaw must have shape \(2,\)"),
        ({"yaw": np.nan}, "yaw must be finite"),
        ({"scales": [[1, 2]]}, "scales must be a scalar"),
        ({"scales": 0.0}, "flatten space"),
        ({"scales": np.inf}, "scales must be finite"),
    ],
)
def test_bad_poses_are_refused(arguments, text):
    with pytest.raises(rb.InvalidInput, match=text):
        rb.Instances.from_poses(UNIT, np.zeros((2, 3)), **arguments)


def test_oriented_boxes():
    with pytest.raises(rb.InvalidInput, match="sizes must be above zero; 1 of 2 break this, first box 1"):
        rb.Instances.oriented_boxes(np.zeros((2, 3)), [[1, 1, 1], [1, 0, 1]])
    with pytest.raises(rb.InvalidInput, match="quaternions rotate in 3D"):
        rb.Instances.oriented_boxes([0, 0], 1, quaternions=[1, 0, 0, 0])
    boxes = rb.Instances.oriented_boxes([[1, 2, 3]], [2, 4, 6])
    assert boxes.bounds.tolist() == [[0, 0, 0], [2, 4, 6]]


def test_bounds_contain_every_corner_and_are_tight_where_sums_are_exact():
    rng = np.random.default_rng(2)
    linear = rng.normal(size=(50, 3, 3))
    instances = rb.Instances(UNIT, np.concatenate([linear, 1e6 * rng.normal(size=(50, 3, 1))], axis=2))
    boxes = instances.boxes()
    corners = np.array(np.meshgrid(*[[-0.5, 0.5]] * 3)).reshape(3, -1)
    from fractions import Fraction

    for k, transform in enumerate(instances.transforms.tolist()):
        for axis, (*row, shift) in enumerate(transform):
            ends = [
                Fraction(shift) + sum(Fraction(a) * Fraction(x) for a, x in zip(row, c, strict=True))
                for c in corners.T.tolist()
            ]
            assert boxes.lower[k, axis] <= min(ends)
            assert boxes.upper[k, axis] >= max(ends)
            assert max(ends) - min(ends) > 0.999999 * Fraction(
                boxes.upper[k, axis] - boxes.lower[k, axis]
            ) - Fraction(1, 10**8)
    moved = rb.Instances.from_poses(UNIT, [[0.5, 1, -8]], scales=2)
    assert moved.bounds.tolist() == [[-0.5, 0, -9], [1.5, 2, -7]]
    huge = rb.Instances(rb.Boxes([-1e300] * 3, [1e300] * 3), 1e300 * np.eye(4)[:3])
    assert huge.bounds.tolist() == [[-np.inf] * 3, [np.inf] * 3]
    assert rb.Instances(UNIT, np.zeros((0, 3, 4))).bounds.tolist() == [[np.inf] * 3, [-np.inf] * 3]


def test_indexing_and_pickling():
    instances = rb.Instances.from_poses(UNIT, np.arange(12.0).reshape(4, 3))
    assert instances[1].transforms[:, :, 3].tolist() == [[3, 4, 5]]
    assert (
        len(instances[1:3])
        == len(instances[[0, 3]])
        == len(instances[np.array([True, False, True, False])])
        == 2
    )
    assert instances[2].geometry is UNIT
    with pytest.raises(IndexError, match="flat list"):
        _ = instances[0, 1]
    copy = pickle.loads(pickle.dumps(instances))
    assert copy.transforms.tolist() == instances.transforms.tolist()
