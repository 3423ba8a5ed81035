"""`cast` of `deposit`, `integrate` and `segments`: sums of primitives and rays, and partitions by a grid."""

import itertools

import numpy as np
import pytest
from click.testing import CliRunner

import raybox as rb
from exact_grid import cut_all
from grids import random_grid, random_rays
from raybox.casting import sums
from raybox.cli.cast import cast
from streaming import (
    BOXES,
    ENDINGS,
    GROUPS,
    IDS,
    RAYS,
    SCENE,
    WORLDS,
    check,
    get,
    interrupted,
    put,
    stopping_at,
    with_column,
)

WEIGHTS = np.random.default_rng(6).random(103) - 0.2
RNG = np.random.default_rng(8)
GRID = random_grid("integers", RNG, (4, 3, 5), share=0.7)
GRID_RAYS = random_rays(RNG, GRID, 60)


def check_sums(path, scene, rays, weights=None, **how):
    """Compare the sums of an output with those of one call; last bits depend on the number of rays there."""
    want = rows(scene.deposit(rays, weights, reproducible=True, **how))
    found = get(path)
    assert {*found} - {"id"} == {*want}
    for name, column in want.items():
        np.testing.assert_allclose(found[name].astype(column.dtype), column, rtol=2**-48, atol=2**-60)


def rows(sums, name="deposit"):
    """Return sums as the columns of an output."""
    many = sums.reshape(len(sums), -1).T
    names = [name] if sums.ndim == 1 else [f"{name}_{k}" for k in range(len(many))]
    return {"index": np.arange(len(sums)), **dict(zip(names, many, strict=True))}


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_row_for_each_box(tmp_path, ending):
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / f"out.{ending}"
    for weights, per in ((None, None), (WEIGHTS, None), (np.c_[WEIGHTS, WEIGHTS**2], "hit")):
        how = {} if per is None else {"per": per}
        done = rb.stream.cast(SCENE, rays, out, query="deposit", weights=weights, ids=IDS, chunk=10, **how)
        check_sums(out, SCENE, RAYS, weights, **how)
        assert get(out)["id"].tolist() == IDS
        want = SCENE.deposit(RAYS, weights, **how)
        reached = np.count_nonzero(want.reshape(40, -1).any(axis=1))
        assert (done.rays, done.rows, done.hit_count, done.resumed) == (103, 40, reached, 0)
        assert 20 < reached < 40
        for path in sorted(out.rglob("*"), reverse=True) if out.is_dir() else []:
            path.unlink() if path.is_file() else path.rmdir()
        out.rmdir() if out.is_dir() else None
    assert not list(tmp_path.glob("*part*"))


@pytest.mark.parametrize(("groups", "own"), [(GROUPS, GROUPS), ("world", GROUPS), (1, 1)])
def test_groups(tmp_path, groups, own):
    rays = with_column(tmp_path / "rays.csv", RAYS, "world", GROUPS)
    out, found = tmp_path / "out.npy", set()
    for chunk in (7, 40, 1000):
        how = {"query": "deposit", "weights": WEIGHTS, "groups": groups, "chunk": chunk}
        assert rb.cast(WORLDS, rays, out, **how).hit_count > 5
        check_sums(out, WORLDS, RAYS, WEIGHTS, groups=own)
        found.add(out.read_bytes())
    assert len(found) == 1


def test_chunks_and_workers(tmp_path):
    """Bits depend on neither: sums are in fixed point."""
    rays, out, found = put(tmp_path / "rays.npz", RAYS), tmp_path / "out.npy", set()
    for workers in (1, 2):
        for chunk in (1, 40, 1000):
            rb.stream.cast(SCENE, rays, out, query="deposit", weights=WEIGHTS, chunk=chunk, workers=workers)
            found.add(out.read_bytes())
    assert len(found) == 1
    check_sums(out, SCENE, RAYS, WEIGHTS)


