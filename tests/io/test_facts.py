"""Counts, units, axes, colours and property sets: geometries, saved files and scenes keep them."""

import copy
import json
import pickle
import warnings

import numpy as np
import pyarrow.parquet as pq
import pytest

import raybox as rb
from raybox.geometry import with_facts
from raybox.geometry.labels import with_colors, with_properties
from raybox.geometry.property_sets import PropertySets
from refusals import counted, refused

RNG = np.random.default_rng(5)
VERTICES, FACES = RNG.random((7, 3)), [[0, 1, 2], [1, 2, 3], [2, 3, 4]]
SETS = [{"Pset_A": {"Width": 1.5, "Names": ["a", None]}}, {}, {"Qto_B": {"Höhe": True, "Parts": {"x": "1"}}}]
PROPERTIES = PropertySets([json.dumps(one) if one else "" for one in SETS])
LEFT_OUT = {"faces of fewer than three corners": 3, 'nodes "ä",\n%': 2**40}
NONE = [0, 0, 0, 0]


def colored(geometry):
    return with_colors(geometry, RNG.integers(0, 256, (len(geometry), 4)).astype(np.uint8))


def stated(geometry, up="y", **facts):
    return with_facts(geometry, LEFT_OUT, **{"units": "metre", "up": up} | facts)


BOXES = rb.Boxes(VERTICES[:3], VERTICES[:3] + 1, ids=[*"abc"], labels={"n": [*range(3)]})
MESH = rb.Mesh(VERTICES, FACES, objects=[1, 0, 1], ids=["a", "b", "c"], labels={"n": [1, None, 3]})
BOXES, MESH = (with_properties(one, PROPERTIES) for one in (BOXES, MESH))
FILLED = np.array([[[0, 1], [1, 1]], [[0, 0], [1, 0]]], bool)
PLANES = rb.Planes([[0, 0, 1], [1, 2, 0]], [0.5, 0.25])
BARE = {
    "boxes": BOXES,
    "triangles": rb.Mesh(VERTICES, FACES),
    "mesh": MESH,
    "planes": PLANES,
    "grid": rb.Grid([0, 1, 2], [0, 1, 2], [0, 1, 3], occupied=FILLED),
    "instances": rb.Instances(stated(colored(MESH), up="z"), [np.eye(3, 4), 2 * np.eye(3, 4)]),
    "rays": rb.Rays([[0, 0, 0], [1, 2, 3]], [[1, 0, 0], [0, 2, 1]], t_max=[5, 6]),
}
MADE = {name: stated(one if name == "rays" else colored(one)) for name, one in BARE.items()}
GEOMETRIES = [name for name in MADE if name != "rays"]


def facts(one):
    """Return all that a geometry keeps beside its numbers, ids and labels; of instances, of both."""
    colors, sets = (getattr(one, name, None) for name in ("colors", "properties"))
    found = [dict(one.skipped), one.units, one.up, None if colors is None else colors.tolist()]
    found.append(sets and [*sets])
    return [*found, *facts(one.geometry)] if isinstance(one, rb.Instances) else found


@pytest.mark.parametrize("name", MADE)
def test_copies_and_slices_keep_facts(name):
    made, bare = MADE[name], BARE[name]
    for same in (copy.copy(made), copy.deepcopy(made), pickle.loads(pickle.dumps(made))):
        assert same.equals(made)
        assert facts(same) == facts(made)
    assert facts(bare)[:4] == [{}, None, None, None]
    for attribute in ("units", "colors", "properties")[: 1 if name == "rays" else 3]:
        with pytest.raises(AttributeError):
            setattr(made, attribute, None)
    if name == "rays":
        assert facts(made.reshape(2, 1)) == facts(made)
        return
    assert (made.colors.shape, made.colors.dtype) == ((len(made), 4), np.uint8)
    assert not made.equals(with_colors(made, None))
    assert not made.equals(with_colors(made, ~made.colors))
    for index in (slice(1), [1, 0], 1, np.arange(len(made)) > 0, slice(0, 0)) * (name != "grid"):
        part = made[index]
        assert facts(part)[:3] == facts(made)[:3]
        assert part.colors.tolist() == made.colors[index].reshape(-1, 4).tolist()
        for one in (same, part):
            assert not one.colors.flags.writeable


