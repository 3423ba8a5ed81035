"""Measure how long the viewer takes to draw a frame and to show the result of a click, in a browser.

    python benchmarks/viewer.py --boxes 100000            # headless, drawn by the CPU
    python benchmarks/viewer.py --boxes 100000 --headed   # in a window, drawn by the GPU if there is one

A frame's time runs from one frame to the next while the camera turns, until its pixels can be read back. A
click is timed twice: in Python, for the result and its text, and in the browser, from the release of the
button until the page shows the result.
"""

import argparse
import platform
import shutil
import statistics
import time
from importlib import metadata
from typing import Any

import numpy as np

import raybox as rb
from raybox.bench.machine import cpu_model
from raybox.viewer.page import Viewer

SOFTWARE = [
    *("--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"),
    *("--ignore-gpu-blocklist", "--disable-quic", "--no-first-run", "--disable-background-networking"),
]
TIMEOUT = 180_000  # milliseconds

TURN = """async (seconds) => {
  const inside = window.__viserMutable, info = window.__viserTestpoints.rendererInfo;
  const canvas = [...document.querySelectorAll("canvas")].sort((a, b) => b.width - a.width)[0];
  const gl = canvas.getContext("webgl2"), pixel = new Uint8Array(4), times = [];
  const named = gl.getExtension("WEBGL_debug_renderer_info");
  let calls = 0, last = null, frame = info.render.frame;
  for (const end = performance.now() + 1000 * seconds; performance.now() < end || times.length < 3; ) {
    inside.cameraControl.rotate(0.02, 0, false);
    inside.requestRender();
    await new Promise(requestAnimationFrame);
    if (info.render.frame === frame) continue;
    frame = info.render.frame;
    calls = info.render.calls;
    gl.readPixels(0, 0, 1, 1, gl.RGBA, gl.UNSIGNED_BYTE, pixel);
    if (last !== null) times.push(performance.now() - last);
    last = performance.now();
  }
  const by = gl.getParameter(named.UNMASKED_RENDERER_WEBGL);
  return {times, calls, by, size: [canvas.width, canvas.height]};
}"""

WATCH = """() => {
  window.clicks = [];
  window.addEventListener("pointerup", () => { window.released = performance.now(); }, true);
  new MutationObserver(() => {
    const answer = document.querySelector(".raybox-answer");
    const ray = answer && answer.dataset.origin + answer.dataset.direction;
    if (ray && ray !== window.lastRay) {
      window.lastRay = ray;
      window.clicks.push(performance.now() - window.released);
    }
  }).observe(document.body, {subtree: true, childList: true, attributes: true});
}"""


def scene(count: int) -> rb.Boxes:
    """Return random boxes in a unit cube, half as wide as their distance."""
    rng = np.random.default_rng(1)
    lower = rng.uniform(size=(count, 3))
    return rb.Boxes(lower, lower + 0.5 * count ** (-1 / 3) * rng.uniform(0.2, 1.0, (count, 3)))


def frames(page: Any, seconds: float) -> str:
    """Turn the camera, and return the times of frames as text."""
    measured = page.evaluate(TURN, seconds)
    (width, height), times = measured["size"], measured["times"]
    return (
        f"a frame of {width} x {height} pixels in {measured['calls']} draw calls: {summary(times)}\n"
        f"drawn by: {measured['by']}"
    )


def clicks_in_the_page(page: Any, count: int) -> list[float]:
    """Click near the middle, and return the milliseconds until each result is shown."""
    page.evaluate(WATCH)
    place = max((c.bounding_box() for c in page.locator("canvas").all()), key=lambda box: box["width"])
    for k in range(count):
        page.mouse.click(place["x"] + place["width"] / 2 + 3 * k, place["y"] + place["height"] / 2 - 2 * k)
        page.wait_for_function(f"window.clicks.length > {k}")
        page.wait_for_timeout(1000)
    return list(page.evaluate("window.clicks"))


def clicks_in_python(viewer: Viewer, count: int) -> list[float]:
    """Return the milliseconds of clicks from all sides, in Python."""
    rng, milliseconds = np.random.default_rng(2), []
    for side in rng.normal(size=(count, 3)):
        eye = 0.5 + 2.0 * side / np.linalg.norm(side)
        started = time.perf_counter()
        viewer.click(eye, rng.uniform(0.3, 0.7, 3) - eye)
        milliseconds.append(1000 * (time.perf_counter() - started))
    return milliseconds


def summary(times: list[float]) -> str:
    """Return the median and the largest of some times as text."""
    return f"{statistics.median(times):.3g} ms (median of {len(times)}, at most {max(times):.3g} ms)"


def main() -> None:
    """Open the viewer in a browser, and print the times."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--boxes", type=int, default=100_000)
    parser.add_argument("--scene", help="a file, in place of boxes at random")
    parser.add_argument("--window", default="1280x720")
    parser.add_argument("--seconds", type=float, default=10.0)
    parser.add_argument("--headed", action="store_true")
    parser.add_argument("--browser", default=shutil.which("chromium") or shutil.which("google-chrome"))
    options = parser.parse_args()
    from playwright.sync_api import sync_playwright

    width, height = map(int, options.window.split("x"))
    flags: dict[str, Any] = {"headless": not options.headed, "args": [] if options.headed else SOFTWARE}
    with rb.view(options.scene or scene(options.boxes), port=0) as viewer, sync_playwright() as run:
        browser = run.chromium.launch(executable_path=options.browser, **flags)
        page = browser.new_context(viewport={"width": width, "height": height}).new_page()
        page.set_default_timeout(TIMEOUT)
        page.goto(viewer.url)
        page.get_by_text("Click on the scene").wait_for()
        versions = f"viser {metadata.version('viser')}, Chromium {browser.version}"
        print(f"{cpu_model()}; Python {platform.python_version()}, NumPy {np.__version__}, {versions}")
        print(f"{len(viewer.stage.scene):,} boxes, window {options.window}; {frames(page, options.seconds)}")
        print(f"a click in the page: {summary(clicks_in_the_page(page, 7))}")
        print(f"a click in Python: {summary(clicks_in_python(viewer, 200))}")
        browser.close()


if __name__ == "__main__":
    main()
