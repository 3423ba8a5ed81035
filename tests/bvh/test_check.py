"""`check` compares every bound exactly with what is below it; coordinates in the tree are rounded once."""

from fractions import Fraction

import numpy as np
import pytest

import raybox as rb
from exact import INF, rounded
from large_spans import BIG, FAR_BOX, numbers
from raybox.bvh.node import CHILD, EMPTY, FAR, from_tree, to_tree
from raybox.bvh.validate import slots_below


@pytest.mark.parametrize("exponent", [-1022, -964, -1, 0, 1, 1000])
def test_coordinates_in_the_tree_are_the_exact_ones_rounded_once(exponent):
    x, center = numbers(np.random.default_rng(exponent % 999), (2, 500))
    scale = 2.0**exponent
    if exponent > -964:  # larger ones would overflow in the tree
        x, center = x * 2.0**-1001, center * 2.0**-1001
    moved = to_tree(x, center, scale)
    with np.errstate(over="ignore"):
        back = from_tree(moved, center, scale)  # may be rounded up past the largest float
    compared = 0
    for k in range(len(x)):
        exact = (Fraction(x[k]) - Fraction(center[k])) * Fraction(scale)
        if abs(exact) > 1e-280:
            assert moved[k] == rounded(exact), k
            size = Fraction(abs(x[k])) + Fraction(abs(center[k]))
            assert abs(Fraction(np.clip(back[k], -BIG, BIG)) - Fraction(x[k])) <= size / 2**51, k
            compared += 1
    assert compared > 400


def edited(scene, edit):
    """Return a scene whose only node was edited: planes are float32 (6, 8), children (8,)."""
    (part,) = scene._parts
    nodes = part.tree.nodes.copy()
    planes = nodes[0, :CHILD].view(np.float32).reshape(6, 8)
    edit(planes, nodes[0, CHILD:])
    root = np.array([planes[:3].min(axis=1), planes[3:].max(axis=1)], np.float64)
    scene._parts = (part._replace(tree=part.tree._replace(nodes=nodes, root=root)),)
    return scene


def tight(scene, boxes, side):
    """Return the bounds of slots on one side as narrow as float32 allows, for each box."""
    tree = scene._parts[0].tree
    way = -1 if side < 3 else 1
    corners = (boxes._rows().lower if side < 3 else boxes._rows().upper)[:, side % 3]
    found = []
    for x in corners.tolist():
        exact = (Fraction(x) - Fraction(tree.center[side % 3])) * Fraction(tree.scale)
        bound = np.float32(float(exact))
        while (Fraction(float(bound)) - exact) * way < 0:
            bound = np.nextafter(bound, np.float32(way * INF))
        found.append(bound)
    return found


SOUND = {
    "ordinary": rb.Boxes([[0.1, 0.2, 0.3], [5, 6, 7.7]], [[0.9, 1.1, 1.3], [8.1, 9, 11]]),
    "map": rb.Boxes(
        [[512345.678, 4e6, 17.3], [512399.1, 4e6 + 0.1, 17.4]],
        [[512345.9, 4e6 + 7, 19], [512400, 4e6 + 0.3, 21]],
    ),
    "large": rb.Boxes(
        [[-BIG, -1.2e308, -1e308], [1.1e308, 1e308, 1.2e308]], [[-1e308, -1e308, 1], [BIG, 1.7e308, 1.6e308]]
    ),
}


@pytest.mark.parametrize("side", range(6))
@pytest.mark.parametrize("name", SOUND)
def test_check_finds_a_bound_that_is_one_float32_too_far_inward(name, side):
    boxes = SOUND[name]
    bounds = tight(rb.Scene(boxes), boxes, side)
    for box, bound in enumerate(bounds):

        def narrow(planes, children, steps=0, box=box, bound=bound):
            (slot,) = np.flatnonzero(children == ~box)
            inward = np.float32(INF if side < 3 else -INF)
            planes[side, slot] = np.nextafter(bound, inward) if steps else bound

        edited(rb.Scene(boxes), narrow).check()
        rule = "a slot begins inside of its box" if side < 3 else "a slot ends inside of its box"
        with pytest.raises(rb.RayboxError, match=rule):
            edited(rb.Scene(boxes), lambda *node: narrow(*node, steps=1)).check()


def test_check_finds_a_bound_that_is_inward_by_less_than_float64_tells():
    lower, upper = np.array([[-1.0], [-1], [-1]]), np.array([[-1.0], [2.0**-60], [1]])
    boxes = rb.Boxes(lower.repeat(2, axis=1), upper.repeat(2, axis=1))
    scene = rb.Scene(boxes)
    tree = scene._parts[0].tree
    assert tree.center[0] == -1
    assert boxes.upper[1, 0] - tree.center[0] == 1

    def at_one(planes, children):
        planes[3, children == ~1] = tree.scale

    with pytest.raises(rb.RayboxError, match="a slot ends inside of its box"):
        edited(scene, at_one).check()


def test_check_finds_a_finite_bound_of_an_endless_box_and_nan():
    boxes = rb.Boxes([[-INF, 0, 0], [1, 1, 1]], [[INF, 1, 1], [2, 2, 2]])
    rb.Scene(boxes).check()
    for side, value in ((0, -FAR), (3, FAR), (1, np.nan)):

        def cut(planes, children, side=side, value=value):
            planes[side, children == ~0] = value

        with pytest.raises(rb.RayboxError, match="inside of its box"):
            edited(rb.Scene(boxes), cut).check()


@pytest.mark.core
@pytest.mark.parametrize("name", [*SOUND, "far"])
def test_slots_below_enclose_their_boxes(name):
    boxes = SOUND.get(name, FAR_BOX)
    tree = rb.Scene(boxes)._parts[0].tree
    children = tree.nodes[0, CHILD:]
    rows, order = boxes._rows(), ~children[children != EMPTY]
    lower, upper = slots_below(tree, 1)
    assert (lower <= rows.lower[order]).all()
    assert (upper >= rows.upper[order]).all()


def test_check_finds_planes_that_overflow_inward():
    """The tree as it was built before differences were scaled down: the far box ends at -FAR."""
    scene = rb.Scene(FAR_BOX)
    assert FAR_BOX.upper[0, 1] / 2 - scene._parts[0].tree.center[1] / 2 < -BIG / 2

    def overflow(planes, children):
        planes[1, children == ~0], planes[4, children == ~0] = -INF, -FAR

    with pytest.raises(rb.RayboxError, match="a slot ends inside of its box"):
        edited(scene, overflow).check()


def test_check_finds_planes_that_are_not_those_of_the_grid():
    scene = rb.Scene(rb.Grid(np.arange(9.0), [0.0, 1, 2]))
    scene.check()
    (part,) = scene._parts
    planes = part.tree.planes.copy()
    planes[3] = np.nextafter(planes[3], INF)
    scene._parts = (part._replace(tree=part.tree._replace(planes=planes)),)
    with pytest.raises(rb.RayboxError, match="its planes are not those of the grid"):
        scene.check()
