"""Each control of the page on a scene of each kind, in a real browser."""

import pytest

import view_controls
from browser import PHONE, WIDE, SceneWindow, content_of

RAYS = frozenset(["tab-rays", "rays-hits", "rays-misses", "rays-points", "rays-colour", "rays-table"])
POINTS = frozenset(["points-colour", "points-limit", "points-size"])
TREE = frozenset(["tree-only", "tree-pick", "tree-label", "tree-expand"])
# What would do nothing, and is absent.
ABSENT = {
    "house": RAYS | POINTS,
    "shop": RAYS | POINTS | TREE,
    "lidar": frozenset(["tree-label"]),
    "boxes": RAYS | POINTS | {"tree-label"},
}
# All controls are in one of them; pictures are compared on a phone.
WINDOWS = [SceneWindow(scene, size) for scene in ("house", "lidar") for size in (WIDE, PHONE)]
WINDOWS += [SceneWindow("shop", WIDE), SceneWindow("boxes", PHONE)]
# How much nearer than at the start the camera is: at the start, boxes and cells are too small for edges.
NEARER = {"boxes": 0.9, "shop": 0.7}


@pytest.mark.parametrize("window", WINDOWS, ids=str)
def test_each_control_has_an_effect(browser, window):
    name = window.scene
    with window.opened(browser) as page:
        view_controls.cast_through_several(page, content_of(name).stage, NEARER.get(name, 0.15))
        uses = view_controls.use_all(page)
    assert not uses.problems, "\n".join(uses.problems)
    assert uses.there == uses.done
    assert name != "lidar" or uses.there >= RAYS | POINTS | {"range-*-0"}
    assert ABSENT[name].isdisjoint(uses.there), "a control that does nothing here"
