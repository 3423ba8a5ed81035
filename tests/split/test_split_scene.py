"""rb.SplitScene: results of the whole scene, bit for bit; no ray visits a part that cannot matter."""

import gc
import os
import shutil
import weakref
from itertools import pairwise

import numpy as np
import pytest

import exact
import families
import families_surfaces
import raybox as rb
from compare import assert_same, assert_scene
from raybox.queries.nearest.query import NearestParts
from raybox.split import partition
from raybox.split.open_parts import OpenParts
from scenes import as_rays, random_scene, truth

FULL = ("index", "t", "t_enter", "t_exit")
PITCH = 0.25


def split(boxes, **how):
    scene = rb.SplitScene(boxes, **({} if "max_boxes" in how else {"parts": 8}) | how)
    scene.check()
    return scene


def part_of(scene):
    """Return the part of each box, from the files."""
    part = np.full(len(scene), -1)
    for k in range(scene.parts):
        part[np.load(scene.folder / f"part-{k:05}" / "numbers.npy")] = k
    return part


def corners(scene, lower, upper):
    """Return the bounds of the parts, from the boxes."""
    part = part_of(scene)
    sides = [(lower[part == k].min(axis=0), upper[part == k].max(axis=0)) for k in range(scene.parts)]
    return tuple(np.array(side) for side in zip(*sides, strict=True))


def check_visits(scene, pairs, found):
    """Compare the visits of each ray with the definition: parts entered no later than the first contact."""
    rays, cut_short = as_rays(pairs), 0
    entered = list(exact.along(*pairs[:4], *corners(scene, *pairs[4:])))
    times = [[f.plain[1] for f in row] for row in entered]
    first = [row[0].plain[1] if row else np.inf for row in found]
    wanted = [sum(t <= stop for t in row) for row, stop in zip(times, first, strict=True)]
    np.testing.assert_array_equal(scene.visits(rays), wanted)
    for query in ("count", "all"):
        np.testing.assert_array_equal(scene.visits(rays, query), [len(row) for row in times])
    met = scene.visits(rays, "occluded")
    np.testing.assert_array_equal(
        met[[not row for row in found]], np.array(wanted)[[not row for row in found]]
    )
    assert (met >= [bool(row) for row in found]).all()
    cut_short = sum(len(row) > n for row, n in zip(times, wanted, strict=True))
    return cut_short, np.array(wanted)


# Every query, against the truth


@pytest.mark.parametrize("name", families.FAMILIES)
def test_a_family_in_eight_parts(name):
    pairs = families.scene(name, 3, n_boxes=72, n_rays=60)
    found = truth(pairs)
    scene = split(rb.Boxes(*pairs[4:]))
    assert scene.parts == 8
    assert_scene(scene, as_rays(pairs), found, ks=(1, 3, 80))
    part = part_of(scene)
    apart = [row for row in found if len({part[f.index] for f in row if f.t == row[0].t}) > 1]
    assert sum(map(bool, found)) > 10
    assert apart, "no ray hits boxes of two parts at the same time"
    _, visits = check_visits(scene, pairs, found)
    assert visits.sum() >= sum(map(bool, found))


def voxels(n=6):
    """Cells of a grid, which share faces, and rays along their faces, edges and diagonals."""
    boxes = rb.Boxes.of_voxels(np.ones((n, n, n), int), origin=[-1, 0, 2], pitch=PITCH)
    rng = np.random.default_rng(8)
    start = np.array([-1, 0, 2]) + PITCH * rng.integers(-2, n + 3, (250, 3))
    way = rng.integers(-1, 2, (250, 3)) * 1.0
    t_max = rng.choice([np.inf, PITCH, 2 * PITCH], 250)
    return exact_pairs(start, way, np.zeros(250), t_max, boxes.lower, boxes.upper)


def exact_pairs(*arrays):
    return families.Pairs(*(np.ascontiguousarray(array, float) for array in arrays))


def test_cells_that_share_faces():
    """Ties resolve by number, wherever the parts are cut; bounds of parts touch each other."""
    pairs = voxels()
    found = truth(pairs)
    scene = split(rb.Boxes(*pairs[4:]))
    assert_scene(scene, as_rays(pairs), found, ks=(1, 2, 5))
    part = part_of(scene)
    first = [[f.index for f in row if f.t == row[0].t] for row in found if row]
    apart = [row for row in first if len(set(part[row])) > 1]
    assert len(apart) > 20
    assert any(part[min(row)] != part[max(row)] for row in apart)
    low, high = corners(scene, *pairs[4:])
    touching = sum(
        (low[a] <= high[b]).all() and (low[b] <= high[a]).all() for a in range(8) for b in range(a)
    )
    assert touching > 8
    cut, _ = check_visits(scene, pairs, found)
    assert cut > 30, "every ray visits all parts that it enters"


