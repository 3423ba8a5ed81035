"""Every control of the page: how it is used, and what then changes; and situations in which it is there.

A control is named by its data-test, or else by its class; `*` stands for a label or a class of the scene.
"""

from collections.abc import Callable
from fnmatch import fnmatchcase
from typing import Any, NamedTuple

from browser import Page
from raybox.viewer.stage import Stage
from waiting import wait_until

SECONDS = 20  # until an effect is there


class Control(NamedTuple):
    """How a control is used, what it changes as `EFFECTS` reads it, and whether the picture changes too.

    effect: "" for the part of the view that the page's table of controls names; use: a name of `USES`;
    value: for the use; first: a control that is pressed before.
    """

    name: str
    effect: str = ""
    use: str = "press"
    value: str = ""
    drawn: bool = False
    first: str = ""


# Pressed, they change the part of the view that the page's table names.
PRESSED = (
    *("fit-all", "fit-selection", "measure", "clear-selection", "deselect", "only", "unpickable"),
    *("show-all", "reset", "tree-hide", "tree-only", "tree-pick", "range-*-clear", "edges", "legend-on"),
    *("legend-close", "opacity-reset", "cut-free-flip", "cut-free-camera", "cut-none", "rays-misses"),
)
CONTROLS = [
    *map(Control, PRESSED),
    Control("scene", "answer", "pick", drawn=True),
    Control("view", "", "choose", "top", drawn=True),
    Control("orthographic", drawn=True),
    Control("up", "", "choose", "y"),
    Control("cube-*", drawn=True),
    Control("dark", drawn=True),
    Control("link", "clipboard"),
    Control("png", "download", "download"),
    Control("png-scale", "", "choose"),
    Control("save", "download", "download"),
    Control("open", "chooser", "choose_file"),
    Control("help", "shown:help-sheet"),
    Control("help-close", "shown:help-sheet"),
    Control("grip", "height"),
    Control("notice-close", "shown:notice"),
    Control("find", "shown:results", "type_text", "1"),
    Control("result", "state:selection,camera"),
    Control("select-found", "state:selection,camera"),
    Control("selected-details", "open:selected-details"),
    Control("property-set", "open:property-set"),
    Control("copy-id", "clipboard"),
    Control("copy-ids", "clipboard"),
    Control("zoom", "state:camera,faded"),
    Control("hide", drawn=True),
    Control("show", "state:hidden,ranges", drawn=True),
    Control("fade", drawn=True),
    Control("tree-label", "text:tree", "choose"),
    Control("undo", first="only"),
    Control("tree-expand", "text:tree"),
    Control("tree-more", "text:tree"),
    Control("tree-object", "state:selection,camera"),
    Control("range-*-field-0", "", "type_mean"),
    Control("range-*-field-1", "", "type_mean"),
    Control("range-*-0", "", "slide", "0.6"),
    Control("range-*-1", "", "slide", "0.4"),
    Control("colour-by", "", "choose", drawn=True),
    Control("opacity-*", "", "slide", "0.2"),
    Control("storey-all", "state:cut,camera", first="storey-Level 1"),
    Control("storey-*", "state:cut,camera", drawn=True),
    *(Control(f"cut-{axis}-0", "", "slide", "0.4", drawn=axis == "x") for axis in "xyz"),
    *(Control(f"cut-{axis}-1", "", "slide", "0.6", drawn=axis == "x") for axis in "xyz"),
    *(Control(f"cut-{axis}-field-{end}", "", "type_middle") for axis in "xyz" for end in (0, 1)),
    *(Control(f"cut-{axis}-clear") for axis in "xyz"),
    Control("section-box", drawn=True),
    Control("cut-free", drawn=True),
    Control("cut-free-slider", "", "slide", "0.6"),
    Control("cut-free-point", "", "type_middle"),
    Control("cut-free-normal", "", "type_text", "1, 0, 0"),
    Control("hits", "state:selection,contact", "press_row"),
    Control("hit-expand", "text:hits"),
    Control("hits-sort-*", "sort:hits"),
    Control("copy-hit-*", "clipboard"),
    Control("explain", "shown:explanation"),
    Control("clear-ray", "answer"),
    Control("typed-ray", "open:typed-ray"),
    Control("ray-origin", "answer", "type_and_cast", "1, 2, 3"),
    Control("ray-direction", "answer", "type_and_cast", "0.1, 0.2, -1"),
    Control("cast", "text:hits-ray", "cast_typed"),
    Control("sight", "state:sight"),
    Control("rays-hits", drawn=True),
    Control("rays-points", drawn=True),
    Control("rays-colour", "", "choose", first="rays-hits"),
    Control("points-colour", "", "choose", drawn=True),
    Control("points-limit", "", "type_text", "0.5", drawn=True),
    Control("points-size", "", "slide", "0.5", drawn=True),
    Control("rays-table", "answer", "press_row"),
    Control("rays-table-sort-*", "sort:rays-table"),
    Control("tab-*", "tabs"),
]


