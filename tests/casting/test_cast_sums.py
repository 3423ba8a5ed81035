"""`cast` of `integrate`: sums over paths in files."""

import numpy as np
import pytest
from click.testing import CliRunner

import raybox as rb
from raybox.cli.cast import cast
from streaming import BOXES, RAYS, SCENE, get, interrupted, put


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


def test_the_command(tmp_path):
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