def test_cells_keep_colors():
    grid = MADE["grid"]
    cells = grid.colors.reshape(*grid.shape, 4)
    assert grid[1:, :, 1].colors.tolist() == cells[1:, :, 1:].reshape(-1, 4).tolist()
    assert grid.boxes(grid.occupied).colors.tolist() == grid.colors[grid.occupied.ravel()].tolist()
    assert grid.boxes().colors.tolist() == grid.colors.tolist()


def test_objects_keep_their_sets():
    assert [*BOXES.properties] == [*MESH.properties] == SETS
    assert [*BOXES[[2, 0]].properties] == [SETS[2], SETS[0]]
    assert [*BOXES[1].properties] == [{}]
    bare = with_properties(BOXES, None)
    assert bare.properties is None
    assert [*rb.concatenate([bare[:1], BOXES]).properties] == [{}, *SETS]
    assert not pickle.loads(pickle.dumps(MESH)).properties.texts.flags.writeable
    assert "3 objects, 2 with sets" in repr(BOXES.properties)


@pytest.mark.parametrize("name", ["boxes", "triangles", "mesh", "rays"])
def test_joins_keep_what_all_agree_on(name):
    made, bare = MADE[name], BARE[name]
    twice = {reason: 2 * count for reason, count in LEFT_OUT.items()}
    assert facts(rb.concatenate([made, made]))[:3] == [twice, "metre", "y"]
    assert facts(rb.concatenate([made, stated(bare, units="foot")]))[:3] == [twice, None, "y"]
    assert facts(rb.concatenate([made, bare]))[:3] == [LEFT_OUT, None, None]
    if name != "rays":
        colors = made.colors.tolist()
        assert rb.concatenate([made, made[:1]]).colors.tolist() == colors + colors[:1]
        assert rb.concatenate([bare, made]).colors.tolist() == [NONE] * len(made) + colors
        assert rb.concatenate([bare, bare]).colors is None


def test_moved_geometries_keep_facts():
    mirror = np.hstack([np.diag([1.0, -1, 1]), np.ones((3, 1))])
    assert MADE["mesh"].transformed(mirror).colors.tolist() == MADE["mesh"].colors.tolist()
    assert facts(MADE["boxes"].translated([1, 0, 0])) == facts(MADE["boxes"])
    assert facts(MADE["instances"].boxes())[:4] == facts(MADE["instances"])[:4]


FILES = {"npz": [*MADE], "parquet": ["boxes", "triangles", "mesh"], "ply": ["triangles", "mesh"]}


@pytest.mark.parametrize(("ending", "name"), [(ending, name) for ending in FILES for name in FILES[ending]])
def test_saved_files_keep_facts(tmp_path, name, ending):
    """Without a warning: the file holds all that was saved."""
    path, kind = tmp_path / f"a.{ending}", "rays" if name == "rays" else "scene"
    for one in (MADE[name], with_facts(MADE[name], up="z"), BARE[name]):
        rb.save(path, one)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            found = rb.load(path, kind=kind)
        if ending == "ply":
            assert facts(found)[3] == facts(one)[3]
            continue
        assert found.equals(one)
        assert facts(found)[: 5 if ending == "npz" else 4] == facts(one)[: 5 if ending == "npz" else 4]
        if name in ("boxes", "mesh"):
            assert rb.load(path, boxes=True).skipped == one.skipped
    if name in ("boxes", "mesh", "instances"):  # turned, they keep them, too
        rb.save(tmp_path / "a.npz", MADE[name])
        assert facts(rb.load(tmp_path / "a.npz", up="z"))[3] == facts(MADE[name])[3]


