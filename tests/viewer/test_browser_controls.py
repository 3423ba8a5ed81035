"""Each control of the page on each scene, in a real browser."""

import pytest

import view_controls
from browser import SCENE_WINDOWS, content_of

RAYS = frozenset(["tab-rays", "rays-hits", "rays-misses", "rays-points", "rays-colour", "rays-table"])
POINTS = frozenset(["points-colour", "points-limit", "points-size"])
TREE = frozenset(["tree-only", "tree-pick", "tree-label", "tree-expand"])
# What would do nothing, and is absent.
ABSENT = {
    "house": RAYS | POINTS,
    "house_boxes": RAYS | POINTS,
    "city": RAYS | POINTS,
    "shop": RAYS | POINTS | TREE,
    "lidar": frozenset(["tree-label"]),
    "boxes": RAYS | POINTS | {"tree-label"},
}
# How much nearer than at the start the camera is: at the start, boxes and cells are too small for edges.
NEARER = {"boxes": 0.9, "shop": 0.7}


@pytest.mark.parametrize("window", SCENE_WINDOWS, ids=str)
def test_each_control_has_an_effect(browser, window):
    name = window.scene
    with window.opened(browser) as page:
        view_controls.cast_through_several(page, content_of(name).stage, NEARER.get(name, 0.15))
        uses = view_controls.use_all(page)
    assert not uses.problems, "\n".join(uses.problems)
    assert uses.there == uses.done
    assert name != "lidar" or uses.there >= RAYS | POINTS | {"range-*-0"}
    assert ABSENT[name].isdisjoint(uses.there), "a control that does nothing here"
