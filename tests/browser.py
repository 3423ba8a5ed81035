"""A headless browser that cannot hang a test: past its time, it and all that it started are killed."""

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
WIDTH, HEIGHT = 640, 360  # the page gives half of it to the picture
PATIENCE = 90.0  # seconds for one thing to happen: a frame of many boxes takes seconds without a GPU
_KEEP = os.environ.get("RAYBOX_SCREENSHOTS")  # a folder for the pictures, to be looked at

# No GPU, no sandbox (CI runs as root), and nothing of the browser's own talks to the outside.
FLAGS = [
    *("--headless", "--no-sandbox", "--use-gl=angle", "--use-angle=swiftshader"),
    *("--enable-unsafe-swiftshader", "--ignore-gpu-blocklist", "--disable-quic", "--no-first-run"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--mute-audio"),
]


@contextlib.contextmanager
def killed_after(seconds, process):
    """Kill a process and its group when time is up, and in any case at the end."""

    def kill():
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)

    watchdog = threading.Timer(seconds, kill)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()
        kill()
        process.wait()


@contextlib.contextmanager
def chromium(seconds):
    """Start a browser, for so many seconds at most; whoever waits for it then gets an error."""
    from playwright.sync_api import sync_playwright

    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        command = [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", "--remote-debugging-port=0"]
        process = subprocess.Popen(
            [*command, "about:blank"], stderr=subprocess.PIPE, text=True, start_new_session=True
        )
        with killed_after(seconds, process):
            heard = (re.search(r"listening on (ws://\S+)", line) for line in process.stderr)
            address = next(found[1] for found in heard if found)
            threading.Thread(target=process.stderr.read, daemon=True).start()
            with sync_playwright() as run:
                yield run.chromium.connect_over_cdp(address, timeout=1000 * PATIENCE)


@contextlib.contextmanager
def viewing(*arguments, seconds=300):
    """Run `raybox view` as users do, and give its address."""
    command = [sys.executable, "-m", "raybox", "view", *map(str, arguments), "--port", "0"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True, start_new_session=True)
    with killed_after(seconds, process):
        yield process.stdout.readline().strip()
        assert process.poll() is None, "the server did not live on"


class Page:
    """A page of the browser, with every address it asked for."""

    def __init__(self, browser, url):
        self.asked: list[str] = []
        context = browser.new_context(viewport={"width": WIDTH, "height": HEIGHT}, accept_downloads=True)
        self.tab = context.new_page()
        self.tab.set_default_timeout(1000 * PATIENCE)
        self.tab.on("request", lambda request: self.asked.append(request.url))
        self.tab.on("websocket", lambda line: self.asked.append(line.url))
        self.tab.goto(url)
        # viser's notices, of software rendering and of downloads, would lie over the picture
        self.tab.add_style_tag(content=".mantine-Notifications-root { display: none }")
        self.tab.locator("canvas").first.wait_for()

    def strangers(self, known=("127.0.0.1",)):
        """Give the addresses asked for that are not of this machine."""
        hosts = ((u, urlsplit(u)) for u in self.asked)
        return [u for u, s in hosts if s.scheme in ("http", "https", "ws", "wss") and s.hostname not in known]

    def box(self):
        """Give the place of the picture in the window."""
        place = max((c.bounding_box() for c in self.tab.locator("canvas").all()), key=lambda b: b["width"])
        return place["x"], place["y"], place["width"], place["height"]

    def picture(self, name):
        """Take the picture as it is now, as rows of RGB."""
        import imageio.v3 as iio

        x, y, width, height = self.box()
        shot = self.tab.screenshot(timeout=1000 * PATIENCE)
        if _KEEP:
            Path(_KEEP, f"{name}.png").write_bytes(shot)
        return iio.imread(shot)[int(y) : int(y + height), int(x) : int(x + width), :3].astype(int)

    def drawn(self, name, enough, count):
        """Wait until enough pixels are of a kind, and give the picture."""
        deadline = time.monotonic() + PATIENCE
        while (seen := count(picture := self.picture(name))) < enough:
            assert time.monotonic() < deadline, f"{seen} pixels of {enough}"
            time.sleep(0.2)
        return picture

    def answer(self):
        """Give the row and the ray that the panel names."""
        panel = self.tab.locator(".raybox-answer[data-origin]")
        panel.wait_for()
        numbers = (panel.get_attribute(f"data-{name}").split(",") for name in ("origin", "direction"))
        return int(panel.get_attribute("data-index")), *(np.array(words, float) for words in numbers)

    def download(self, press):
        """Press something and give the bytes that the page then has saved."""
        with self.tab.expect_download() as begun:
            press()
        with tempfile.TemporaryDirectory() as folder:
            begun.value.save_as(Path(folder, "download"))
            return Path(folder, "download").read_bytes()


def colored(picture):
    """Count pixels that are not of the white ground."""
    return int((picture.min(axis=2) < 235).sum())


def orange(picture):
    """Count pixels of the highlight, in the light or in the shade."""
    r, g, b = np.moveaxis(picture, 2, 0)
    return int(((r - b > 110) & (r > g) & (g > b) & (g - b > 40)).sum())


def to_page(lower, upper):
    """Give what the docs say of the page's numbers: shift and scale."""
    low, high = lower.min(axis=0), upper.max(axis=0)
    return (low + high) / 2, 2.0 ** (math.floor(math.log2((high - low).max() / 2)) - 1)
