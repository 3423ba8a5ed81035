"""Measure how fast the viewer's page opens, answers clicks and turns, in a browser without a window.

    python benchmarks/viewer.py [--only house city] [--json viewer.json]

A server in its own process serves each scene of tests/helpers/view_scenes.py to Chromium, 1280 x 720 pixels,
which draws on the CPU. Every time ends when the drawing is complete, not when it is ordered:

- server: from the start of its process, which reads the file, until the page can be requested
- first frame: from the request of the page until the scene is drawn once, coarsely or in full
- click: from the release of the button until the panel lists all hits, the median of 20 pixels with hits
- frames: pictures a second while a drag turns the scene for 3 s
- full picture: from the end of the drag until nothing remains to be drawn
"""

import argparse
import json
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from raybox.bench import machine

HELPERS = Path(__file__).parents[1] / "tests" / "helpers"
SCENES = {
    "house": "house, triangles",
    "house_boxes": "house, boxes",
    "city": "city, triangles",
    "shop": "shop, voxels",
    "lidar": "lidar frame with rays",
    "boxes": "10⁵ random boxes",
    "million_boxes": "10⁶ random boxes",
}
CLICKS = 20
ORBIT_SECONDS = 3.0

# Runs before the page's own code, and after it in each frame: the frames of the empty page do not count.
WATCH = """(() => {
  let empty = 0;
  const watch = () => {
    const page = window.raybox;
    const frames = page?.stage?.stats().frames ?? 0;
    if (!page?.actions) empty = frames;
    else if (frames > empty) {
      document.querySelector("[data-test=scene]").getContext("webgl2").finish();
      window.firstFrame = performance.now();
      return;
    }
    requestAnimationFrame(watch);
  };
  requestAnimationFrame(watch);
})();"""

LISTEN = """() => {
  window.clicks = [];
  let released = 0;
  addEventListener("pointerup", (event) => { released = event.timeStamp; }, true);
  addEventListener("pointerdown", (event) => { window.pointer = event.pointerId; }, true);
  raybox.actions.store.changed(["answer"], () => window.clicks.push(performance.now() - released));
}"""

# The button is down; moves come in every frame, as those of a fast mouse do.
ORBIT = """async ([x, y, seconds]) => {
  const { stage } = raybox;
  const canvas = document.querySelector("[data-test=scene]");
  const gl = canvas.getContext("webgl2");
  const send = (kind) => canvas.dispatchEvent(new PointerEvent(kind, {
    pointerId: window.pointer, clientX: x, clientY: y, button: kind === "pointerup" ? 0 : -1, bubbles: true,
  }));
  const start = performance.now(), before = stage.stats().frames;
  while (performance.now() < start + 1000 * seconds) {
    x += 4;
    send("pointermove");
    await new Promise(requestAnimationFrame);
  }
  gl.finish();
  const end = performance.now(), frames = stage.stats().frames - before;
  send("pointerup");
  await stage.settled();
  gl.finish();
  return { rate: 1000 * frames / (end - start), rest: (performance.now() - end) / 1000 };
}"""


class Figures(NamedTuple):
    """What was measured of one scene."""

    server_s: float
    first_frame_s: float
    click_ms: float
    frames_per_s: float
    full_picture_s: float
    draw_calls: int
    buffers_mb: float
    saved_mb: float


