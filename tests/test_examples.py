"""Every example runs without a screen, prints its results, and saves pictures that are not empty."""

import os
import subprocess
import sys
from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from real_data import CITY, LIDAR, SHOP, SKULL

ROOT = Path(__file__).parents[1]
GALLERY = ROOT / "docs" / "images" / "gallery"
EXAMPLES = {
    "culling": ["culling"],
    "daylight": ["daylight"],
    "five_rays": ["five_rays"],
    "lidar_sweep": ["lidar_sweep"],
    "line_of_sight": ["line_of_sight"],
    "pick_in_a_building": ["pick_in_a_building"],
    "shared_faces": ["shared_faces"],
    "slabs": ["slabs_hit", "slabs_miss", "slabs_3d", "slabs_inside", "slabs_corner"],
    "tomography": ["tomography"],
}
REAL = {
    "culling": SKULL,
    "daylight": SHOP,
    "lidar_sweep": LIDAR,
    "line_of_sight": CITY,
    "shared_faces": SHOP,
}


def run(name, folder, *options):
    command = [sys.executable, str(ROOT / "examples" / f"{name}.py"), str(folder), *map(str, options)]
    environment = {k: v for k, v in os.environ.items() if k not in ("DISPLAY", "MPLBACKEND")}
    return subprocess.run(command, capture_output=True, text=True, check=True, env=environment).stdout


def assert_not_empty(path):
    picture = (255 * matplotlib.image.imread(path)[..., :3]).astype(int)
    assert min(picture.shape[:2]) > 300
    colours = picture @ [65536, 256, 1]
    ground = (colours == colours[0, 0]).mean()
    assert 0.02 < ground < 0.97, ground
    assert len(np.unique(colours)) > 50


def test_every_example_is_run():
    scripts = {path.stem for path in (ROOT / "examples").glob("*.py")} - {"common"}
    assert scripts == set(EXAMPLES)


@pytest.mark.long
@pytest.mark.parametrize("name", EXAMPLES)
def test_an_example_runs_anywhere(name, tmp_path):
    out = run(name, tmp_path)
    assert sorted(path.stem for path in tmp_path.iterdir()) == sorted(EXAMPLES[name])
    for path in tmp_path.iterdir():
        assert f"picture: {path}" in out
        assert_not_empty(path)
    assert ("for want of --data" in out) == (name in REAL)
    assert "False" not in out or name == "five_rays"
    if name == "five_rays":
        assert "hit: [True, False, False, True, False]" in out


@pytest.mark.long
@pytest.mark.parametrize("name", REAL)
def test_an_example_runs_on_real_data(name, tmp_path):
    out = run(name, tmp_path, "--data", REAL[name])
    assert "for want of" not in out
    assert "False" not in out
    assert_not_empty(tmp_path / f"{name}.png")


def test_the_gallery_is_complete_small_and_credited():
    pictures = {path.stem: path for path in GALLERY.glob("*.png")}
    assert set(pictures) == {name for names in EXAMPLES.values() for name in names}
    pages = "".join(page.read_text() for page in (ROOT / "docs").glob("*.md"))
    credits = (GALLERY / "CREDITS.md").read_text()
    for path in pictures.values():
        assert path.stat().st_size < 700_000
        assert f"images/gallery/{path.name}" in pages
        assert_not_empty(path)
    for name in [*REAL, "pick_in_a_building"]:
        assert f"{name}.png" in credits
