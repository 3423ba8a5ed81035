"""Casts of files at every geometry: what Fractions say, under the numbers, ids and labels of objects."""

import math

import numpy as np
import pytest

import raybox as rb
from exact import rounded
from exact_instances import along
from streaming import ENDINGS, get, stopping_at

RNG = np.random.default_rng(39)
RAYS = rb.Rays(RNG.integers(-4, 5, (90, 3)) * 0.5, RNG.integers(-2, 3, (90, 3)), t_max=9)
CARS = rb.Instances.oriented_boxes(
    RNG.integers(-3, 4, (6, 3)),
    RNG.integers(1, 4, (6, 3)),
    yaw=RNG.uniform(0, math.tau, 6),
    ids=[f"car {k}" for k in range(6)],
    labels={"kind": ["van", "car", None] * 2, "speed": [None, 1, 2, 3, 4, 5], "parked": [True, False] * 3},
)
CRATE = rb.Boxes(
    [[0, 0, 0], [1, 0, 0]], [[1, 1, 1], [3, 1, 2]], ids=["box", "lid"], labels={"kind": ["a", "b"]}
)
CRATES = rb.Instances.from_poses(CRATE, RNG.integers(-3, 3, (4, 3)), yaw=[0.0, 0.5, 1.0, math.pi / 2])
CORNERS = RNG.integers(-4, 5, (36, 3))
MESH = rb.Mesh(
    CORNERS,
    np.arange(36).reshape(-1, 3),
    objects=RNG.integers(0, 4, 12),
    ids=["m0", "m1", "m2", "m3", "none"],
    labels={"speed": [0.5, 1.5, math.nan, 2.5, 3.5]},
)
PLANES = rb.Planes([[1, 0, 0], [0, 1, 1]], [2.5, -1], ids=["east", "slope"])
PLAIN = rb.Boxes([[-9, -9, -9]], [[-4, 9, 9]])
CASES = {
    "oriented boxes": (CARS,),
    "copies of boxes with names": (CRATES,),
    "copies of a mesh with objects": (rb.Instances.from_poses(MESH, [[0, 0, 0], [1, 0, 2]]),),
    "mesh with objects": (MESH,),
    "planes": (PLANES,),
    "several": (CRATES, MESH, PLAIN, CARS, PLANES),
    "several without names": (PLAIN, rb.Mesh(CORNERS[:9], np.arange(9).reshape(-1, 3))),
}


def named(geometry, contact):
    """Return the geometry that names a hit, and the number of the object in it."""
    if isinstance(geometry, rb.Instances):
        if geometry.ids is None and not geometry.labels:
            return named(geometry.geometry, contact._replace(index=contact.primitive))
        return geometry, contact.index
    return geometry, geometry.objects[contact.index] if isinstance(geometry, rb.Mesh) else contact.index


def id_of(geometry, contact):
    holder, number = named(geometry, contact)
    return "" if holder.ids is None else holder.ids[number]


def label_of(geometry, contact, name):
    holder, number = named(geometry, contact)
    value = holder.labels[name][number] if name in holder.labels else None
    return None if value is None or value != value else value


def expected(geometries, want, query):
    """Return the columns of a query as lists, by the definition of each."""
    rows = [(k, c) for k, row in enumerate(want) for c in (row[:1] or [None] if query == "nearest" else row)]
    columns = {"ray": [k for k, _ in rows], "index": [-1 if c is None else c.index for _, c in rows]}
    if any(isinstance(one, rb.Mesh) and len(set(one.objects)) < len(one) for one in geometries):
        columns["object"] = [
            -1
            if c is None
            else geometries[c.geometry].objects[c.index]
            if isinstance(geometries[c.geometry], rb.Mesh)
            else c.index
            for _, c in rows
        ]
    if len(geometries) > 1:
        columns["geometry"] = [-1 if c is None else c.geometry for _, c in rows]
    if any(isinstance(one, rb.Instances) for one in geometries):
        columns["primitive"] = [-1 if c is None else c.primitive for _, c in rows]
    inner = [one.geometry if isinstance(one, rb.Instances) else one for one in geometries]
    if any(one.ids is not None for one in (*geometries, *inner)):
        columns["id"] = ["" if c is None else id_of(geometries[c.geometry], c) for _, c in rows]
    columns["t"] = [math.inf if c is None else rounded(c.t) for _, c in rows]
    return columns, rows