VISIBLE = """() => {
    const used = "button, input, select, textarea, summary, a[href], canvas[tabindex], [role=grid]";
    const name = (one) => {
        if (one.dataset.test) return one.dataset.test;
        if (one.closest("[data-test=results]")) return "result";
        if (one.closest("[data-object]")) return "tree-object";
        return one.className.split(" ")[0] || one.outerHTML;
    };
    const shown = [...document.querySelectorAll(used)].filter((one) => {
        const box = one.getBoundingClientRect();
        return one.checkVisibility({ visibilityProperty: true }) && box.width > 0 && !one.disabled;
    });
    return [...new Set(shown.map(name))];
}"""

EFFECTS = """async ([kind, names]) => {
    const { state } = raybox.actions.store;
    const all = (name) => [...document.querySelectorAll(`[data-test="${name}"]`)];
    const readers = {
        state: () => names.map((name) => state[name]),
        answer: () => state.answer && [state.answer.ray, state.answer.row],
        text: () => all(names[0]).map((one) => one.innerText),
        shown: () => all(names[0]).some((one) => one.checkVisibility()),
        open: () => all(names[0]).map((one) => one.closest("details").open),
        sort: () => [...document.querySelectorAll(`[data-test="${names[0]}"] [role=columnheader]`)].map(
            (one) => one.getAttribute("aria-sort")),
        tabs: () => [...document.querySelectorAll("[role=tab]")].map((one) => one.ariaSelected),
        height: () => document.querySelector("[data-test=panel]").offsetHeight,
        clipboard: () => navigator.clipboard.readText(),
    };
    return JSON.stringify(await readers[kind]());
}"""

SAVE = "() => { window.situation = { ...raybox.actions.store.state } }"
RESTORE = """() => {
    const { store } = raybox.actions;
    for (const dialog of document.querySelectorAll("dialog[open]")) dialog.close();
    const escape = new KeyboardEvent("keydown", { key: "Escape" });
    document.querySelector("[data-test=find]").dispatchEvent(escape);
    for (const kind of ["info", "error", "progress"]) raybox.notice.clear(kind);
    const { camera } = window.situation;
    const moved = JSON.stringify(store.state.camera) !== JSON.stringify(camera);
    store.set(window.situation);
    if (moved) raybox.stage.setCamera(camera);
}"""


def visible(page: Page) -> set[str]:
    """Return the names of all controls that can be used now."""
    return set(page.run(VISIBLE))


def row_of(name: str) -> Control | None:
    """Return the row of the table for a control; the first that fits counts."""
    return next((one for one in CONTROLS if fnmatchcase(name, one.name)), None)


def key_of(name: str) -> str:
    """Return what is used once a page: of the controls of classes, labels and columns, one of their row."""
    control = row_of(name)
    several = ("opacity-*", "range-*", "hits-sort-*", "rays-table-sort-*", "cube-*")
    return control.name if control and control.name.startswith(several) else name


def is_looked_at(page: Page, name: str) -> bool:
    """Return whether the picture must show the effect of a control; pictures are compared on phones only."""
    control = row_of(name)
    return control is not None and control.drawn and page.size.touch


def locator_of(page: Page, name: str) -> Any:
    """Return the first visible element of a control."""
    selectors = {"result": "[data-test=results] ul button", "tree-object": "[data-object] button.expand"}
    all_of_name = page.tab.locator(selectors.get(name, f'[data-test="{name}"]'))
    panel = all_of_name.first.evaluate("(one) => one.closest('[role=tabpanel][hidden]')?.ariaLabel")
    if panel:  # an answer has opened another
        page.show(panel)
    return all_of_name.locator("visible=true").first


# Uses: each takes the page, the element and the row of the table.


def press(page: Page, element: Any, _: Control) -> None:
    page.press_at(element)


def type_text(page: Page, element: Any, control: Control) -> None:
    element.fill(control.value)
    element.press("Tab")


def type_and_cast(page: Page, element: Any, control: Control) -> None:
    element.fill(control.value)
    page.press("cast")


def cast_typed(page: Page, element: Any, control: Control) -> None:
    page.find("ray-direction").fill("0.3, 0.1, -1")
    page.press_at(element)