def test_sums_of_both_signs_that_cancel(tmp_path):
    """Words of three sums are carried over, below zero, too."""
    rng = np.random.default_rng(9)
    for scale in (2.0**-40, 1.0, 2.0**60):
        weights = np.round((rng.random(103) - 0.5) * 2**20) * scale
        weights[50:100] = -weights[:50][::-1]
        rays = rb.Rays(
            np.r_[RAYS.origins[:50], RAYS.origins[:50][::-1], RAYS.origins[100:]],
            np.r_[RAYS.directions[:50], RAYS.directions[:50][::-1], RAYS.directions[100:]],
        )
        path, out = put(tmp_path / "rays.npz", rays), tmp_path / "out.npy"
        for per in ("length", "hit"):
            rb.stream.cast(SCENE, path, out, query="deposit", weights=weights, per=per, chunk=7)
            rest = SCENE.deposit(rays[100:], weights[100:], per=per, reproducible=True)
            rounded = 2.0**-60 * np.abs(weights).max() * 4
            np.testing.assert_allclose(get(out)["deposit"], rest, rtol=2**-48, atol=rounded)


def test_the_cells_of_a_grid(tmp_path):
    rays, scene = put(tmp_path / "rays.csv", GRID_RAYS), rb.Scene(GRID)
    cells = rb.stream.cast(scene, rays, tmp_path / "sums.npy", query="deposit", chunk=7)
    cuts = rb.stream.cast(scene, rays, tmp_path / "cuts.npy", query="segments", chunk=7)
    check_sums(tmp_path / "sums.npy", scene, GRID_RAYS)
    check(tmp_path / "cuts.npy", scene.segments(GRID_RAYS))
    assert (cells.rows, cuts.hit_count) == (60, cuts.rows)
    truth = cut_all(GRID.edges, GRID_RAYS)
    numbers = [
        (ray, int(np.ravel_multi_index(one.cell, GRID.shape)))
        for ray, found in enumerate(truth)
        for one in found.stretches
        if GRID.occupied[one.cell]
    ]
    found = get(tmp_path / "cuts.npy")
    assert list(zip(found["ray"].tolist(), found["index"].tolist(), strict=True)) == numbers
    assert len(numbers) > 60
    assert cells.hit_count == len({cell for _, cell in numbers})
    assert sum(one.corners for one in truth) > 10
    with pytest.raises(rb.InvalidInput, match="segments needs a Scene of one Grid"):
        rb.stream.cast(SCENE, rays, tmp_path / "cuts.npy", query="segments")


def test_no_rays_no_boxes_and_two_dimensions(tmp_path):
    flat = rb.Boxes([[2, -1], [5, -1]], [[3, 1], [7, 1]])
    none = rb.Boxes(np.empty((0, 2)), np.empty((0, 2)))
    for number in (0, 2):
        rays = rb.Rays(np.zeros((number, 2)), np.ones((number, 2)) * [1, 0], t_max=6)
        path, weights = put(tmp_path / f"rays{number}.npz", rays), np.full(number, 0.5)
        for boxes in (flat, none):
            for ending in ENDINGS[:4]:
                out = tmp_path / f"out{number}{len(boxes)}.{ending}"
                rb.stream.cast(rb.Scene(boxes), path, out, query="deposit", weights=weights)
                assert get(out)["deposit"].astype(float).tolist() == [number * 0.5] * len(boxes)


def test_boxes_without_end(tmp_path):
    """Sums without a bound are computed, too."""
    scene = rb.Scene(rb.Boxes([[2, -1], [5, -1]], [[3, 1], [np.inf, 1]]))
    rays = put(tmp_path / "rays.npz", rb.Rays([[0, 0], [6, 0]], [1, 0]))
    rb.stream.cast(scene, rays, tmp_path / "out.npy", query="deposit", chunk=1)
    assert get(tmp_path / "out.npy")["deposit"].tolist() == [1.0, np.inf]


