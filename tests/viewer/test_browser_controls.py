"""Each control of the page is used on each scene, in a real browser, and has its effect there.

Half of the controls of a scene are used at the width of a desktop, all others at that of a phone; of the next
scene, the other half.
"""

from collections.abc import Callable
from typing import NamedTuple

import pytest

import view_controls
from browser import Page
from view_scenes import SCENES

RAYS = frozenset(["tab-rays", "rays-hits", "rays-misses", "rays-points", "rays-colour", "rays-table"])
TREE = frozenset(["tree-hide", "tree-only", "tree-pick", "tree-label", "tree-object", "tree-expand"])
# What would do nothing, and is absent.
ABSENT = {
    "house": RAYS,
    "house_boxes": RAYS,
    "city": RAYS,
    "shop": RAYS | TREE,
    "lidar": frozenset(["tree-label"]),
    "boxes": RAYS | {"tree-label"},
}
# How much nearer than at the start the camera is: at the start, boxes and cells are too small for edges.
NEARER = {"boxes": 0.9, "shop": 0.7}


class Uses(NamedTuple):
    """Controls of a scene, at all widths: those that were there, and those that were used."""

    there: set[str]
    done: set[str]

    def next(self, page: Page, half: int | None) -> list[str]:
        """Return controls that are to be used now."""
        names = sorted(view_controls.visible(page))
        self.there.update(map(view_controls.key_of, names))
        mine = [name for name in names if half is None or view_controls.is_of(name, half)]
        return [name for name in mine if view_controls.key_of(name) not in self.done]


@pytest.fixture(scope="module")
def uses():
    """Return what was used on each scene."""
    return {name: Uses(set(), set()) for name in SCENES}


def use_all(page: Page, uses: Uses, prepare: Callable[[Page], None], half: int | None) -> list[str]:
    """Use the controls of a situation that were not used before; return what went wrong."""
    prepare(page)
    page.run(view_controls.SAVE)
    names = uses.next(page, half)
    before = page.picture() if any(map(view_controls.is_drawn, names)) else b""
    problems = []
    for name in names:
        if view_controls.key_of(name) in uses.done:
            continue
        uses.done.add(view_controls.key_of(name))
        if name not in view_controls.visible(page):
            prepare(page)
        problem = view_controls.use(page, name)
        if not problem and view_controls.is_drawn(name) and page.picture() == before:
            problem = "the picture is the same"
        if problem:
            problems.append(f"{name}: {problem}")
        page.run(view_controls.RESTORE)
    return problems


def test_each_control_has_an_effect(opened, uses):
    name, page = opened
    view_controls.cast_through_several(page, NEARER.get(name, 0.15))
    page.run("() => { window.first = { ...raybox.actions.store.state } }")
    half = None if page.size.touch else list(SCENES).index(name)
    problems = []
    for situation, prepare in view_controls.SITUATIONS.items():
        page.run(f"() => {{ window.situation = window.first; ({view_controls.RESTORE})() }}")
        found = use_all(page, uses[name], prepare, half)
        problems += [f"with {situation}, {problem}" for problem in found]
    assert not problems, "\n".join(problems)
    assert ABSENT[name].isdisjoint(uses[name].there), "a control that does nothing here"
    if page.size.touch:
        assert uses[name].there == uses[name].done, "a control that is at the width of a desktop alone"