def type_mean(page: Page, element: Any, control: Control) -> None:
    """Type the mean of the two ends of a range."""
    stem = element.get_attribute("data-test")[:-1]
    ends = [float(page.find(f"{stem}{end}").input_value()) for end in (0, 1)]
    type_text(page, element, control._replace(value=str(sum(ends) / 2)))


def type_middle(page: Page, element: Any, control: Control) -> None:
    """Type coordinates between the bounds of the scene."""
    low, high = page.run("raybox.actions.store.model.bounds")
    at = [a + 0.4 * (b - a) for a, b in zip(low, high, strict=True)]
    axis = element.get_attribute("data-test").split("-")[1]
    text = ", ".join(map(str, at)) if axis == "free" else str(at["xyz".index(axis)])
    type_text(page, element, control._replace(value=text))


def choose(page: Page, element: Any, control: Control) -> None:
    """Choose an option: that of the row, or the first that is not chosen."""
    other = "(list) => [...list.options].find((one) => !one.selected).value"
    element.select_option(control.value or element.evaluate(other))


def slide(page: Page, element: Any, control: Control) -> None:
    page.slide(element.get_attribute("data-test"), float(control.value))


def press_row(page: Page, element: Any, _: Control) -> None:
    """Press a row of a table that is not chosen."""
    page.press_at(element.locator("[data-row][aria-selected=false]").first)


def pick(page: Page, element: Any, _: Control) -> None:
    """Pick a pixel near a corner of the scene."""
    page.click(*page.pixels(9, 9)[-12])


USES: dict[str, Callable[[Page, Any, Control], None]] = {
    one.__name__: one
    for one in (press, type_text, type_and_cast, cast_typed, type_mean, type_middle, choose, slide, press_row)
} | {"pick": pick}


def use(page: Page, name: str) -> str:
    """Use a control, and wait for its effect; return what is wrong, "" for nothing."""
    control = row_of(name)
    if control is None:
        return "not in the table of controls"
    page.run("raybox.actions.settled()")  # an answer that comes later may move what is pressed
    element = locator_of(page, name)
    if control.effect == "download":
        return "" if page.download(name) else "an empty file"
    if control.effect == "chooser":
        with page.tab.expect_file_chooser():
            page.press_at(element)
        return ""
    if control.effect == "clipboard":
        page.run('navigator.clipboard.writeText("before")')
    if control.first:
        _changes(page, control, lambda: page.press(control.first))
    if control.use == "press" and element.get_attribute("aria-selected") == "true":  # a tab
        others = element.locator(f"xpath=..//*[@role='tab'][not(@data-test='{name}')]")
        _changes(page, control, lambda: page.press_at(others.first))
    is_used = _changes(page, control, lambda: USES[control.use](page, element, control))
    return "" if is_used else f"nothing changes: {control.effect}"


def effect_in_table(page: Page, name: str) -> str:
    """Return the effect that the page's table of controls gives to a control: a part of its view."""
    parts = page.run("raybox.partsByElement")
    return "state:" + next(part for pattern, part in parts.items() if fnmatchcase(name, pattern))


def _changes(page: Page, control: Control, act: Callable[[], None]) -> bool:
    """Return whether an act changes what a control has an effect on."""
    kind, _, names = (control.effect or effect_in_table(page, control.name)).partition(":")

    def effect() -> str:
        return page.run(EFFECTS, [kind, names.split(",")])

    before = effect()
    act()
    try:
        wait_until(lambda: effect() != before, control.effect, seconds=SECONDS)
    except AssertionError:
        return False
    return True


# Situations: what is done before the controls that are then there are used.


def cast_through_several(page: Page, stage: Stage, nearer: float) -> None:
    """Pick a pixel whose ray hits at least two objects, with the camera nearer than at the start."""
    page.run(
        """(share) => {
            const camera = raybox.stage.camera();
            const eye = camera.eye.map((value, k) => value + share * (camera.target[k] - value));
            raybox.stage.setCamera({ ...camera, eye });
            raybox.actions.store.set({ camera: raybox.stage.camera() });
        }""",
        nearer,
    )
    assert page.pick(*page.through_several(stage, page.pixels(15, 15)))["total"] > 1


def scripted(script: str, tab: str = "") -> Callable[[Page], None]:
    """Return what opens a tab, and runs a script."""

    def prepare(page: Page) -> None:
        if tab:
            page.show(tab)
        page.run(f"() => {{ const {{ actions, notice }} = raybox, {{ store }} = actions; {script} }}")

    return prepare


