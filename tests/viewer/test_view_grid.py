"""Grids on the page: which cells are drawn, and what clicks return; without a browser."""

import numpy as np
import pytest
from click.testing import CliRunner

import raybox as rb
from grids import random_grid, random_rays
from raybox.cli import main
from raybox.geometry.grid_surface import exposed_cells, visible_cells
from raybox.viewer import html, stage
from raybox.viewer.model import PageState, pick
from raybox.viewer.open_file import stage_of

RNG = np.random.default_rng(17)
GRID = random_grid("random", RNG, (5, 4, 6), share=0.8)


def test_cells_are_drawn_whose_faces_are_not_all_shared():
    hidden = 0
    for shape in ((6, 7, 5), (1, 4, 9), (5, 5)):
        grid = random_grid("integers", RNG, shape, share=0.9)
        mask, wanted = grid.occupied, []
        for cell in np.ndindex(shape):
            steps = [
                tuple(k + step * (axis == a) for a, k in enumerate(cell))
                for axis in range(len(shape))
                for step in (-1, 1)
            ]
            inside = [all(0 <= k < n for k, n in zip(one, shape, strict=True)) and mask[one] for one in steps]
            if mask[cell] and not all(inside):
                wanted.append(int(np.ravel_multi_index(cell, shape)))
        assert exposed_cells(grid).tolist() == wanted
        hidden += np.count_nonzero(mask) - len(wanted)
    assert hidden > 20
    full = rb.Grid.uniform([0, 0, 0], 1, (4, 5, 6))
    assert len(exposed_cells(full)) == 120 - 2 * 3 * 4
    assert visible_cells(full, 200, 119) is None
    assert visible_cells(full, 0, 120).tolist() == list(range(120))
    assert visible_cells(GRID, 3, 1000) is None
    flat = random_grid("steps", RNG, (9, 9), share=0.9)
    assert visible_cells(flat, 99, 0).tolist() == np.flatnonzero(flat.occupied).tolist()


def test_boxes_of_the_page(monkeypatch):
    assert len(stage.boxes_to_draw(GRID)) == len(exposed_cells(GRID))
    monkeypatch.setattr(stage, "MAX_CELLS", 5)
    outline = stage.boxes_to_draw(GRID)
    np.testing.assert_array_equal(np.r_[outline.lower, outline.upper], GRID.bounds)


def test_clicks_give_the_numbers_of_cells():
    one, scene, met = stage_of(GRID), rb.Scene(GRID), 0
    rays = random_rays(RNG, GRID, 30)
    state = PageState(one)
    for k in range(30):
        ray = rays[k]
        result, want = pick(one, ray), scene.all(ray)
        assert [contact.index for contact in result.contacts] == want.index.tolist()
        if not result.contacts:
            continue
        first = result.contacts[0]
        place = np.unravel_index(first.index, GRID.shape)
        assert first.labels == (("cell", ", ".join(map(str, place))),)
        assert f"Cell {first.index}" in html.panel(result)
        if np.any(ray.directions):
            assert state.click(ray.origins, ray.directions).noun == "Cell"
        met += 1
    assert met > 8
    text = html.summary(one)
    assert "120 cells" in text
    assert f"{np.count_nonzero(GRID.occupied)}" in text


def test_a_line_of_sight_through_cells():
    grid = rb.Grid.uniform([0, 0, 0], 1, (5, 1, 1), occupied=[True, False, True, False, True])
    state = PageState(stage_of(rb.Scene(grid)))
    state.set_mode(setting_line=True)
    state.click([-1, 0.5, 0.5], [1, 0, 0])
    result = state.click([9, 0.5, 0.5], [-1, 0, 0])
    assert [end.index for end in result.ends] == [0, 4]
    assert (result.clear, [contact.index for contact in result.contacts]) == (False, [2])


def test_a_grid_in_two_dimensions(monkeypatch):
    flat = random_grid("integers", RNG, (4, 5), share=0.6)
    one = stage_of(flat)
    centers = flat.boxes().centers
    for cell, occupied in enumerate(flat.occupied.ravel().tolist()):
        found = pick(one, rb.Rays([*centers[cell], 5.0], [0, 0, -1.0]))
        assert found.nearest == (cell if occupied else -1)
    assert 3 < np.count_nonzero(flat.occupied) < 17
    monkeypatch.setattr(stage, "_FLAT_CELLS", 19)
    with pytest.raises(rb.InvalidInput, match=r"shown up to 19 cells; got 20\. Show a part"):
        stage_of(flat)


def test_a_page_of_a_grid(tmp_path):
    pytest.importorskip("viser")
    with rb.view(GRID, random_rays(RNG, GRID, 20), port=0) as viewer:
        ray = rb.Rays([-3.0, 0.1, 0.1], [1, 0, 0])
        answer = viewer.click(ray.origins, ray.directions)
        assert answer.nearest == int(rb.Scene(GRID).nearest(ray).index)
    path = tmp_path / "cells.npz"
    np.savez(path, occupancy=GRID.occupied, pitch=0.25)
    done = CliRunner().invoke(main, ["view", "--grid", str(path), "--html", str(tmp_path / "page.html")])
    assert done.exit_code == 0, done.output
    assert (tmp_path / "page.html").stat().st_size > 10_000