@contextmanager
def served(scene: str) -> Iterator[tuple[str, float]]:
    """Serve a scene in a process; return its address and the seconds until it is ready."""
    started = time.perf_counter()
    command = [sys.executable, str(HELPERS / "view_scenes.py"), "serve", scene, "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        try:
            address = server.stdout.readline().strip() if server.stdout else ""
            if not address:
                raise SystemExit(f"the server of {scene} ended before it was ready")
            yield address, time.perf_counter() - started
        finally:
            server.terminate()


def click_times(page: Any) -> list[float]:
    """Click pixels all over the scene that show something; return the milliseconds until each answer."""
    pixels = page.pixels(24, 14)
    found = [pixel for pixel, answer in zip(pixels, page.answers(pixels), strict=True) if answer["total"]]
    for k in range(CLICKS):
        page.settled()
        page.pick(*found[k * len(found) // CLICKS])
    return page.run("window.clicks")


def orbit(page: Any) -> dict[str, float]:
    """Turn the scene by a drag; return the frames a second, and the seconds of the full picture after it."""
    ((x, y),) = page.pixels(1, 1)
    page.settled()
    page.tab.mouse.move(x, y)
    page.tab.mouse.down()
    figures = page.run(ORBIT, [x, y, ORBIT_SECONDS])
    page.tab.mouse.up()
    return figures


def measure(page: Any, server_s: float) -> Figures:
    """Return the figures of a page that has just opened."""
    first = page.run("window.firstFrame") / 1000
    stats = page.run("raybox.stage.stats()")
    page.run(LISTEN)
    click = statistics.median(click_times(page))
    turned = orbit(page)
    save = "async () => (await raybox.actions.caster.save(raybox.actions.store.view())).content.length"
    saved = page.run(save)
    return Figures(
        server_s,
        first,
        click,
        turned["rate"],
        turned["rest"],
        stats["drawCalls"],
        stats["bufferBytes"] / 1e6,
        saved / 1e6,
    )


def measure_all(scenes: list[str]) -> dict[str, Any]:
    """Return the figures of scenes, with what drew them."""
    sys.path.insert(0, str(HELPERS))
    import browser

    class WatchedPage(browser.Page):
        def _tab(self) -> Any:
            tab = super()._tab()
            tab.add_init_script(WATCH)
            return tab

    size, figures, renderer = browser.Size(1280, 720, touch=False), {}, ""
    with browser.chromium() as chromium:
        for scene in scenes:
            with served(scene) as (address, seconds):
                page = WatchedPage(chromium, address, size)
                figures[scene] = measure(page, seconds)
                renderer = page.run("raybox.stage.stats().renderer")
                page.close()
            print(row(scene, figures[scene]), file=sys.stderr)
        version = chromium.version
    return {"renderer": renderer, "chromium": version, "machine": machine.describe(), "scenes": figures}


def row(scene: str, figures: Figures) -> str:
    """Return a row of the table."""
    server, first, click, rate, rest, calls, buffers, saved = figures
    cells = [f"{server:.1f}", f"{first:.2f}", f"{click:.0f}", f"{rate:.0f}", f"{rest:.1f}"]
    return f"| {' | '.join([SCENES[scene], *cells, str(calls), f'{buffers:.2g}', f'{saved:.1f}'])} |"


def table(result: dict[str, Any]) -> str:
    """Return the figures as Markdown."""
    head = [
        *("scene", "server ready, s", "first frame, s", "click to hits, ms", "frames a second, turning"),
        *("full picture at rest, s", "draw calls", "buffers, MB", "saved page, MB"),
    ]
    lines = [f"| {' | '.join(head)} |", "|---" + "|---:" * (len(head) - 1) + "|"]
    lines += [row(scene, figures) for scene, figures in result["scenes"].items()]
    words = machine.in_words(result["machine"])
    return "\n".join([*lines, "", f"{words}; Chromium {result['chromium']}, drawn by {result['renderer']}"])


def main() -> None:
    """Measure, print the table, and write the figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="+", choices=SCENES, default=list(SCENES), metavar="SCENE")
    parser.add_argument("--json", type=Path, help="a file for the figures")
    options = parser.parse_args()
    result = measure_all(options.only)
    print(table(result))
    if options.json:
        scenes = {scene: figures._asdict() for scene, figures in result["scenes"].items()}
        options.json.write_text(json.dumps(result | {"scenes": scenes}, indent=1) + "\n")


if __name__ == "__main__":
    main()
