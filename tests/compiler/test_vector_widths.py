"""Results are the same for vectors of 8 and of 16 rays: few machines use both."""

import os
import subprocess
import sys

import numpy as np
import pytest

import raybox as rb
from raybox.traversal.ray_setup import at_a_time

pytestmark = pytest.mark.jit

OTHER = """
import sys
import numpy as np
from raybox.compiler import target

own = target.has
target.has = lambda instructions: own(instructions) ^ (instructions == "avx512f")

from raybox.traversal.ray_setup import at_a_time
import raybox as rb

given = np.load(sys.argv[1])
scene = rb.Scene(rb.Boxes(given["lower"], given["upper"]))
answers = {"width": at_a_time()}
for kind in ("random", "picture"):
    rays = rb.Rays(given[kind][0], given[kind][1])
    hits = scene.nearest(rays)
    answers |= {f"{kind} index": hits.index, f"{kind} t": hits.t}
np.savez(sys.argv[2], **answers)
"""


@pytest.mark.long
def test_results_do_not_depend_on_the_width_of_vectors(tmp_path):
    rng = np.random.default_rng(121)
    lower = rng.random((3000, 3))
    upper = lower + 0.05 * rng.random((3000, 3))
    x, y = np.meshgrid(np.linspace(-0.4, 0.4, 64), np.linspace(-0.4, 0.4, 64))
    picture = np.stack([x, y, np.ones_like(x)], axis=-1).reshape(-1, 3)
    eye = np.broadcast_to([0.5, 0.5, -1.5], picture.shape)
    kinds = {
        "random": [rng.random((3000, 3)) * 2 - 0.5, rng.standard_normal((3000, 3))],
        "picture": [eye, picture],
    }
    np.savez(tmp_path / "given.npz", lower=lower, upper=upper, **kinds)
    (tmp_path / "other.py").write_text(OTHER)
    files = [str(tmp_path / name) for name in ("other.py", "given.npz", "got.npz")]
    own = os.environ | {"RAYBOX_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, *files], env=own, check=True)
    got, scene = np.load(tmp_path / "got.npz"), rb.Scene(rb.Boxes(lower, upper))
    assert {int(got["width"]), at_a_time()} == {8, 16}
    for kind, rays in kinds.items():
        hits = scene.nearest(rb.Rays(*rays))
        np.testing.assert_array_equal(got[f"{kind} index"], hits.index)
        np.testing.assert_array_equal(got[f"{kind} t"], hits.t)
        assert 300 < hits.hit.sum() < len(rays[0]), kind
