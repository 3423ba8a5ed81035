"""A headless Chromium that shows the page, as on a desktop and as on a phone with touch."""

import math
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from functools import lru_cache
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import numpy as np
from matplotlib.image import imread

import raybox as rb
import view_scenes
from raybox.viewer.content import PageContent
from raybox.viewer.stage import Stage
from raybox.viewer.viewer import Viewer

CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
SECONDS = 90  # of one step, at most: only what is broken takes so long

# No GPU, no sandbox (CI runs as root), and no network traffic of the browser itself.
FLAGS = [
    *("--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
    *("--ignore-gpu-blocklist", "--disable-quic", "--no-first-run", "--mute-audio"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync"),
]


# The middle of an element in the window, once it can be pressed there; null if the page has replaced it.
REACHED = """async (one, milliseconds) => {
    const end = performance.now() + milliseconds;
    for (;;) {
        if (!one.isConnected) return null;
        one.scrollIntoView({ block: "center", inline: "nearest" });
        const box = one.getBoundingClientRect();
        const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
        const top = document.elementFromPoint(x, y);
        const reached = box.width > 0 && top && (one.contains(top) || one.closest("label")?.contains(top));
        if (reached && !one.disabled) return { x, y };
        if (performance.now() > end) return { covered: String(top?.outerHTML).slice(0, 200) };
        await new Promise((resolve) => setTimeout(resolve, 10));
    }
}"""


# Frames wait until the full picture is awaited: what is not looked at takes no time.
DRAW_AWAITED = """(() => {
    const frame = window.requestAnimationFrame.bind(window);
    const waiting = [];
    let awaited = 0;
    window.requestAnimationFrame = (act) => (awaited ? frame(act) : waiting.push(act));
    window.drawAwaited = (stage) => {
        const settled = stage.settled.bind(stage);
        stage.settled = async () => {
            awaited++;
            waiting.splice(0).forEach(frame);
            await settled();
            awaited--;
        };
    };
})()"""


CAST = """async ({ origin, direction }) => {
    await raybox.actions.castTyped(origin, direction);
    return raybox.actions.store.state.answer?.hits.map((hit) => hit.object) ?? null;
}"""


def pixels_of(picture: bytes) -> np.ndarray:
    """Return the colours of the pixels of a PNG, shape (height, width, 3), from 0 to 255."""
    return np.rint(255 * imread(BytesIO(picture), format="png")[..., :3]).astype(int)


def are_of(pixels: np.ndarray, colour: str) -> np.ndarray:
    """Return which pixels have a colour, "#rrggbb"."""
    return (pixels == list(bytes.fromhex(colour[1:]))).all(axis=-1)


class PageHit(NamedTuple):
    """A hit as the page shows it."""

    object: int
    geometry: int
    primitive: int
    t: float
    t_enter: float
    t_exit: float


def shown(stage: Stage, answer: dict[str, Any]) -> list[PageHit]:
    """Return the hits of an answer of the page; of copies, the copy stands for what is hit in it."""
    names = ("object", "geometry", "primitive", "t", "tEnter", "tExit")
    found = [PageHit(*(hit[name] for name in names)) for hit in answer["hits"]]
    is_copy = [isinstance(part.geometry, rb.Instances) for part in stage.parts]
    return [hit._replace(primitive=hit.object) if is_copy[hit.geometry] else hit for hit in found]


def ends_of(ray: dict[str, Any]) -> tuple[float, float]:
    """Return where a ray of the page begins and ends; ends without a number are infinite."""
    low, high = ray["tMin"], ray["tMax"]
    return -math.inf if low is None else low, math.inf if high is None else high


def of_engine(stage: Stage, ray: dict[str, Any], pickable: np.ndarray) -> list[PageHit]:
    """Return what the engine answers to a ray of the page; pickable: a bool for each object."""
    low, high = ends_of(ray)
    found = stage.all(rb.Rays(ray["origin"], ray["direction"], t_min=low, t_max=high), pickable)
    columns = stage.objects_of(found), found.geometry, found.index, found.t, found.t_enter, found.t_exit
    return [PageHit(*row) for row in zip(*(column.tolist() for column in columns), strict=True)]


class Size(NamedTuple):
    """The width and height of a window in pixels, and whether fingers touch it."""

    width: int
    height: int
    touch: bool


WIDE = Size(1280, 800, touch=False)
PHONE = Size(390, 844, touch=True)


@contextmanager
def chromium() -> Iterator[Any]:
    """Start a browser without a window."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield browser
        browser.close()


@lru_cache
def content_of(scene: str) -> PageContent:
    """Return a scene of view_scenes.py, read once a process."""
    return view_scenes.SCENES[scene]()


@lru_cache
def served(scene: str) -> Viewer:
    """Return the server of a scene, which runs until the process ends."""
    return Viewer(content_of(scene), "127.0.0.1", 0)


class Page:
    """A tab of the browser with the page, every address that it requested and every error of its code."""

    def __init__(
        self,
        browser: Any,
        address: str,
        size: Size = WIDE,
        *,
        offline: bool = False,
        density: float = 1.0,  # pixels of the screen for one of the page, along each axis
        always_draws: bool = True,  # or only while the full picture is awaited
    ) -> None:
        self.size, self.density = size, density
        self.requested: list[str] = []
        self.errors: list[str] = []
        self.context = browser.new_context(
            viewport={"width": size.width, "height": size.height},
            has_touch=size.touch,
            is_mobile=size.touch,
            device_scale_factor=density,
            offline=offline,
            permissions=["clipboard-read", "clipboard-write"],
        )
        if not always_draws:
            self.context.add_init_script(DRAW_AWAITED)
        self.tab = self._tab()
        self.open(address)

    def _tab(self) -> Any:
        tab = self.context.new_page()
        tab.set_default_timeout(1000 * SECONDS)
        tab.on("request", lambda request: self.requested.append(request.url))
        tab.on("websocket", lambda line: self.requested.append(line.url))
        tab.on("pageerror", lambda error: self.errors.append(str(error)))
        return tab

    def open(self, address: str) -> None:
        """Go to an address, and wait until its scene is complete and drawn."""
        self.tab.goto(address)
        self.until("window.raybox?.actions")
        self.run("window.drawAwaited?.(raybox.stage)")
        self.settled()

    def close(self) -> None:
        """Close the tab; its code must have thrown nothing."""
        self.context.close()
        assert not self.errors, self.errors

    def foreign(self) -> list[str]:
        """Return requested addresses that are neither of this machine nor within the page."""
        parts = ((address, urlsplit(address)) for address in self.requested)
        return [
            address
            for address, part in parts
            if part.scheme not in ("file", "data", "blob") and part.hostname != "127.0.0.1"
        ]

    # The page's own state

    def run(self, script: str, argument: Any = None) -> Any:
        """Return the value of an expression or of a function of JavaScript."""
        return self.tab.evaluate(script, argument)

    def until(self, condition: str, argument: Any = None, seconds: int = SECONDS) -> None:
        """Wait until an expression is true; `given` is the argument."""
        script = f"""async (given) => {{
            const end = performance.now() + {1000 * seconds};
            while (!({condition})) {{
                if (performance.now() > end) return false;
                await new Promise((resolve) => setTimeout(resolve, 10));
            }}
            return true;
        }}"""
        assert self.run(script, argument), f"not within {seconds} s: {condition}"

    def state(self, key: str) -> Any:
        """Return a part of the page's state."""
        return self.run("(key) => raybox.actions.store.state[key]", key)

    def settled(self) -> None:
        """Wait until the full picture is on the screen."""
        self.run("raybox.stage.settled()")

    def reset(self, view: dict[str, Any] | None = None) -> None:
        """Return to the state at the start, with changes; nothing is selected, cut or filtered."""
        self.run(
            """(view) => {
                const { store } = raybox.actions;
                window.firstState ??= { ...store.state };
                store.set({ ...window.firstState, ...view });
                if (store.state.camera) raybox.stage.setCamera(store.state.camera);
                else raybox.stage.fitAll();
            }""",
            view or {},
        )
        self.reset_sheet()

    def reset_sheet(self) -> None:
        """Return the sheet of a phone to its height at the start, or at the first call."""
        self.run(
            """() => {
                const panel = document.querySelector("[data-test=panel]");
                window.firstHeight ??= panel.offsetHeight;
                for (let k = 0; k < 3 && panel.offsetHeight !== window.firstHeight; k++)
                    document.querySelector("[data-test=grip]").click();
            }"""
        )

    # What users do

    def find(self, name: str) -> Any:
        """Return the control of a name, the first of several."""
        return self.tab.locator(f'[data-test="{name}"]').first

    def show(self, tab: str) -> None:
        """Open a tab of the panel, unless it is the only one."""
        if self.find(f"tab-{tab}").is_visible():
            self.press(f"tab-{tab}")

    def press(self, name: str) -> None:
        """Click or tap a control."""
        self.press_at(self.find(name))

    def press_at(self, locator: Any) -> None:
        """Click or tap the middle of an element, which nothing may cover."""
        while (at := locator.evaluate(REACHED, 1000 * SECONDS)) is None:
            pass  # a row of a table, which is made again when the table scrolls
        assert "covered" not in at, f"covered by {at['covered']}: {locator}"
        self.click(at["x"], at["y"])

    def click(self, x: float, y: float) -> None:
        """Click or tap a pixel of the window."""
        (self.tab.touchscreen.tap if self.size.touch else self.tab.mouse.click)(x, y)

    def pick(self, x: float, y: float) -> dict[str, Any]:
        """Click a pixel of the scene; return the answer once it is there."""
        self.run("raybox.actions.settled()")
        self.run("() => { window.lastAnswer = raybox.actions.store.state.answer }")
        self.click(x, y)
        self.until("raybox.actions.store.state.answer !== window.lastAnswer")
        return self.state("answer")

    def slide(self, name: str, share: float) -> None:
        """Move a slider to a share of its length, as a drag does."""
        self.find(name).evaluate(
            """(slider, share) => {
                const [low, high] = [Number(slider.min), Number(slider.max)];
                slider.value = String(low + (high - low) * share);
                slider.dispatchEvent(new Event("input", { bubbles: true }));
            }""",
            share,
        )

    def notice(self, text: str) -> str:
        """Wait for a message that contains a text; return all of it."""
        self.until('document.querySelector("[data-test=notice]").innerText.includes(given)', text)
        return self.find("notice").inner_text()

    def download(self, name: str) -> bytes:
        """Press a control, and return the file that the page then offers."""
        with self.tab.expect_download() as download:
            self.press(name)
        return Path(download.value.path()).read_bytes()

    # The picture

    def free(self) -> tuple[int, int, int, int]:
        """Return left, top, width and height of the scene that no panel or button covers."""
        top, bottom, right = self.run(
            """() => {
                const box = (test) => document.querySelector(`[data-test=${test}]`).getBoundingClientRect();
                const bars = Math.max(...[...document.querySelectorAll(".toolbar .group")].map(
                    (one) => one.getBoundingClientRect().bottom));
                const panel = box("panel");
                const narrow = panel.left < 1;
                return [bars, narrow ? panel.top : innerHeight, narrow ? innerWidth : panel.left];
            }"""
        )
        edge = math.ceil(2 / self.density)  # pixels of the screen that the panel covers in part
        return 0, int(top) + edge, int(right), int(bottom) - int(top) - 2 * edge

    def pixels(self, columns: int, rows: int) -> list[tuple[int, int]]:
        """Return pixels in a pattern over the free part of the scene."""
        left, top, width, height = self.free()
        return [
            (left + (2 * i + 1) * width // (2 * columns), top + (2 * j + 1) * height // (2 * rows))
            for j in range(rows)
            for i in range(columns)
        ]

    def picture(self, clip: tuple[int, int, int, int] | None = None) -> bytes:
        """Return what the free part of the scene shows, or a part of it, once it is complete."""
        self.settled()
        x, y, width, height = clip or self.free()
        return self.tab.screenshot(clip={"x": x, "y": y, "width": width, "height": height})

    def assert_small(self) -> None:
        """Assert that the scene needs at most 50 calls to draw, and 200 MB."""
        self.settled()
        stats = self.run("raybox.stage.stats()")
        assert stats["complete"]
        assert 0 < stats["drawCalls"] <= 50
        assert 0 < stats["bufferBytes"] <= 200 * 10**6

    def answers(self, pixels: list[tuple[int, int]]) -> list[dict[str, Any]]:
        """Return the answers to rays through pixels, without rays of which a cut leaves nothing."""
        return self.run(
            """(pixels) => {
                const { stage, actions } = raybox;
                actions.caster.setPickable(actions.store.visibility.pickable);
                const rays = pixels.map(([x, y]) => stage.rayOf(x, y)).filter((ray) => ray !== null);
                return Promise.all(rays.map((ray) => actions.caster.pick(ray)));
            }""",
            [list(pixel) for pixel in pixels],
        )

    def cast(self, ray: dict[str, list[float]]) -> list[int] | None:
        """Cast a ray of typed numbers; return the objects of its hits, None if there is no answer."""
        return self.run(CAST, ray)

    def rays(self, pixels: list[tuple[int, int]]) -> rb.Rays:
        """Return the rays through pixels."""
        rays = self.run("(pixels) => pixels.map(([x, y]) => raybox.stage.rayOf(x, y))", [*map(list, pixels)])
        return rb.Rays([ray["origin"] for ray in rays], [ray["direction"] for ray in rays])

    def through_several(self, stage: Stage, pixels: list[tuple[int, int]]) -> tuple[int, int]:
        """Return a pixel whose ray hits two objects: of several, the closest to the middle one."""
        hits = stage.all(self.rays(pixels))
        objects = np.split(stage.objects_of(hits), hits.offsets[1:-1])
        several = [pixel for pixel, hit in zip(pixels, objects, strict=True) if len({*hit.tolist()}) > 1]
        assert several, "no ray hits two objects"
        x, y = pixels[len(pixels) // 2]
        return min(several, key=lambda one: abs(one[0] - x) + abs(one[1] - y))


class SceneWindow(NamedTuple):
    """A scene of view_scenes.py in a window of a size."""

    scene: str
    size: Size

    def __str__(self) -> str:
        return f"{self.scene}-{self.size.width}"

    @contextmanager
    def opened(self, browser: Any) -> Iterator[Page]:
        """Open the page of the scene; a low density is drawn in a twentieth of the time."""
        page = Page(browser, served(self.scene).url, self.size, density=0.2, always_draws=False)
        yield page
        assert not page.foreign()
        page.close()


# Each scene in a window, half of them on a phone.
SCENE_WINDOWS = [SceneWindow(scene, (WIDE, PHONE)[k % 2]) for k, scene in enumerate(view_scenes.SCENES)]
