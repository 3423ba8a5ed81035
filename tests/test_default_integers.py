"""int64 everywhere, where NumPy's own integers have 32 bits, as those of NumPy 1.26 on Windows have.

Functions of NumPy that choose an integer type by themselves are replaced. Kernels are compiled before: one
that is then given 32 bits would be compiled anew, which fails with the functions replaced.
"""

import numpy as np
import pytest

import raybox as rb

RNG = np.random.default_rng(5)
LOWER = RNG.random((300, 3))
BOXES = rb.Boxes(LOWER, LOWER + 0.1)
VERTICES = RNG.random((60, 3))
MESH = rb.Mesh(VERTICES, np.arange(60, dtype=np.int64).reshape(-1, 3))
POSES = rb.Instances.from_poses(BOXES, [[0.0, 0, 0], [2.0, 0, 0]])
DEEP = rb.Rays(RNG.random((500, 3)) - [1, 0, 0], [1.0, 0.01, 0.02])
# Of each function: the arguments whose numbers decide, and the place of the type.
FUNCTIONS = {
    "arange": (slice(0, 3), 3),
    "array": (slice(0, 1), 1),
    "asarray": (slice(0, 1), 1),
    "full": (slice(1, 2), 2),
    "cumsum": (slice(0, 1), 2),
}


def is_plain(value):
    """Return whether a value is a Python integer or truth value, or holds nothing else."""
    if isinstance(value, list | tuple):
        return all(map(is_plain, value))
    return type(value) in (int, bool)


def narrow(name):
    """Return a function of NumPy whose integers have 32 bits, if it is given plain ones and no type."""
    function = getattr(np, name)
    numbers, type_place = FUNCTIONS[name]

    def call(*values, **named):
        result = function(*values, **named)
        typed = named.get("dtype", values[type_place] if len(values) > type_place else None)
        plain = all(map(is_plain, values[numbers])) or (
            name == "cumsum" and np.ndarray in map(type, values[:1]) and values[0].dtype == bool
        )
        return result.astype(np.int32) if typed in (None, int) and plain and result.dtype == int else result

    return call


@pytest.fixture
def narrowed(monkeypatch):
    """Return a function after which integers have 32 bits by default."""
    functions = {name: narrow(name) for name in FUNCTIONS}

    def apply():
        for name, function in functions.items():
            monkeypatch.setattr(np, name, function)

    return apply


def arrays_of(results):
    """Yield the public integer arrays of results, by name."""
    if isinstance(results, np.ndarray):
        yield "result", results
        return
    for name in ("index", "primitive", "geometry", "offsets", "ray"):
        if hasattr(results, name):
            yield name, np.asarray(getattr(results, name))


def queries(geometry):
    """Yield the results of all queries in a scene, of a few rays and of many."""
    scene = rb.Scene(geometry)
    for rays in (DEEP[:3], DEEP):
        yield f"nearest {len(rays)}", scene.nearest(rays)
        yield f"count {len(rays)}", scene.count(rays)
        yield f"all {len(rays)}", scene.all(rays)
        yield f"first {len(rays)}", scene.first(rays, 3)


def everything():
    """Yield all results of a few scenes and functions."""
    for name, geometry in (
        ("boxes", BOXES),
        ("mesh", MESH),
        ("instances", POSES),
        ("several", [BOXES, MESH, POSES]),
    ):
        for query, results in queries(geometry):
            yield f"{name}.{query}", results
    scene = rb.Scene(BOXES)
    yield "sweep", rb.sweep(rb.Boxes(LOWER[:5] - 2, LOWER[:5] - 1.9), [2.0, 2.0, 2.0], scene)
    yield "fast", rb.Scene(BOXES, quality="fast").nearest(DEEP)


def test_public_integers_are_64_bits(narrowed):
    wanted = {(what, name): array for what, found in everything() for name, array in arrays_of(found)}
    narrowed()
    found = {(what, name): array for what, found in everything() for name, array in arrays_of(found)}
    assert found.keys() == wanted.keys()
    assert len(found) > 60
    wrong = {key for key, array in found.items() if array.dtype.kind == "i" and array.dtype != np.int64}
    assert not wrong
    for key, array in found.items():
        np.testing.assert_array_equal(array, wanted[key], err_msg=str(key))


@pytest.mark.parametrize("query", ["nearest", "count", "all"])
def test_numbers_of_rays_in_files_are_64_bits(tmp_path, narrowed, query):
    rb.save(tmp_path / "rays.npz", DEEP)
    scene = rb.Scene(BOXES)
    rb.stream.cast(scene, tmp_path / "rays.npz", tmp_path / "wide.npy", query=query)
    narrowed()
    rb.stream.cast(scene, tmp_path / "rays.npz", tmp_path / "narrow.npy", query=query)
    assert (tmp_path / "narrow.npy").read_bytes() == (tmp_path / "wide.npy").read_bytes()
