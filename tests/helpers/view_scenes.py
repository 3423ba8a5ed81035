"""The scenes of the tests of the page; as a program, writes the frames of one, or serves it.

python tests/helpers/view_scenes.py frames house house.frames     # u64 length before each frame
python tests/helpers/view_scenes.py serve lidar 8080
python tests/helpers/view_scenes.py html shop shop.html
"""

import csv
import struct
import sys
from functools import partial
from pathlib import Path

import numpy as np

import raybox as rb
from raybox.io.formats.scans import Scan
from raybox.viewer.content import PageContent, make_content
from raybox.viewer.stage import make_stage
from real_data import CITY, HOUSE, LIDAR, SHOP

FIELDS = {"intensity": "intensity", "time": "t"}  # of points, and of the arrays of the lidar frame
HOUSE_CREDIT = 'BSI (2020) "Duplex Apartment Test Files", buildingSMART International, CC BY 4.0'


def house() -> PageContent:
    return make_content(make_stage(HOUSE, credit=HOUSE_CREDIT))


def house_boxes() -> PageContent:
    return make_content(make_stage(HOUSE, boxes=True, credit=HOUSE_CREDIT))


def city() -> PageContent:
    return make_content(make_stage(CITY, credit="3D geoinformation group, TU Delft"))


def shop() -> PageContent:
    grid = rb.load_grid(SHOP)
    return make_content(make_stage(grid, SHOP.name, credit="Mike Judge, CC BY 4.0"))


def cuboids() -> rb.Instances:
    """Return the labelled boxes of a lidar frame, with their classes."""
    with (LIDAR / "cuboids.csv").open() as file:
        rows = list(csv.DictReader(file))
    centers, sizes = (
        np.array([[float(row[f"{name}.{axis}"]) for axis in "xyz"] for row in rows])
        for name in ("position", "dimensions")
    )
    return rb.Instances.oriented_boxes(
        centers,
        sizes,
        yaw=[float(row["yaw"]) for row in rows],
        ids=[row["uuid"] for row in rows],
        labels={"label": [row["label"] for row in rows]},
    )


def lidar() -> PageContent:
    with np.load(LIDAR / "frame.npz") as frame:
        is_spinning = frame["sensor"] == 0
        points = frame["xyz"][is_spinning].astype(np.float64)
        fields = {name: frame[own][is_spinning].astype(np.float64) for name, own in FIELDS.items()}
    stage = make_stage(cuboids(), "pandaset_frame", credit="PandaSet, Hesai and Scale AI, CC BY 4.0")
    return make_content(stage, Scan(rb.Rays(np.zeros(3), points), fields, has_points=True))


def random_boxes(count: int = 100_000) -> PageContent:
    generator = np.random.default_rng(1)
    centers = generator.uniform(0, 1000, (count, 3)) + np.array([84900.0, 447500.0, 0.0])
    halves = generator.uniform(0.2, 2.0, (count, 3))
    volume = halves.prod(axis=1) * 8
    sizes = np.array(["small", "medium", "large", "huge"])[np.digitize(volume, [4.0, 12.0, 24.0])]
    boxes = rb.Boxes(centers - halves, centers + halves, labels={"class": sizes, "volume": volume})
    return make_content(make_stage(boxes, f"{count} random boxes"))


def million_rays() -> PageContent:
    generator, stage = np.random.default_rng(1), house_boxes().stage
    rays = rb.Rays(generator.uniform(*stage.scene.bounds, (10**6, 3)), generator.normal(size=(10**6, 3)))
    return make_content(stage, rays)


SCENES = {
    "house": house,
    "house_boxes": house_boxes,
    "city": city,
    "shop": shop,
    "lidar": lidar,
    "boxes": random_boxes,
}
LARGE = {
    "million_boxes": partial(random_boxes, 1_000_000),
    "million_rays": million_rays,
}  # too large for tests


def write_frames(content: PageContent, path: Path) -> None:
    parts = (part for one in content.frames for part in (struct.pack("<Q", len(one)), one))
    path.write_bytes(b"".join(parts))


def main(action: str, name: str, target: str) -> None:
    content = (SCENES | LARGE)[name]()
    if action == "frames":
        write_frames(content, Path(target))
    elif action == "html":
        Path(target).write_bytes(content.saved())
    else:
        from raybox.viewer.viewer import Viewer

        with Viewer(content, "127.0.0.1", int(target)) as viewer:
            print(viewer.url, flush=True)
            viewer.wait()


if __name__ == "__main__":
    main(*sys.argv[1:4])
