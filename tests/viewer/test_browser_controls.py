"""Each control of the page is used on each scene, in a real browser, and has its effect there."""

import pytest

import view_controls
from browser import PHONE, WIDE, Page, served
from view_scenes import SCENES

WINDOWS = [(name, size) for name in SCENES for size in (WIDE, PHONE)]


@pytest.fixture(scope="module", params=WINDOWS, ids=[f"{name}-{size.width}" for name, size in WINDOWS])
def opened(request, browser):
    """Return the name of a scene and its page, at the width of a desktop or of a phone."""
    name, size = request.param
    page = Page(browser, served(name).url, size)
    yield name, page
    assert not page.foreign()
    page.close()


def use_all(page: Page, done: set[str], situation: str) -> list[str]:
    """Use the controls of a situation that were not used before; return what went wrong."""
    page.run(view_controls.SAVE)
    before = page.picture() if not page.size.touch else b""
    problems = []
    for name in sorted(view_controls.visible(page) - done):
        done.add(name)
        problem = view_controls.use(page, name)
        control = view_controls.row_of(name)
        if not problem and control.drawn and before and page.picture() == before:
            problem = "the picture is the same"
        if problem:
            problems.append(f"{name}, with {situation}: {problem}")
        page.run(view_controls.RESTORE)
    return problems


def test_each_control_has_an_effect(opened):
    name, page = opened
    view_controls.cast_through_several(page)
    page.run("() => { window.first = { ...raybox.actions.store.state } }")
    done: set[str] = set()
    problems = []
    for situation, prepare in view_controls.SITUATIONS.items():
        page.run(f"() => {{ window.situation = window.first; ({view_controls.RESTORE})() }}")
        prepare(page)
        problems += use_all(page, done, situation)
    assert not problems, "\n".join(problems)
    assert ABSENT[name].isdisjoint(done), "a control that does nothing here"


RAYS = frozenset(["tab-rays", "rays-hits", "rays-misses", "rays-points", "rays-colour", "rays-table"])
TREE = frozenset(["tree-hide", "tree-only", "tree-pick", "tree-label", "tree-object", "expand"])
ABSENT = {
    "house": RAYS,
    "house_boxes": RAYS,
    "city": RAYS,
    "shop": RAYS | TREE | {"opacity-reset"},
    "lidar": frozenset(["tree-label"]),
    "boxes": RAYS | {"tree-label"},
}