@pytest.mark.parametrize("dim", [2, 3])
@pytest.mark.parametrize("parts", [1, 3, 8, 40])
def test_any_number_of_parts(dim, parts):
    pairs = random_scene(parts, 40, 120, dim, size=0.9)
    found = truth(pairs)
    scene = split(rb.Boxes(*pairs[4:]), parts=parts)
    assert scene.parts == parts
    assert_scene(scene, as_rays(pairs), found, ks=(1, 4, 50))
    check_visits(scene, pairs, found)


def whole_and_split(n=3000, rays=4000, size=0.1, **how):
    pairs = random_scene(5, n, rays, size=size)
    boxes = rb.Boxes(*pairs[4:])
    return rb.Scene(boxes), split(boxes, **how), as_rays(pairs)


def check(whole, scene, rays, **how):
    """Compare the results of every query with the whole scene's, derived fields too."""
    assert_same(
        scene.nearest(rays, **how), whole.nearest(rays, **how), (*FULL, "points", "normals", "uv", "hit")
    )
    assert_same(scene.first(rays, 3, **how), whole.first(rays, 3, **how), (*FULL, "normals"))
    assert_same(scene.all(rays, **how), whole.all(rays, **how), ("offsets", "ray", *FULL, "lengths"))
    np.testing.assert_array_equal(scene.occluded(rays, **how), whole.occluded(rays, **how))
    np.testing.assert_array_equal(scene.count(rays, **how), whole.count(rays, **how))


def test_thousands_of_boxes_and_rays_of_any_shape():
    whole, scene, rays = whole_and_split()
    check(whole, scene, rays)
    check(whole, scene, rays.reshape(40, -1), workers=2)
    check(whole, scene, rays[7])
    check(whole, scene, rays[:0])
    assert 0 < np.count_nonzero(scene.occluded(rays)) < len(rays)
    np.testing.assert_array_equal(scene.bounds, whole.bounds)
    assert (len(scene), scene.ndim_space) == (3000, 3)
    assert repr(scene) == "SplitScene(3000 boxes, D=3, 8 parts)"


@pytest.mark.core
def test_where():
    whole, scene, rays = whole_and_split(600, 500, size=0.4)
    mask = np.random.default_rng(1).random(600) < 0.5
    check(whole, scene, rays, where=mask)
    check(whole, scene, rays, where=np.zeros(600, bool))
    with pytest.raises(rb.InvalidInput, match="one bool for each of the scene's 600 rows"):
        scene.nearest(rays, where=mask[:7])


def test_a_mesh():
    pairs = families_surfaces.triangles(4, 90)
    mesh = rb.Mesh(pairs.corners.reshape(-1, 3), np.arange(270).reshape(-1, 3))
    rays = rb.Rays(pairs.origins, pairs.directions, t_min=pairs.t_min, t_max=pairs.t_max)
    whole, scene = rb.Scene(mesh), split(mesh)
    check(whole, scene, rays)
    check(whole, scene, rays, cull="back")
    assert scene.parts == 8
    assert np.count_nonzero(scene.nearest(rays).hit) > np.count_nonzero(scene.nearest(rays, cull="back").hit)
    with pytest.raises(rb.InvalidInput, match='cull="back" is for Planes and Mesh; got Boxes'):
        split(rb.Boxes([0, 0, 0], [1, 1, 1])).count(rays, cull="back")


# Nothing there


def test_nothing_at_all():
    rays = rb.Rays([[0, 0, 0]], [[1, 0, 0]])
    scene = split(rb.Boxes(np.empty((0, 3)), np.empty((0, 3))))
    assert (scene.parts, len(scene)) == (0, 0)
    check(rb.Scene(rb.Boxes(np.empty((0, 3)), np.empty((0, 3)))), scene, rays)
    assert scene.visits(rays).tolist() == [0]
    assert len(split(iter(()))) == 0