def test_lists_and_scenes_keep_facts(tmp_path):
    made = [MADE[name] for name in GEOMETRIES]
    rb.save(tmp_path / "a.npz", made)
    rb.Scene(made).save(tmp_path / "a.scene")
    for found in (
        rb.load(tmp_path / "a.npz"),
        rb.load(tmp_path / "a.scene"),
        rb.Scene.open(tmp_path / "a.scene").geometry,
    ):
        assert all(one.equals(other) for one, other in zip(found, made, strict=True))
        assert [*map(facts, found)] == [*map(facts, made)]
        assert not found[0].colors.flags.writeable
    rb.save(tmp_path / "two.npz", [MADE["boxes"], with_properties(BOXES, None)])
    assert [*rb.load(tmp_path / "two.npz", boxes=True).properties] == [*SETS, {}, {}, {}]


def test_counts_of_a_reader_reach_the_next_file(put, tmp_path):
    mesh, skipped = counted(put("a.obj", "v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\nf 1 2\n"))
    assert skipped == {"faces of fewer than three corners": 1}
    for ending in (".npz", ".parquet"):
        mesh.save(tmp_path / f"a{ending}")
        assert rb.load(tmp_path / f"a{ending}").skipped == skipped


def test_labels_named_like_colors_stay_labels(tmp_path):
    labels = {"red": [1, 2], "green": [1, 2], "blue": [3, 4], "alpha": [1.5, 2]}
    made = rb.Boxes([[0, 0], [1, 1]], [[1, 1], [2, 2]], labels=labels)
    rb.save(tmp_path / "a.parquet", made)
    assert rb.load(tmp_path / "a.parquet").equals(made)
    with pytest.raises(rb.InvalidInput, match="the label 'red' has the name of a column"):
        rb.save(tmp_path / "a.parquet", colored(made))
    rb.save(tmp_path / "a.npz", colored(made))


COUNTS = "skipped must have a whole number for each reason"
LINES = "property sets must be a line of JSON for each of 1 objects"
DAMAGED = [
    *(({"file/colors": wrong}, "colors must be uint8 of shape (1, 4); got")
      for wrong in (np.zeros((2, 4), np.uint8), np.zeros((1, 3), np.uint8), np.zeros((1, 4)))),
    ({"file/up": np.array("x")}, "up must be \"y\", \"z\" or None; got 'x'"),
    *(({"file/properties": np.frombuffer(lines, np.uint8)}, LINES)
      for lines in (b"{}\n{}", b"{", b"[]", b'{"a": 1}\n', b"\xff")),
    ({"skipped/reason": np.array(["a"])}, COUNTS),
    *(({"skipped/reason": np.array(["b"]), "skipped/count": wrong}, COUNTS)
      for wrong in (np.array([1, 2]), np.array([1.5]))),
    ({"skipped/reason": np.array("a"), "skipped/count": np.array(1)}, COUNTS),
]  # fmt: skip


@pytest.mark.parametrize(("arrays", "problem"), DAMAGED)
def test_damaged_facts_of_npz_are_refused(tmp_path, arrays, problem):
    np.savez(tmp_path / "a.npz", raybox=np.array("boxes"), lower=[[0.0, 0, 0]], upper=[[1.0, 1, 1]], **arrays)
    assert problem in refused(tmp_path / "a.npz")
    if problem == COUNTS:
        np.savez(tmp_path / "b.npz", origins=[[0.0, 0, 0]], directions=[[1.0, 1, 1]], **arrays)
        assert problem in refused(tmp_path / "b.npz", kind="rays")


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"a": null}', '{"a": 1e999}', "\udcff", "[" * 5000])
def test_damaged_counts_of_parquet_are_refused(tmp_path, text):
    path = tmp_path / "a.parquet"
    rb.save(path, MESH)
    table = pq.read_table(path)
    changed = {**table.schema.metadata, b"raybox.skipped": text.encode(errors="surrogateescape")}
    pq.write_table(table.replace_schema_metadata(changed), path)
    assert "damaged metadata raybox.skipped" in refused(path)
