"""`equals`, the errors of `numpy.asarray`, and names for tab completion."""

import copy
import pickle

import numpy as np
import pytest

import raybox as rb

SQUARE, FACES = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]], [[0, 1, 2], [0, 2, 3]]
LABELS = {"cost": [1.5, None], "name": ["a", None]}
EDGES = [0, 1, 2], [0, 1]


def hits_of(query, **options):
    scene = rb.Scene(rb.Boxes([[0, 0, 0], [2, 0, 0]], [[1, 1, 1], [3, 1, 1]], **options))
    rays = rb.Rays([[0.5, 0.5, 5], [2.5, 0.5, 5], [9, 9, 9]], [0, 0, -1])
    return getattr(scene, query)(rays)


MAKERS = {
    "boxes": lambda **options: rb.Boxes([[0, 0], [2, 0]], [[1, np.inf], [3, 1]], **options),
    "mesh": lambda **options: rb.Mesh(SQUARE, FACES, **options),
    "objects": lambda **options: rb.Mesh(SQUARE, FACES, objects=[1, 0], **options),
    "planes": lambda **options: rb.Planes([0, 0, 1], [1, 2], **options),
    "grid": lambda **options: rb.Grid(*EDGES, occupied=[[True], [False]], **options),
    "instances": lambda **options: rb.Instances(
        rb.Mesh(SQUARE, FACES), [np.eye(4)[:3], 2 * np.eye(4)[:3]], **options
    ),
    "nearest": lambda **options: hits_of("nearest", **options),
    "all": lambda **options: hits_of("all", **options),
    "by object": lambda **options: hits_of("all", **options).by_object(),
}


@pytest.mark.core
@pytest.mark.parametrize("kind", MAKERS)
def test_equal_containers(kind):
    make = MAKERS[kind]
    full = {"ids": ["x", "y"], "labels": LABELS}
    for options in ({}, full, {"labels": LABELS}):
        made = make(**options)
        for other in (make(**options), copy.deepcopy(made), pickle.loads(pickle.dumps(made)), made):
            assert made.equals(other)
        assert made != make(**options)
        assert made == made
    made = make(**full)
    different = [
        make(),
        make(ids=["x", "z"], labels=LABELS),
        make(ids=["x", "y"]),
        make(ids=["x", "y"], labels=LABELS | {"cost": [1.5, 2]}),
        make(ids=["x", "y"], labels={"cost": [1.5, None]}),
        make(ids=["x", "y"], labels={"cost": [1, 2], "name": ["a", None]}),
        None,
        "text",
        rb.Rays([0, 0], [1, 1]),
    ]
    assert [made.equals(other) for other in different] == [False] * len(different)
    assert made.equals(make(ids=["x", "y"], labels=dict(reversed(LABELS.items()))))


def test_other_arrays_are_not_equal():
    box = rb.Boxes([[0, 0]], [[1, 1]])
    assert not box.equals(rb.Boxes([[0, 0]], [[1, 2]]))
    assert not box.equals(rb.Boxes([[0, 0, 0]], [[1, 1, 0]]))
    mesh = rb.Mesh(SQUARE, FACES)
    assert mesh.equals(rb.Mesh(SQUARE, FACES, objects=[0, 1]))
    assert not mesh.equals(rb.Mesh(SQUARE, FACES, objects=[0, 0]))
    assert not mesh.equals(mesh[[1, 0]])
    grid = rb.Grid(*EDGES)
    assert grid.equals(rb.Grid(*EDGES, occupied=[[True], [True]]))
    assert not grid.equals(rb.Grid(*EDGES, occupied=[[True], [False]]))
    copies = rb.Instances(mesh, [np.eye(4)])
    assert not copies.equals(rb.Instances(mesh[:1], [np.eye(4)]))
    assert not copies.equals(rb.Instances(mesh, [2 * np.eye(4)[:3]]))
    rays = rb.Rays([[0, 0, 0]], [[1, 0, 0]])
    assert rays.equals(rb.Rays([[0, 0, 0]], [[1, 0, 0]], t_min=[0.0]))
    assert not rays.equals(rb.Rays([[0, 0, 0]], [[1, 0, 0]], t_min=[0.5]))
    assert not rays.equals(rays.reshape(()))
    scene = rb.Scene(mesh)
    hits, other = scene.nearest(rays), scene.nearest(rb.Rays([[0, 0, 9]], [[1, 0, 0]]))
    assert hits.equals(hits[:])
    assert np.isnan(other.t_enter).all()
    assert other.equals(scene.nearest(rb.Rays([[5, 0, 9]], [[1, 0, 0]])))  # misses alike: all NaN
    assert not scene.all(rays).equals(scene.all(rb.Rays([[5, 0, 9]], [[1, 0, 0]])))