def test_an_interrupted_deposit_continues(tmp_path, monkeypatch):
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / "out.npy"
    how = {"query": "deposit", "chunk": 20, "workers": 1}
    with stopping_at(monkeypatch, 60, rb.RayboxError("enough")):
        rb.stream.cast(SCENE, rays, out, weights=WEIGHTS, **how)
    assert not out.exists()
    folder = tmp_path / "out.npy.raybox"
    assert [path.name for path in (folder / "parts").iterdir()] == ["part-000000000-to-000000002.sums"]
    with pytest.raises(rb.FileFormatError, match="another command has started it"):
        rb.stream.cast(SCENE, rays, out, weights=WEIGHTS, per="hit", **how)
    assert rb.stream.cast(SCENE, rays, out, weights=WEIGHTS, **how).resumed == 60
    check_sums(out, SCENE, RAYS, WEIGHTS)
    assert not folder.exists() or not list(folder.iterdir())


@pytest.mark.parametrize(
    "damage", [lambda b: b[:-1] + b"\x7f", lambda b: b[:-8], lambda b: b"", lambda b: b"x" + b[1:]]
)
def test_damaged_sums_are_computed_again(tmp_path, monkeypatch, damage):
    rays, out, whole = put(tmp_path / "rays.npz", RAYS), tmp_path / "out.npy", tmp_path / "whole.npy"
    rb.stream.cast(SCENE, rays, whole, query="deposit", chunk=20)
    with stopping_at(monkeypatch, 60, rb.RayboxError("enough")):
        rb.stream.cast(SCENE, rays, out, query="deposit", chunk=20)
    (stored,) = (tmp_path / "out.npy.raybox" / "parts").iterdir()
    stored.write_bytes(damage(stored.read_bytes()))
    rb.stream.cast(SCENE, rays, out, query="deposit", chunk=20)
    assert out.read_bytes() == whole.read_bytes()


def test_wrong_weights_are_refused(tmp_path):
    rays, text, out = put(tmp_path / "a.npz", RAYS), put(tmp_path / "a.csv", RAYS), tmp_path / "out.npy"
    bad = np.ones(103)
    bad[70] = np.nan
    for weights, match in (
        (np.ones(4), "got 4 rows for 103 rays"),
        (np.ones((103, 0)), "must be numbers of shape"),
        (2.0, "must be numbers of shape"),
        (["x"] * 103, "must be numbers of shape"),
        (bad, "weights must be finite; row 70 is nan"),
    ):
        with pytest.raises(rb.InvalidInput, match=match):
            rb.stream.cast(SCENE, rays, out, query="deposit", weights=weights)
    for count in (102, 104):  # the number of rays is unknown before the end
        with pytest.raises(rb.InvalidInput, match=f"got {count} rows for 103 rays"):
            rb.stream.cast(SCENE, text, out, query="deposit", weights=np.ones(count))
    with pytest.raises(rb.InvalidInput, match="per must be one of 'length', 'hit'; got 'box'"):
        rb.stream.cast(SCENE, rays, out, query="deposit", per="box")
    with pytest.raises(rb.InvalidInput, match="weights is for query 'deposit'; got it with 'integrate'"):
        rb.stream.cast(SCENE, rays, out, query="integrate", weights=np.ones(103))
    assert not out.exists()


def test_the_command(tmp_path):
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / "out.npy"
    scene, weights = tmp_path / "scene.npz", tmp_path / "weights.npy"
    rb.save(scene, BOXES)
    np.save(weights, WEIGHTS.astype(np.float32))
    call = [str(scene), str(rays), "-o", str(out), "--query", "deposit"]
    done = CliRunner().invoke(cast, [*call, "--weights", str(weights), "--per", "hit"])
    assert done.exit_code == 0, done.output
    check_sums(out, SCENE, RAYS, WEIGHTS.astype(np.float32), per="hit")
    call[3] = "-"
    done = CliRunner().invoke(cast, call)
    assert done.output.startswith("index,deposit\n0,")


