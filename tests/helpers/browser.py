"""A headless browser that is killed, with its child processes, when its time is over."""

import contextlib
import math
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from urllib.parse import urlsplit

import numpy as np

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
WIDTH, HEIGHT = 640, 360  # half of it is the picture
TIMEOUT = 90.0  # seconds of one step: a frame of many boxes takes seconds without a GPU
_SCREENSHOTS = os.environ.get("RAYBOX_SCREENSHOTS")  # a folder for the pictures

# No GPU, no sandbox (CI runs as root), and no network traffic of the browser itself.
FLAGS = [
    *("--headless", "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader"),
    *("--enable-unsafe-swiftshader", "--ignore-gpu-blocklist", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--mute-audio"),
]


@contextlib.contextmanager
def killed_after(seconds, process):
    """Kill a process and its group after a time and at the end; yield a function that sets the time."""
    watchdogs = []

    def kill():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    def kill_after(seconds):
        for watchdog in watchdogs:
            watchdog.cancel()
        watchdogs.append(threading.Timer(seconds, kill))
        watchdogs[-1].start()

    kill_after(seconds)
    try:
        yield kill_after
    finally:
        watchdogs[-1].cancel()
        kill()
        process.wait()


@contextlib.contextmanager
def chromium(seconds):
    """Start a browser, and kill it so many seconds after it answers; calls that wait then raise."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "--remote-debugging-port=0"]
        process = subprocess.Popen(
            [*command, "about:blank"], stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        with killed_after(TIMEOUT, process) as kill_after:
            addresses = (re.search(r"listening on (ws://\S+)", line) for line in process.stderr)
            address = next(found[1] for found in addresses if found)
            threading.Thread(target=process.stderr.read, daemon=True).start()
            with sync_playwright() as run:
                browser = run.chromium.connect_over_cdp(address, timeout=1000 * TIMEOUT)
                kill_after(seconds)
                yield browser


@contextlib.contextmanager
def viewing(*arguments, seconds=300):
    """Run `raybox view` as users do, and yield its address."""
    command = [sys.executable, "-m", "raybox", "view", *map(str, arguments), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    with killed_after(seconds, process):
        yield process.stdout.readline().strip()
        assert process.poll() is None, "the server has ended"


class Page:
    """A page of the browser, and every URL that it requested."""

    def __init__(self, browser, url):
        self.requested: list[str] = []
        context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, accept_downloads=True)
        self.tab = context.new_page()
        self.tab.set_default_timeout(1000 * TIMEOUT)
        self.tab.on("request", lambda request: self.requested.append(request.url))
        self.tab.on("websocket", lambda line: self.requested.append(line.url))
        self.tab.goto(url)
        # viser's notices, of software rendering and of downloads, would lie over the picture
        self.tab.add_style_tag(content=".mantine-Notifications-root { display: none }")
        self.tab.locator("canvas").first.wait_for()

    def foreign_urls(self, known=("127.0.0.1",)):
        """Return requested URLs of hosts that are not in `known`."""
        hosts = ((u, urlsplit(u)) for u in self.requested)
        return [u for u, s in hosts if s.scheme in ("http", "https", "ws", "wss") and s.hostname not in known]

    def box(self):
        """Return x, y, width and height of the picture in the window."""
        place = max((c.bounding_box() for c in self.tab.locator("canvas").all()), key=lambda b: b["width"])
        return place["x"], place["y"], place["width"], place["height"]

    def picture(self, name):
        """Return the current picture as rows of RGB."""
        import imageio.v3 as iio

        x, y, width, height = self.box()
        shot = self.tab.screenshot(timeout=1000 * TIMEOUT)
        if _SCREENSHOTS:
            Path(_SCREENSHOTS, f"{name}.png").write_bytes(shot)
        return iio.imread(shot)[int(y) : int(y + height), int(x) : int(x + width), :3].astype(int)

    def drawn(self, name, enough, count):
        """Return the picture once `count` finds enough pixels in it."""
        deadline = time.monotonic() + TIMEOUT
        while (counted := count(picture := self.picture(name))) < enough:
            assert time.monotonic() < deadline, f"{counted} pixels of {enough}"
            time.sleep(0.2)
        return picture

    def answer(self):
        """Return row, origin and direction that the panel shows."""
        panel = self.tab.locator(".raybox-answer[data-origin]")
        panel.wait_for()
        numbers = (panel.get_attribute(f"data-{name}").split(",") for name in ("origin", "direction"))
        return int(panel.get_attribute("data-index")), *(np.array(words, float) for words in numbers)

    def download(self, press):
        """Call `press`, and return the bytes that the page then downloads."""
        with self.tab.expect_download() as download:
            press()
        with tempfile.TemporaryDirectory() as folder:
            download.value.save_as(Path(folder, "download"))
            return Path(folder, "download").read_bytes()


def colored(picture):
    """Return the number of pixels off the white background."""
    return int((picture.min(axis=2) < 235).sum())


def orange(picture):
    """Return the number of pixels of the highlight, lit or shaded."""
    r, g, b = np.moveaxis(picture, 2, 0)
    return int(((r - b > 110) & (r > g) & (g > b) & (g - b > 40)).sum())


def to_page(lower, upper):
    """Return shift and scale of page coordinates, as documented."""
    low, high = lower.min(axis=0), upper.max(axis=0)
    return (low + high) / 2, 2.0 ** (math.floor(math.log2((high - low).max() / 2)) - 1)
