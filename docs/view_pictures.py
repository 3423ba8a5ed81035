"""Write the pictures of docs/view.md: the page in a browser without a window.

``python docs/view_pictures.py [--only view view_rays]``.
"""

import argparse
import io
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import trimesh
from PIL import Image
from trimesh.visual.material import PBRMaterial

import raybox as rb

ROOT = Path(__file__).parents[1]
IMAGES = ROOT / "docs" / "images"
sys.path.insert(0, str(ROOT / "tests" / "helpers"))

from browser import PHONE, WIDE, Page, Size, chromium, served  # noqa: E402
from raybox.viewer.content import PageContent, make_content  # noqa: E402
from raybox.viewer.stage import make_stage, stage_of_bytes  # noqa: E402
from raybox.viewer.viewer import Viewer  # noqa: E402
from real_data import SKULL  # noqa: E402
from view_scenes import million_rays  # noqa: E402

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


def skull() -> PageContent:
    """Return a scanned skull."""
    return make_content(make_stage(SKULL))


def parts() -> PageContent:
    """Return a GLB file of spheres and boxes, some of glass."""
    generator, scene = np.random.default_rng(3), trimesh.Scene()
    for number in range(40):
        box, ball = generator.uniform(0.3, 1.5, 3), generator.uniform(0.3, 0.8)
        part = trimesh.creation.box(box) if number % 2 else trimesh.creation.icosphere(3, ball)
        part.apply_translation(generator.uniform(-4, 4, 3))
        color, is_glass = generator.uniform(0.2, 1.0, 3), number % 5 == 0
        material = PBRMaterial(
            baseColorFactor=[*color, 0.4 if is_glass else 1.0], alphaMode="BLEND" if is_glass else "OPAQUE"
        )
        part.visual = trimesh.visual.TextureVisuals(material=material)
        scene.add_geometry(part, node_name=f"part {number}")
    return make_content(stage_of_bytes("parts.glb", scene.export(file_type="glb")))


def flat() -> PageContent:
    """Return a map in 2D, with rays from one point in all directions."""
    generator = np.random.default_rng(1)
    low = generator.uniform(0, 100, (300, 2))
    names = generator.choice(["building", "road", "water"], 300)
    boxes = rb.Boxes(low, low + generator.uniform(1, 6, (300, 2)), labels={"class": names})
    angles = np.linspace(0, 2 * np.pi, 80, endpoint=False)
    rays = rb.Rays([50, 50], np.stack([np.cos(angles), np.sin(angles)], axis=1))
    return make_content(make_stage(boxes, "map in 2D"), rays)


def empty() -> PageContent:
    """Return a scene without objects."""
    return make_content(make_stage(rb.Boxes(np.zeros((0, 3)), np.zeros((0, 3))), "no boxes"))


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
    """Click a voxel, and turn until the ray shows."""
    page.show("colour")
    page.pick(560, 420)
    turn(page, -18, 3)


def plan(page: Page) -> None:
    """Show the plan of the lower floor, and measure a room."""
    page.show("cut")
    page.press("storey-Level 1")
    page.settled()
    page.press("measure")
    for x, y in ((338, 450), (490, 450)):
        page.click(x, y)
        page.settled()


def residuals(page: Page) -> None:
    """Colour points by cast minus measured distance."""
    page.show("rays")
    page.find("points-colour").select_option("residual")
    turn(page, 0, 0, 1.6)


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
    "view_residuals": Picture("lidar", residuals),
    "view_cut": Picture("house", section),
    "view_plan": Picture("house", plan),
    "view_find": Picture("house", search),
    "view_explain": Picture("shop", explanation),
    "view_city": Picture("city", colours_of_a_city),
    "view_voxels": Picture("shop", voxels),
    "view_phone": Picture("house", phone, PHONE),
}
FIRST_VIEWS = [
    *("house", "city", "shop", "lidar", "boxes"),
    *{"million_rays": million_rays, "skull": skull, "parts": parts, "flat": flat, "empty": empty}.items(),
]
SHEET, COLUMNS, GAP = "view_scenes", 2, 6
PART = 0.5  # of its size, of a picture in the sheet


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


def sheet(browser: Any) -> Image.Image:
    """Return the first views of scenes, each on a desktop and on a phone."""
    rows = []
    for one in FIRST_VIEWS:
        name, make = one if isinstance(one, tuple) else (one, None)
        made = Viewer(make(), "127.0.0.1", 0) if make else None
        address = made.url if made else served(name).url
        pair = [draw(browser, Picture(name, lambda _: None, size), address) for size in (WIDE, PHONE)]
        rows.append([image.resize([round(PART * n) for n in image.size]) for image in pair])
        if made:
            made.stop()
    width = sum(image.width + GAP for image in rows[0])
    height = max(image.height for image in rows[0]) + GAP
    whole = Image.new("RGB", (COLUMNS * width, -(-len(rows) // COLUMNS) * height), "white")
    for k, (wide, narrow) in enumerate(rows):
        x, y = k % COLUMNS * width, k // COLUMNS * height
        whole.paste(wide, (x, y))
        whole.paste(narrow, (x + wide.width + GAP, y))
    return whole


def write(image: Image.Image, path: Path, most: int = MOST_BYTES) -> None:
    """Write a picture in 256 colours."""
    image.quantize(256, method=Image.Quantize.MAXCOVERAGE, kmeans=3).save(path, optimize=True)
    size = path.stat().st_size
    print(f"{path}: {size:,} bytes", flush=True)
    if size > most:
        raise SystemExit(f"{path} has more than {most:,} bytes")


def main() -> None:
    """Draw and write pictures."""
    names = [*PICTURES, SHEET]
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="+", choices=names, default=names, metavar="NAME")
    with chromium() as browser:
        for name in parser.parse_args().only:
            if name == SHEET:
                write(sheet(browser), IMAGES / f"{name}.png", 6 * MOST_BYTES)
                continue
            picture = PICTURES[name]
            write(draw(browser, picture, served(picture.scene).url), IMAGES / f"{name}.png")


if __name__ == "__main__":
    main()