def as_numbers(column):
    return np.array(column, dtype=np.float64)


@pytest.mark.parametrize("query", ["nearest", "all"])
@pytest.mark.parametrize("case", CASES)
def test_casts_write_what_fractions_say(case, query, tmp_path):
    geometries = CASES[case]
    ending = ENDINGS[(list(CASES).index(case) + 2 * (query == "all")) % len(ENDINGS)]
    want = along(RAYS, *geometries)
    scene = rb.Scene(list(geometries) if len(geometries) > 1 else geometries[0])
    rb.save(tmp_path / "rays.npy", RAYS)
    out = tmp_path / f"out.{ending}"
    done = rb.stream.cast(scene, tmp_path / "rays.npy", out, query=query, chunk=17, workers=1)
    found, (wanted, rows) = get(out), expected(geometries, want, query)
    assert list(found)[: len(wanted)] == list(wanted) or ending == "zarr"
    assert set(found) - set(wanted) == set("xyz" if query == "nearest" else ("t_enter", "t_exit", "length"))
    for name, column in wanted.items():
        if name == "id":
            assert found[name].tolist() == column
        else:
            np.testing.assert_array_equal(as_numbers(found[name]), as_numbers(column), err_msg=name)
    assert done.rows == len(rows) > 20
    assert done.hit_count == sum(map(bool, want) if query == "nearest" else map(len, want))
    hits = [(k, c) for k, (_, c) in enumerate(rows) if c is not None]
    if query == "nearest":
        rays = [(RAYS.origins[rows[k][0]], RAYS.directions[rows[k][0]], c.t) for k, c in hits]
        at = [[float(t * int(d) + int(2 * o) / 2) for o, d in zip(*ray, strict=True)] for *ray, t in rays]
        points = np.stack([as_numbers(found[name])[[k for k, _ in hits]] for name in "xyz"], axis=-1)
        np.testing.assert_allclose(points, at, rtol=1e-12, atol=1e-12)
    else:
        np.testing.assert_array_equal(as_numbers(found["t_exit"]), [rounded(c.t_exit) for _, c in hits])


@pytest.mark.long
@pytest.mark.parametrize("case", ["oriented boxes", "several"])
def test_counts_and_masks(case, tmp_path):
    geometries = CASES[case]
    masks = [RNG.random(len(one)) < 0.6 for one in geometries]
    scene = rb.Scene(list(geometries) if len(geometries) > 1 else geometries[0])
    where = masks if len(geometries) > 1 else masks[0]
    want = along(RAYS, *geometries, where=masks)
    assert [len(row) for row in want] != [len(row) for row in along(RAYS, *geometries)]
    rb.save(tmp_path / "rays.npy", RAYS)
    for query, truth in (("count", [len(row) for row in want]), ("occluded", [bool(row) for row in want])):
        out = tmp_path / f"{query}.npy"
        rb.stream.cast(scene, tmp_path / "rays.npy", out, query=query, where=where, chunk=31)
        assert np.load(out)[query].tolist() == truth


def test_sums_of_copies(tmp_path):
    rb.save(tmp_path / "rays.npy", RAYS)
    scene, rays = rb.Scene(CRATES), tmp_path / "rays.npy"
    for query, column in (("integrate", "integral"), ("deposit", "deposit")):
        rb.stream.cast(scene, rays, tmp_path / "sums.npy", query=query, chunk=20)
        table = np.load(tmp_path / "sums.npy")
        np.testing.assert_allclose(table[column], getattr(scene, query)(RAYS), rtol=1e-12)
        assert (table[column] > 0).sum() > 3
    assert table.dtype.names == ("index", "deposit")  # ids are those of what is copied
    rb.stream.cast(rb.Scene(CARS), rays, tmp_path / "c.csv", query="deposit")
    assert get(tmp_path / "c.csv")["id"].tolist() == CARS.ids.tolist()
    with pytest.raises(rb.InvalidInput, match="a row for each primitive of one geometry"):
        rb.stream.cast(rb.Scene([CARS, PLAIN]), rays, tmp_path / "x.csv", query="deposit")