@pytest.mark.parametrize("call", [1, 4, 7, 8])
def test_an_error_while_terms_are_added(tmp_path, monkeypatch, call):
    rays, out, whole = put(tmp_path / "rays.npy", RAYS), tmp_path / "out.npy", tmp_path / "whole.npy"
    how, add, calls = {"query": "deposit", "chunk": 20, "workers": 1}, sums.Sums._add, itertools.count()
    rb.cast(SCENE, rays, whole, **how)

    def add_some(total, rows, terms):
        if next(calls) == call:
            raise MemoryError
        add(total, rows, terms)

    with monkeypatch.context() as patch:
        patch.setattr(sums, "_ROWS", -(-len(SCENE) // 3))  # three calls for a block
        patch.setattr(sums.Sums, "_add", add_some)
        with pytest.raises(MemoryError):
            rb.cast(SCENE, rays, out, **how)
    rb.cast(SCENE, rays, out, **how)
    assert out.read_bytes() == whole.read_bytes()


@pytest.mark.parametrize("ending", ["npy", "csv", "parquet"])
def test_values_of_one_and_of_several_channels(tmp_path, ending):
    rays = put(tmp_path / "rays.npz", RAYS)
    rng = np.random.default_rng(3)
    for values in (rng.random(40), rng.random((40, 2))):
        out = tmp_path / f"out.{ending}"
        done = rb.stream.cast(SCENE, rays, out, query="integrate", values=values, chunk=10)
        want = SCENE.integrate(RAYS, values, reproducible=True)
        found = get(out)
        names = ["integral"] if values.ndim == 1 else ["integral_0", "integral_1"]
        assert list(found) == ["ray", *names]
        for name, column in zip(names, want.reshape(103, -1).T, strict=True):
            np.testing.assert_array_equal(found[name].astype(float), column)
        assert (done.rays, done.hit_count) == (103, np.count_nonzero(want.reshape(103, -1).any(axis=1)))
        assert done.hit_count > 30
        out.unlink()


def test_only_the_same_values_continue_a_cast(tmp_path, monkeypatch):
    values = np.random.default_rng(4).random(40)
    how = {"query": "integrate", "chunk": 20, "workers": 1}
    rays, out = interrupted(tmp_path, monkeypatch, values=values, **how)
    for others in (values + 1.0, None):
        with pytest.raises(rb.FileFormatError, match="another command has started it"):
            rb.stream.cast(SCENE, rays, out, values=others, **how)
    assert rb.stream.cast(SCENE, rays, out, values=values, **how).resumed > 0
    np.testing.assert_array_equal(get(out)["integral"], SCENE.integrate(RAYS, values, reproducible=True))


def test_wrong_values_are_refused(tmp_path):
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / "out.npy"
    with pytest.raises(rb.InvalidInput, match=r"values must have shape \(40,\) or \(40, C\)"):
        rb.stream.cast(SCENE, rays, out, query="integrate", values=np.ones(3))
    with pytest.raises(rb.InvalidInput, match="values is for query 'integrate'; got it with 'count'"):
        rb.stream.cast(SCENE, rays, out, query="count", values=np.ones(40))
    assert not out.exists()


def test_the_command_integrates(tmp_path):
    rays, out = put(tmp_path / "rays.npz", RAYS), tmp_path / "out.npy"
    scene, values = tmp_path / "scene.npz", tmp_path / "values.npy"
    rb.save(scene, BOXES)
    numbers = np.random.default_rng(5).random(40)
    np.save(values, numbers)
    call = [str(scene), str(rays), "-o", str(out), "--query", "integrate", "--values", str(values)]
    done = CliRunner().invoke(cast, call)
    assert done.exit_code == 0, done.output
    np.testing.assert_array_equal(get(out)["integral"], SCENE.integrate(RAYS, numbers, reproducible=True))
    values.write_text("no numbers")
    done = CliRunner().invoke(cast, [*call, "--force"])
    assert "values.npy: is no .npy file" in str(done.exception)