# Hide an object, and limit a range and an opacity, where the scene has them.
FILTER = """
    const { model } = store;
    const field = model.points?.fields.map((one) => ({ ...one, name: `points: ${one.name}` }))[0];
    const number = model.labels.find((label) => label.kind === "number") ?? field;
    const word = document.querySelector("[data-test^=opacity-][type=range]");
    actions.setHidden([store.visibility.shown.lastIndexOf(1)], true);
    if (word) store.set({ opacity: { [word.dataset.test.slice(8)]: 0.5 } });
    if (!number) return;
    const values = [...number.values].filter(Number.isFinite).sort((a, b) => a - b);
    actions.setRange(number.name, [values[0], values[Math.floor(0.9 * values.length)]]);
"""
# Set the free plane, and one on each axis.
CUT = """
    const { bounds: [low, high] } = store.model;
    actions.setFreeCut({ on: true, normal: [0.6, 0, 0.8] });
    [..."xyz"].forEach((axis, a) => actions.cutTo(axis, [low[a], 0.1 * low[a] + 0.9 * high[a]]));
"""
SELECT_TWO = "actions.select([...new Set(store.state.answer.hits.map((hit) => hit.object))].slice(0, 2));"
RESIDUALS = "if (store.model.points) store.set({ points: { ...store.state.points, colour: 'residual' } });"


def open_details(page: Page) -> None:
    summary = "document.querySelector('[data-test=selected-details]')"
    if page.run(f"{summary}?.closest('details').open === false"):
        page.press("selected-details")


def find_several(page: Page) -> None:
    page.find("find").fill("1")
    page.until('document.querySelector("[data-test=results] ul button")?.checkVisibility()')


def type_a_ray(page: Page) -> None:
    page.show("hits")
    if not page.find("ray-origin").is_visible():
        page.press("typed-ray")


def expand_a_group(page: Page) -> None:
    page.show("objects")
    group = page.tab.locator("[data-test=group]").first
    while (
        group.count() and not page.tab.locator("[data-object] button.expand").locator("visible=true").count()
    ):
        page.press_at(page.tab.locator("[data-test=group] button.expand[aria-expanded=false]").last)


SITUATIONS: dict[str, Callable[[Page], None]] = {
    "a ray through several objects": lambda page: None,
    "details": open_details,
    "filters": scripted(FILTER, "objects"),
    "the objects": lambda page: page.show("objects"),
    "colours": lambda page: page.show("colour"),
    "a cut": scripted(CUT, "cut"),
    "hits": lambda page: page.show("hits"),
    "a typed ray": type_a_ray,
    "rays": lambda page: page.show("rays") if page.find("tab-rays").count() else None,
    "residuals": scripted(RESIDUALS),
    "an expanded group": expand_a_group,
    "two objects": scripted(SELECT_TWO),
    "search": find_several,
    "help": lambda page: page.press("help"),
    "a message": scripted("notice.error('a message')"),
}


class Uses(NamedTuple):
    """Controls of a page: those that were there, those that were used, and what went wrong."""

    there: set[str]
    done: set[str]
    problems: list[str]

    def next(self, page: Page) -> list[str]:
        """Return controls that are to be used now."""
        names = sorted(visible(page))
        self.there.update(map(key_of, names))
        return [name for name in names if key_of(name) not in self.done]


def use_situation(page: Page, uses: Uses, situation: str) -> None:
    """Use the controls of a situation that were not used before."""
    prepare = SITUATIONS[situation]
    prepare(page)
    page.run(SAVE)
    names = uses.next(page)
    before = page.picture() if any(is_looked_at(page, name) for name in names) else b""
    for name in names:
        if key_of(name) in uses.done:
            continue
        uses.done.add(key_of(name))
        if name not in visible(page):
            prepare(page)
        problem = use(page, name)
        if not problem and is_looked_at(page, name) and page.picture() == before:
            problem = "the picture is the same"
        if problem:
            uses.problems.append(f"with {situation}, {name}: {problem}")
        page.run(RESTORE)
        page.reset_sheet()
    page.run(RESTORE)  # also if nothing was used: a sheet or a message may be open


def use_all(page: Page) -> Uses:
    """Use the controls of all situations."""
    page.run("() => { window.first = { ...raybox.actions.store.state } }")
    uses = Uses(set(), set(), [])
    for _ in range(3):  # again for what was not enabled yet when its turn came
        for situation in SITUATIONS:
            page.run(f"() => {{ window.situation = window.first; ({RESTORE})() }}")
            use_situation(page, uses, situation)
        if uses.there == uses.done:
            break
    return uses
