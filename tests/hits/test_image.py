"""Hits.image: the colours of pixels; misses, and nothing else, are white."""

from io import BytesIO

import numpy as np
import pytest

import raybox as rb
from raybox.hits import image

BOXES = rb.Boxes([[0, 0, 0], [2, 0, 0], [4, 0, -3]], [[1, 1, 1], [3, 1, 1], [5, 1, 1]])


def grid(x, z=5.0):
    """Cast one row of rays down at (x, 0.5); the last hits nothing where x is beyond the boxes."""
    x = np.atleast_2d(x)
    return rb.Rays(np.stack([x, np.full(x.shape, 0.5), np.full(x.shape, z)], axis=-1), [0, 0, -1])


def cast(x, z=5.0):
    return rb.Scene(BOXES).nearest(grid(x, z))


@pytest.mark.parametrize("kind", ["depth", "index", "normal"])
def test_a_picture_has_a_row_for_each_row_and_misses_alone_are_white(kind):
    hits = cast([[0.5, 2.5, 4.5], [9.0, 0.5, 9.0]])
    picture = hits.image(kind)
    assert picture.shape == (2, 3, 3)
    assert picture.dtype == np.uint8
    np.testing.assert_array_equal((picture == 255).all(axis=-1), ~hits.hit)
    assert (~hits.hit).sum() == 2


def test_depth_runs_from_dark_to_pale():
    boxes = rb.Boxes([[k, 0, -k] for k in range(6)], [[k + 1, 1, 1 - k] for k in range(6)])
    picture = rb.Scene(boxes).nearest(grid(np.arange(6) + 0.5)).image()
    light = picture.sum(axis=-1)[0]
    assert (np.diff(light.astype(int)) > 0).all()
    assert picture[0, 0].tolist() == image.STOPS[0].tolist()


def test_one_outlier_does_not_take_all_contrast():
    t = np.linspace(1.0, 2.0, 1000)
    plain, stray = t.copy(), t.copy()
    stray[0] = 1e9
    hit = np.ones(1000, bool)
    gap = image.of_depth(stray, hit).astype(int) - image.of_depth(plain, hit)
    assert np.abs(gap[1:]).max() < 8


@pytest.mark.parametrize("t", [[1e308, -1e308], [np.inf, 1.0], [3.0, 3.0]])
def test_no_distance_is_too_large_or_too_equal(t):
    with np.errstate(all="raise"):
        picture = image.of_depth(np.array([t]), np.ones((1, 2), bool))
    assert (picture.sum(axis=-1) < 3 * 255).all()


def test_a_box_keeps_its_colour_and_neighbours_in_number_differ():
    picture = cast([0.5, 2.5, 4.5]).image("index")
    np.testing.assert_array_equal(cast([4.5, 9.0]).image("index")[0, 0], picture[0, 2])
    assert len(np.unique(image.PALETTE, axis=0)) == len(image.PALETTE) == 21
    np.testing.assert_array_equal(image.of_index(np.array([[21]])), image.of_index(np.array([[0]])))
    assert picture[0].tolist() == image.PALETTE[:3].tolist()


def test_normals_are_red_green_and_blue_and_grey_inside():
    assert cast([0.5]).image("normal")[0, 0].tolist() == [128, 128, 255]
    assert cast([0.5], z=0.5).image("normal")[0, 0].tolist() == [128, 128, 128]
    flat = rb.Scene(rb.Boxes([2, -1], [3, 1])).nearest(rb.Rays([[[0, 0]]], [1, 0]))
    assert flat.image("normal").tolist() == [[[0, 128, 128]]]


def test_errors_name_the_shape_and_the_kinds():
    scene = rb.Scene(BOXES)
    with pytest.raises(rb.InvalidInput, match=r"\(height, width\); got shape \(3,\).*rays.reshape"):
        scene.nearest(grid([0.5, 2.5, 4.5])[0]).image()
    with pytest.raises(rb.InvalidInput, match=r"'depth', 'index', 'object' or 'normal'; got 'colour'"):
        cast([0.5]).image("colour")


def test_notebooks_show_a_picture():
    hits = cast([[0.5, 2.5, 4.5], [9.0, 0.5, 9.0]])
    picture = hits.image("index")
    matplotlib_image = pytest.importorskip("matplotlib.image")
    shown = matplotlib_image.imread(BytesIO(picture._repr_png_()), format="png")
    np.testing.assert_array_equal(np.rint(255 * shown), picture)
    assert picture[:1, 1:]._repr_png_().startswith(b"\x89PNG")
    for part in (picture[0], picture / 2, picture[:, :, :2], picture[:0], picture == 255):
        assert part._repr_png_() is None
    assert isinstance(picture, np.ndarray)