def test_boxes_without_bounds_and_without_points():
    inf = np.inf
    boxes = rb.Boxes(
        [[-inf] * 3, [inf] * 3, [0, 0, 0], [-inf] * 3, [4, -inf, 0]],
        [[inf] * 3, [inf] * 3, [1, 1, 1], [-inf] * 3, [5, inf, inf]],
    )
    rays = rb.Rays.lines([[0.5, 0.5, 0.5], [9, 9, 9], [-3, 0, 0]], [[1, 0, 0], [0, 1, 0], [0, 0, 0]])
    for parts in (1, 2, 5):
        check(rb.Scene(boxes), split(boxes, parts=parts), rays)


def test_invalid_rays():
    whole, scene, _ = whole_and_split(100, 10)
    bad = np.array([[np.nan, 0, 0], [0, 0, 0]])
    check(whole, scene, rb.Rays(bad, [[1, 0, 0], [1, 1, 1]], invalid="miss"))


# Memory


def test_parts_are_closed_where_memory_is_short(monkeypatch):
    pairs = random_scene(6, 1000, 300, size=0.2)
    boxes, rays = rb.Boxes(*pairs[4:]), as_rays(pairs)
    folder_bytes = rb.SplitScene(boxes)._open_parts.bytes
    limit = 2 * max(folder_bytes)
    scene = split(boxes, memory=limit)
    scenes, alive, get = [], [], OpenParts.get

    def watched(parts, part):
        found = get(parts, part)
        scenes.append(weakref.ref(found.scene))
        alive.append(len({id(r()) for r in scenes if r() is not None}))
        return found

    monkeypatch.setattr(OpenParts, "get", watched)
    check(rb.Scene(boxes), scene, rays)
    parts = scene._open_parts
    assert max(alive) == 2
    assert max(folder_bytes) < parts.most_bytes <= limit < sum(parts.bytes)
    assert parts.opened > 8
    with pytest.raises(rb.InvalidInput, match=r"memory must hold the largest part, [\d,]+ bytes; got 1,000"):
        split(boxes, memory=1000)


def test_only_rays_that_wait_visit_a_part(monkeypatch):
    """`visits` counts the rays that each part gets."""
    _, scene, rays = whole_and_split()
    visited = np.zeros(len(rays), np.int64)
    visit = NearestParts.visit

    def counted(question, part, which, how):
        assert len(how["rays"]) == len(which)
        np.add.at(visited, which, 1)
        visit(question, part, which, how)

    monkeypatch.setattr(NearestParts, "visit", counted)
    visits = scene.visits(rays)
    np.testing.assert_array_equal(visited, visits)
    assert visits.max() > 2
    assert visits.mean() < 0.5 * scene.visits(rays, "count").mean() + 1


# Dividing


def test_pieces_are_what_they_are_together(tmp_path, monkeypatch):
    monkeypatch.setattr(partition, "BLOCK_BOXES", 700)
    pairs = random_scene(7, 3000, 300, size=0.1)
    boxes = rb.Boxes(*pairs[4:])
    pieces = (boxes[a:b] for a, b in pairwise([0, 1, 1, 1100, 3000]))
    scene = split(pieces, max_boxes=400, folder=tmp_path / "parts")
    assert scene.parts == 8
    assert np.bincount(part_of(scene)).tolist() == [400] * 7 + [200]
    assert not list((tmp_path / "parts").glob("spool*"))
    check(rb.Scene(boxes), scene, as_rays(pairs))
    assert split(boxes, max_boxes=400).digest == scene.digest
    assert split(boxes[::-1], max_boxes=400).digest != scene.digest
    again = rb.SplitScene.open(tmp_path / "parts")
    check(scene, again, as_rays(pairs))
    assert again.digest == scene.digest


def test_a_part_is_a_region(monkeypatch):
    """Neighbours are together: parts' bounds hold little more than their share of space."""
    _, scene, _ = whole_and_split(20_000, 1, size=0.0)
    size = np.diff(scene._open_parts.corners, axis=1)[:, 0].prod(axis=1)
    assert (size < 0.25 * 8).all()
    assert size.sum() < 1.5 * 8
    monkeypatch.setattr(partition, "_FINEST", 6)  # cells with hundreds of boxes, divided by number
    coarse = split(rb.Boxes(*[scene._open_parts.get(0).scene.geometry.lower] * 2))
    assert np.bincount(part_of(coarse)).tolist() == [313] * 7 + [309]


def test_boxes_all_in_one_place():
    boxes = rb.Boxes(np.zeros((50, 3)), np.ones((50, 3)))
    scene = split(boxes)
    assert np.bincount(part_of(scene)).tolist() == [7] * 7 + [1]
    hits = scene.first(rb.Rays([[-1, 0, 0]], [[1, 0, 0]]), 20)
    assert hits.index.tolist() == [list(range(20))]
    assert scene.visits(rb.Rays([[-1, 0, 0]], [[1, 0, 0]])).tolist() == [8]


