"""Write the pictures of docs/view.md: the page in a browser without a window.

``python docs/view_pictures.py [--only view view_rays]``.
"""

import argparse
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from PIL import Image

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

from browser import PHONE, WIDE, Page, Size, chromium, served  # noqa: E402

MOST_BYTES = 200_000
CITY = [84925, 447550, 3]  # among its buildings, in metres
TURN = """([turn, rise, nearer, target]) => {
    const { stage } = raybox, camera = stage.camera();
    if (target) camera.eye = camera.eye.map((value, axis) => value + target[axis] - camera.target[axis]);
    if (target) camera.target = target;
    const away = camera.eye.map((value, axis) => value - camera.target[axis]);
    const around = Math.atan2(away[1], away[0]) + turn * Math.PI / 180;
    const height = Math.asin(away[2] / Math.hypot(...away)) + rise * Math.PI / 180;
    const distance = Math.hypot(...away) / nearer;
    const flat = distance * Math.cos(height);
    const step = [flat * Math.cos(around), flat * Math.sin(around), distance * Math.sin(height)];
    camera.eye = camera.target.map((value, axis) => value + step[axis]);
    stage.setCamera(camera);
}"""


def turn(page: Page, around: float, rise: float, nearer: float = 1.0, target: Any = None) -> None:
    """Turn the camera by degrees about its target, and bring it nearer."""
    page.run(TURN, [around, rise, nearer, target])
    page.settled()


def pick_a_wall(page: Page) -> None:
    """Click a wall, and turn until the ray and its marks show."""
    turn(page, 10, -8, 1.15)
    page.pick(660, 400)
    turn(page, -22, 2)


def table_of_rays(page: Page) -> None:
    """Show rays that hit, coloured by distance as the points are, and choose a row."""
    page.show("rays")
    page.press("rays-hits")
    page.find("rays-colour").select_option("distance")
    turn(page, 0, 0, 1.6)
    page.press("rays-table-sort-2")
    page.find("rays-table").locator("[data-row]").nth(3).click()


def section(page: Page) -> None:
    """Cut the house above the upper floor, and click into a room."""
    page.show("cut")
    page.slide("cut-z-1", 0.62)
    turn(page, -15, 14)
    page.pick(490, 440)


def search(page: Page) -> None:
    """Find the stairs, which then show through walls."""
    turn(page, -15, -8)
    page.find("find").fill("stair")
    page.until("document.querySelectorAll('[data-test=result]').length > 1")
    page.press("select-found")


def explanation(page: Page) -> None:
    """Explain a ray and a voxel."""
    page.show("colour")
    page.pick(600, 400)
    page.press("zoom")
    page.press("fade")
    turn(page, -10, 0, 0.4)
    page.press("explain")
    page.until("document.querySelector('[data-test=explanation] svg')")


def colours_of_a_city(page: Page) -> None:
    """Colour buildings by their height."""
    page.show("colour")
    page.find("colour-by").select_option(label="measuredHeight")
    turn(page, 20, 2, 2.1, CITY)


def voxels(page: Page) -> None:
    """Colour voxels by height, click one, and turn until the ray shows."""
    page.show("colour")
    page.find("colour-by").select_option(label="height")
    page.pick(560, 420)
    turn(page, -18, 3)


def phone(page: Page) -> None:
    """Tap a window."""
    page.pick(195, 380)


class Picture(NamedTuple):
    """A scene of tests/helpers/view_scenes.py, what is done to it, and the window."""

    scene: str
    act: Callable[[Page], None]
    size: Size = WIDE


PICTURES = {
    "view": Picture("house", pick_a_wall),
    "view_rays": Picture("lidar", table_of_rays),
    "view_cut": Picture("house", section),
    "view_find": Picture("house", search),
    "view_explain": Picture("shop", explanation),
    "view_city": Picture("city", colours_of_a_city),
    "view_voxels": Picture("shop", voxels),
    "view_phone": Picture("house", phone, PHONE),
}


def draw(browser: Any, picture: Picture, address: str) -> Image.Image:
    """Return what the page shows after the actions."""
    page = Page(browser, address, picture.size)
    picture.act(page)
    page.settled()
    page.tab.mouse.move(1, picture.size.height - 1)  # no tooltip, no button under the pointer
    page.settled()
    image = Image.open(io.BytesIO(page.tab.screenshot())).convert("RGB")
    page.close()
    return image


def write(image: Image.Image, path: Path) -> None:
    """Write a picture in 256 colours."""
    image.quantize(256, method=Image.Quantize.MAXCOVERAGE, kmeans=3).save(path, optimize=True)
    size = path.stat().st_size
    print(f"{path}: {size:,} bytes")
    if size > MOST_BYTES:
        raise SystemExit(f"{path} has more than {MOST_BYTES:,} bytes")


def main() -> None:
    """Draw and write pictures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=PICTURES, default=list(PICTURES), metavar="NAME")
    with chromium() as browser:
        for name in parser.parse_args().only:
            picture = PICTURES[name]
            write(draw(browser, picture, served(picture.scene).url), IMAGES / f"{name}.png")


if __name__ == "__main__":
    main()