def labels_of(geometries, want, query, name):
    _, rows = expected(geometries, want, query)
    return [None if c is None else label_of(geometries[c.geometry], c, name) for _, c in rows]


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("query", ["nearest", "all"])
def test_labels_in_every_format(query, ending, tmp_path):
    geometries = CARS, PLAIN, MESH, CRATES
    want = along(RAYS, *geometries)
    rb.save(tmp_path / "rays.npy", RAYS)
    out, names = tmp_path / f"out.{ending}", ["kind", "speed", "parked"]
    rb.stream.cast(
        rb.Scene([*geometries]), tmp_path / "rays.npy", out, query=query, labels=names, chunk=13, workers=1
    )
    found = get(out)
    for name in names:
        wanted = labels_of(geometries, want, query, name)
        assert {type(value) for value in wanted} > {type(None)}
        if ending == "csv":
            shown = [
                "" if v is None else str(int(v) if name == "parked" else float(v) if name == "speed" else v)
                for v in wanted
            ]
            assert found[name].tolist() == shown
        elif ending == "parquet" or name == "kind":
            blank = None if ending == "parquet" else ""
            assert found[name].tolist() == [blank if v is None else v for v in wanted]
        else:
            numbers = [math.nan if v is None else float(v) for v in wanted]
            np.testing.assert_array_equal(found[name], numbers)
            assert found[name].dtype == np.float64
    if ending != "zarr":
        assert list(found)[-3:] == names


def test_labels_of_hits_keep_their_types_where_none_is_missing(tmp_path):
    floors = [2**60 + 1, 1, 2, 3, 4, 5]
    cars = rb.Instances(CARS.geometry, CARS.transforms, labels={"floor": floors, "new": [True, False] * 3})
    rb.save(tmp_path / "rays.npy", RAYS)
    scene, rays = rb.Scene(cars), tmp_path / "rays.npy"
    rb.stream.cast(scene, rays, tmp_path / "all.npz", query="all", labels=["floor", "new"])
    found = np.load(tmp_path / "all.npz")
    assert (found["floor"].dtype, found["new"].dtype) == (np.int64, np.bool_)
    assert found["floor"].tolist() == [floors[k] for k in found["index"]]
    assert 2**60 + 1 in found["floor"]
    with pytest.raises(rb.InvalidInput, match=r"'floor' holds integers that are not exact in float64"):
        rb.stream.cast(scene, rays, tmp_path / "n.npz", labels=["floor"])
    assert not list(tmp_path.glob("n.npz*"))


def test_ids_that_are_given_are_of_all_objects_in_order(tmp_path):
    rb.save(tmp_path / "rays.npy", RAYS)
    geometries, names = (CRATES, MESH), [f"n{k}" for k in range(4 + 5)]
    out, scene = tmp_path / "o.npy", rb.Scene([*geometries])
    rb.stream.cast(scene, tmp_path / "rays.npy", out, query="all", ids=names)
    contacts = [c for row in along(RAYS, *geometries) for c in row]
    numbers = [c.index if c.geometry == 0 else 4 + MESH.objects[c.index] for c in contacts]
    assert np.load(out)["id"].tolist() == [names[k] for k in numbers]
    with pytest.raises(rb.InvalidInput, match="ids must name every object: got 8 for 9 objects"):
        rb.stream.cast(scene, tmp_path / "rays.npy", out, query="all", ids=names[1:])


def test_an_interrupted_cast_continues_to_the_same_bytes(tmp_path, monkeypatch):
    rays, out = tmp_path / "rays.npy", tmp_path / "out.csv"
    rb.save(rays, RAYS)
    scene = rb.Scene([*CASES["several"]])
    how = {"labels": ["kind"], "where": [None, "speed > 0.5", None, "kind == 'car'", None]}
    how |= {"chunk": 20, "workers": 1, "query": "all"}
    rb.stream.cast(scene, rays, tmp_path / "whole.csv", **how)
    with stopping_at(monkeypatch, 60, rb.RayboxError("enough")):
        rb.stream.cast(scene, rays, out, **how)
    moved = rb.Instances(CARS.geometry, CARS.transforms + 1, ids=CARS.ids, labels=dict(CARS.labels))
    others = (
        [scene, {"where": [None, None, None, "kind == 'car'", None]}],
        [rb.Scene([CRATES, MESH, PLAIN, moved, PLANES]), {}],
    )
    for other, changed in others:
        with pytest.raises(rb.RayboxError, match=r"remove the folder|another"):
            rb.stream.cast(other, rays, out, **(how | changed))
    assert rb.stream.cast(scene, rays, out, **how).resumed == 60
    assert out.read_bytes() == (tmp_path / "whole.csv").read_bytes()