def test_a_temporary_folder_goes_away_with_the_scene():
    scene = split(rb.Boxes([0, 0], [1, 1]))
    folder = scene.folder
    assert folder.exists()
    del scene
    gc.collect()
    assert not folder.exists()


@pytest.mark.parametrize("memory", ["4 GB", 1])
def test_nothing_is_left_of_a_temporary_folder_where_memory_is_wrong(memory, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with pytest.raises(rb.InvalidInput, match="memory must"):
        rb.SplitScene(rb.Boxes([0, 0], [1, 1]), memory=memory)
    gc.collect()
    assert not list(tmp_path.iterdir())


def test_a_given_folder_stays_where_memory_is_too_small(tmp_path):
    with pytest.raises(rb.InvalidInput, match="memory must hold the largest part"):
        rb.SplitScene(rb.Boxes([0, 0], [1, 1]), folder=tmp_path / "parts", memory=1)
    assert len(rb.SplitScene.open(tmp_path / "parts")) == 1


@pytest.mark.parametrize(
    ("how", "text"),
    [
        ({"parts": 0}, "parts must be a whole number, at least 1; got 0"),
        ({"parts": 2, "max_boxes": 3}, "give parts or max_boxes, not both; got 2 and 3"),
        ({"parts": None, "max_boxes": 1.5}, "max_boxes must be a whole number, at least 1; got 1.5"),
        ({"quality": "good"}, "quality must be one of 'fast', 'balanced', 'best'; got 'good'"),
        ({"workers": 0}, "workers must be a whole number of threads"),
        ({"memory": "4 GB"}, "memory must be a whole number of bytes; got '4 GB'"),
    ],
)
def test_wrong_arguments(how, text):
    with pytest.raises(rb.InvalidInput) as caught:
        split(rb.Boxes(np.zeros((4, 3)), np.ones((4, 3))), **how)
    assert text in str(caught.value)


@pytest.mark.parametrize("geometry", [3, [1, 2], [rb.Boxes([0, 0], [1, 1]), rb.Boxes([0, 0, 0], [1, 1, 1])]])
def test_other_geometry_is_refused(geometry, tmp_path):
    with pytest.raises(rb.InvalidInput, match=r"Boxes, a Mesh|Boxes of one D"):
        rb.SplitScene(geometry, folder=tmp_path / "parts")
    assert not (tmp_path / "parts").exists()


def test_rays_of_another_dimension():
    _, scene, _ = whole_and_split(10, 1)
    with pytest.raises(rb.InvalidInput, match="D = 3; got D = 2"):
        scene.nearest(rb.Rays([0, 0], [1, 0]))
    with pytest.raises(rb.InvalidInput, match=r"rays must be raybox\.Rays; got int"):
        scene.count(3)
    with pytest.raises(rb.InvalidInput, match="k must be a whole number"):
        scene.first(rb.Rays([0, 0, 0], [1, 0, 0]), 0)
    with pytest.raises(rb.InvalidInput, match="query must be one of nearest"):
        scene.visits(rb.Rays([0, 0, 0], [1, 0, 0]), "first")


def test_a_missing_folder(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "none")
    for name in ("none", "none/deeper", "link"):
        with pytest.raises(FileNotFoundError, match="No such file or directory; check the path") as caught:
            rb.SplitScene.open(tmp_path / name)
        assert isinstance(caught.value, rb.FileFormatError)
        assert str(caught.value).startswith(f"{tmp_path / name}: ")


def test_a_folder_that_holds_no_whole_scene(tmp_path):
    place = tmp_path / "parts"
    split(rb.Boxes(np.zeros((40, 3)), np.ones((40, 3))), folder=place)
    with pytest.raises(rb.FileFormatError, match=r"is not empty; give another folder, or open what is there"):
        split(rb.Boxes([0, 0], [1, 1]), folder=place)
    with pytest.raises(rb.FileFormatError, match=r"split\.json: is missing, .*; write the folder again"):
        rb.SplitScene.open(tmp_path)
    for name in ("lower", "numbers"):
        shutil.copytree(place, tmp_path / name)
        os.truncate(tmp_path / name / "part-00003" / f"{name}.npy", 130)
        with pytest.raises(rb.FileFormatError, match=rf"part-00003/{name}\.npy: has 130 bytes in place of"):
            rb.SplitScene.open(tmp_path / name)