@pytest.mark.parametrize("kind", [*MAKERS, "rays"])
def test_arrays_of_containers_are_refused_with_the_line_to_write(kind):
    made = rb.Rays([[0, 0, 0]], [[1, 0, 0]]) if kind == "rays" else MAKERS[kind]()
    lines = {
        "boxes": "numpy.hstack([boxes.lower, boxes.upper])",
        "rays": "numpy.concatenate([rays.origins, rays.directions], axis=-1)",
        "nearest": "hits.to_pandas()",
        "mesh": "mesh.triangles",
    }
    with pytest.raises(rb.InvalidInput, match=r"several arrays, not one\. Choose or join them: ") as raised:
        np.asarray(made)
    assert lines.get(kind, "") in str(raised.value)
    with pytest.raises(
        rb.InvalidInput, match=r"read-only: make a tensor of a copy, torch\.from_numpy\(array\.copy"
    ):
        np.from_dlpack(made)
    if isinstance(
        made, rb.Boxes | rb.Rays | rb.Hits | rb.AllHits
    ):  # of others pandas has an error of its own
        pandas = pytest.importorskip("pandas")
        with pytest.raises(rb.InvalidInput, match="several arrays, not one"):
            pandas.DataFrame(made)


def test_the_lines_to_write_work():
    boxes = MAKERS["boxes"]()
    assert rb.Boxes.from_bounds(np.hstack([boxes.lower, boxes.upper])).equals(boxes)
    rays = rb.Rays([[0, 0, 0]], [[1, 0, 0]])
    assert rb.Rays.from_array(np.concatenate([rays.origins, rays.directions], axis=-1)).equals(rays)


def test_names_for_tab_completion():
    for made in (*(make() for make in MAKERS.values()), rb.Rays([[0, 0]], [[1, 0]])):
        assert "equals" in dir(made)
        assert not {"rows", "kernel_rays", "settled"} & {*dir(made)}


@pytest.mark.parametrize(
    ("given", "line"),
    [
        ("house.ifc", r"Scene\(raybox.load\(path\)\)"),
        ({"min_x": [0]}, r"Scene\(raybox.Boxes.from_bounds\(table\)\)"),
        (np.zeros((2, 6)), r"Scene\(raybox.Boxes.from_bounds\(array\)\)"),
        (rb.Scene(rb.Boxes([0, 0], [1, 1])), r"Scene\(scene.geometry\)"),
        (5, r"Make some: Boxes\(lower, upper\)"),
        ([[0, 0, 0, 1, 1, 1]], r"Scene\(raybox.Boxes.from_bounds\(array\)\)"),
    ],
)
def test_scenes_of_other_objects_name_the_line_to_write(given, line):
    with pytest.raises(rb.InvalidInput, match=line):
        rb.Scene(given)


def test_scenes_of_trimesh_and_of_data_frames():
    trimesh, pandas = pytest.importorskip("trimesh"), pytest.importorskip("pandas")
    mesh = trimesh.Trimesh(SQUARE, FACES, process=False)
    with pytest.raises(
        rb.InvalidInput, match=r"got Trimesh. Convert it: Scene\(raybox.Mesh.from_trimesh\(mesh\)\)"
    ):
        rb.Scene(mesh)
    assert rb.Mesh.from_trimesh(mesh).equals(rb.Mesh(SQUARE, FACES))
    frame = pandas.DataFrame({name: [k] for k, name in enumerate(["min_x", "min_y", "max_x", "max_y"])})
    with pytest.raises(rb.InvalidInput, match=r"Of a table.*Scene\(raybox.Boxes.from_bounds\(table\)\)"):
        rb.Scene(frame)
    assert rb.Scene(rb.Boxes.from_bounds(frame)).bounds.tolist() == [[0, 1], [2, 3]]


def test_scenes_of_trimesh_have_an_object_for_each_node():
    trimesh = pytest.importorskip("trimesh")
    box, ball = trimesh.creation.box(), trimesh.creation.icosphere(1)
    scene = trimesh.Scene()
    moved, mirrored = np.eye(4), np.diag([-1.0, 1, 1, 1])
    moved[:3, 3] = [5, 0, 0]
    scene.add_geometry(box, node_name="first", geom_name="box", transform=moved)
    scene.add_geometry(ball, node_name="second", transform=mirrored)
    mesh = rb.Mesh.from_trimesh(scene)
    assert sorted(mesh.ids.tolist()) == ["first", "second"]
    assert len(mesh) == len(box.faces) + len(ball.faces)
    for name, part in (("first", box), ("second", ball)):
        own = mesh[mesh.objects == mesh.ids.tolist().index(name)]
        assert len(own) == len(part.faces)
        corners = own.triangles
        volume = np.einsum("ij,ij->i", corners[:, 0], np.cross(corners[:, 1], corners[:, 2])).sum() / 6
        assert volume == pytest.approx(part.volume)
    assert len(rb.Mesh.from_trimesh(trimesh.Scene())) == 0
    with pytest.raises(rb.InvalidInput, match="must be a Trimesh or a Scene of trimesh; got PointCloud"):
        rb.Mesh.from_trimesh(trimesh.PointCloud(SQUARE))
