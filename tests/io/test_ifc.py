"""rb.load of IFC: the surfaces of each product, against a brute force over ifcopenshell's own shapes."""

import re
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import exact_surfaces
import raybox as rb
from needs import package
from raybox.errors import SkippedWarning
from raybox.io.formats import ifc
from real_data import HOUSE

ifcopenshell = package("ifcopenshell")
geom = package("ifcopenshell.geom")
NEAR = 1e-9
"""Of barycentric weights and of relative times: what the filter leaves to rational arithmetic."""


class Product(NamedTuple):
    """A product of a model, and the corners (F, 3, 3) of its triangles."""

    id: str
    ifc_class: str
    storey: str | None
    corners: np.ndarray


def products_of(path: Path) -> list[Product]:
    """Return the products with a shape by number, but for spaces and openings."""
    settings = geom.settings()
    settings.set("use-world-coords", True)
    settings.set("reorient-shells", True)
    settings.set("keep-bounding-boxes", True)
    model = ifcopenshell.open(str(path))
    found = []
    for product in sorted(model.by_type("IfcProduct"), key=lambda product: product.id()):
        if product.Representation and product.is_a() not in ("IfcSpace", "IfcOpeningElement"):
            shape = geom.create_shape(settings, product)  # owns the memory of its geometry
            vertices = np.array(shape.geometry.verts).reshape(-1, 3)
            faces = np.array(shape.geometry.faces).reshape(-1, 3)
            found.append(Product(product.GlobalId, product.is_a(), storey_of(product), vertices[faces]))
    return found


def storey_of(thing) -> str | None:
    """Return the name of the storey that contains a product, or contains what the product is a part of."""
    if thing.is_a("IfcBuildingStorey"):
        return thing.Name
    for above in (*getattr(thing, "ContainedInStructure", ()), *thing.Decomposes):
        return storey_of(getattr(above, "RelatingStructure", None) or above.RelatingObject)
    return None


def nearest(rays: rb.Rays, products: list[Product]) -> tuple[np.ndarray, np.ndarray, int]:
    """Return object and t of the nearest triangle of each ray, and how many rays have several candidates.

    Every triangle is tried in float64; what that does not exclude, in rational arithmetic.
    """
    origins, directions = rays.origins.reshape(-1, 3), rays.directions.reshape(-1, 3)
    found, t, several = np.full(len(origins), -1), np.full(len(origins), np.inf), 0
    pairs = candidates(origins, directions, products)
    starts = np.searchsorted(pairs[:, 0], np.arange(len(origins) + 1))
    for ray in range(len(origins)):
        best = None
        for _, number, triangle in pairs[starts[ray] : starts[ray + 1]]:
            corners = products[number].corners[triangle]
            met = exact_surfaces.triangle(origins[ray], directions[ray], (0.0, np.inf), *corners)
            if met is not None and (best is None or met[0].t < best):
                best, found[ray], t[ray] = met[0].t, number, float(met[0].t)
        several += starts[ray + 1] - starts[ray] > 1
    return found.reshape(rays.shape), t.reshape(rays.shape), several


def candidates(origins: np.ndarray, directions: np.ndarray, products: list[Product]) -> np.ndarray:
    """Return ray, product and triangle of all pairs of which one may be the nearest, in this order."""
    pairs, times, limits = [], [], np.full(len(origins), np.inf)
    for number, product in enumerate(products):
        near = rays_near(origins, directions, product.corners.reshape(-1, 3))
        for triangle, corners in enumerate(product.corners):
            inside, t, odd = by_weights(origins[near], directions[near], *corners)
            possible = odd | ((inside >= -NEAR) & (t >= -NEAR))
            certain = ~odd & (inside >= NEAR) & (t >= NEAR)
            np.minimum.at(limits, near[certain], t[certain] * (1 + NEAR))
            pairs += [(ray, number, triangle) for ray in near[possible]]
            times.append(np.where(odd, 0.0, t)[possible])
    found, t = np.array(pairs, dtype=np.int64).reshape(-1, 3), np.concatenate(times)
    found = found[t * (1 - NEAR) <= limits[found[:, 0]]]
    return found[np.lexsort(found.T[::-1])]


def by_weights(o, d, a, b, c) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the least barycentric weight and t of each ray, and where float64 does not tell them."""
    e1, e2, s = b - a, c - a, o - a
    q, r = np.cross(d, e2), np.cross(s, e1)
    det = q @ e1
    odd = ~(np.abs(det) > NEAR * np.linalg.norm(e1) * np.linalg.norm(q, axis=-1))
    with np.errstate(all="ignore"):
        u, v, t = (s * q).sum(-1) / det, (d * r).sum(-1) / det, (r @ e2) / det
        return np.minimum(np.minimum(u, v), 1 - u - v), t, odd


def rays_near(origins: np.ndarray, directions: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Return the rays that may meet the box of points, by slabs with a margin."""
    with np.errstate(all="ignore"):
        ends = [(bound - origins) / directions for bound in (points.min(0) - 1e-6, points.max(0) + 1e-6)]
    return np.flatnonzero(np.minimum(*ends).max(-1) <= np.maximum(*ends).min(-1))


CAMERAS = {
    "front": ((4.5, -40, 6), (4.5, -9, 3), 20),
    "back": ((4.5, 20, 5), (4.5, -5, 3), 22),
    "inside": ((4, -2, 1.6), (4, 5, 2), 60),
}


@pytest.fixture(scope="module")
def house() -> list[Product]:
    return products_of(HOUSE)


@pytest.fixture(scope="module")
def mesh() -> rb.Mesh:
    return rb.load(HOUSE)


@pytest.mark.long
@pytest.mark.parametrize("camera", CAMERAS)
def test_each_pixel_names_the_nearest_product(camera, house, mesh):
    eye, target, fov = CAMERAS[camera]
    rays = rb.Rays.pinhole(eye, target, up=(0, 0, 1), fov=fov, width=208, height=156)
    hits = rb.Scene(mesh).nearest(rays)
    found, t, _ = nearest(rays, house)
    assert np.array_equal(hits.object, found)
    assert np.array_equal(hits.t, t)
    classes = np.array([product.ifc_class for product in house])
    windows = np.count_nonzero(classes[found[found >= 0]] == "IfcWindow")
    assert windows >= 4000
    assert (found < 0).any() == (camera != "inside")


def test_ties_at_corners_name_the_lowest_triangle(house, mesh):
    rng = np.random.default_rng(5)
    corners = mesh.vertices[rng.choice(len(mesh.vertices), 1500, replace=False)]
    directions = np.eye(3)[rng.integers(3, size=len(corners))]
    rays = rb.Rays(corners - 64 * directions, directions)
    hits = rb.Scene(mesh).nearest(rays)
    found, t, several = nearest(rays, house)
    assert np.array_equal(hits.object, found)
    assert np.array_equal(hits.t, t)
    assert several >= 300


def test_products_keep_their_triangles_ids_and_labels(house, mesh):
    assert len(house) == 215
    assert mesh.ids.tolist() == [product.id for product in house]
    assert mesh.labels["ifc_class"].tolist() == [product.ifc_class for product in house]
    assert mesh.labels["storey"].tolist() == [product.storey for product in house]
    assert Counter(mesh.labels["storey"]) == {"Level 1": 101, "Level 2": 93, "T/FDN": 14, "Roof": 7}
    assert np.array_equal(mesh.triangles, np.concatenate([product.corners for product in house]))
    assert np.array_equal(mesh.objects, np.repeat(np.arange(215), [len(p.corners) for p in house]))
    assert mesh.skipped == {"IfcSpace": 21, "IfcOpeningElement": 50}


def test_boxes_are_those_of_the_same_objects(house, mesh):
    boxes = rb.load(HOUSE, boxes=True)
    assert boxes.ids.tolist() == mesh.ids.tolist()
    assert boxes.labels == mesh.labels
    corners = [product.corners.reshape(-1, 3) for product in house]
    assert np.array_equal(boxes.lower, [c.min(0) for c in corners])
    assert np.array_equal(boxes.upper, [c.max(0) for c in corners])


def test_spaces_and_openings_on_request(mesh):
    boxes = rb.load(HOUSE, boxes=True, all_objects=True)
    classes = Counter(boxes.labels["ifc_class"])
    assert (len(boxes), classes["IfcSpace"], classes["IfcOpeningElement"]) == (286, 21, 50)
    assert not boxes.skipped


def test_the_faster_tessellation_has_the_same_objects_within_a_centimetre(mesh):
    hybrid = rb.load(HOUSE, tessellation="hybrid")
    assert hybrid.ids.tolist() == mesh.ids.tolist()
    for number in range(215):
        own, other = (m[m.objects == number].bounds for m in (mesh, hybrid))
        assert np.abs(own - other).max() < 0.01


def test_an_unknown_tessellation(model):
    with pytest.raises(rb.InvalidInput, match=r"tessellation must be .*; got 'cgal'"):
        rb.load(model("#40"), tessellation="cgal")


# Products that fail

MODEL = """ISO-10303-21;
HEADER;
FILE_DESCRIPTION((''),'2;1');
FILE_NAME('a.ifc','2026-01-01T00:00:00',(''),(''),'','','');
FILE_SCHEMA(('IFC4'));
ENDSEC;
DATA;
#1=IFCPROJECT('0000000000000000000001',$,'p',$,$,$,$,(#5),#10);
#2=IFCCARTESIANPOINT((0.,0.,0.));
#3=IFCAXIS2PLACEMENT3D(#2,$,$);
#5=IFCGEOMETRICREPRESENTATIONCONTEXT($,'Model',3,1.E-05,#3,$);
#10=IFCUNITASSIGNMENT((#11));
#11=IFCSIUNIT(*,.LENGTHUNIT.,$,.METRE.);
#22=IFCLOCALPLACEMENT($,#3);
#30=IFCRECTANGLEPROFILEDEF(.AREA.,$,$,2.,4.);
#31=IFCDIRECTION((0.,0.,1.));
#32=IFCEXTRUDEDAREASOLID(#30,#3,#31,3.);
#33=IFCBOUNDINGBOX(#2,2.,4.,3.);
#34=IFCEXTRUDEDAREASOLID(#30,#3,#31,0.);
#36=IFCCARTESIANPOINT((1.,0.,0.));
#37=IFCPOLYLINE((#2,#36));
#40=IFCSHAPEREPRESENTATION(#5,'Body','SweptSolid',(#32));
#41=IFCSHAPEREPRESENTATION(#5,'Box','BoundingBox',(#33));
#42=IFCSHAPEREPRESENTATION(#5,'Body','SweptSolid',(#34));
#43=IFCSHAPEREPRESENTATION(#5,'Axis','Curve2D',(#37));
#44=IFCSHAPEREPRESENTATION(#5,'Body','SweptSolid',(#32,#34));
"""

END = "ENDSEC;\nEND-ISO-10303-21;\n"


@pytest.fixture
def model(tmp_path):
    """Return a function that writes a model of walls, each with the representations given."""

    def written(*walls: str, end: str = END) -> Path:
        lines = [
            f"#{100 + 2 * k}=IFCPRODUCTDEFINITIONSHAPE($,$,({shapes}));\n"
            f"#{101 + 2 * k}=IFCWALL('{k:022}',$,'wall {k}',$,$,#22,#{100 + 2 * k},$,$);\n"
            for k, shapes in enumerate(walls)
        ]
        path = tmp_path / "walls.ifc"
        path.write_text(MODEL + "".join(lines) + end)
        return path

    return written


def test_a_product_without_extent_is_named(model):
    with pytest.warns(SkippedWarning, match=r"wall 1.*extrusion height.* \(1\)"):
        mesh = rb.load(model("#40", "#42", "#40"))
    assert mesh.ids.tolist() == [f"{0:022}", f"{2:022}"]
    (reason,) = mesh.skipped
    assert re.fullmatch(r"IfcWall 0000000000000000000001 'wall 1': .*extrusion height.*", reason)


def test_a_product_that_loses_an_item_says_so(model):
    with pytest.warns(SkippedWarning):
        mesh = rb.load(model("#44"))
    (reason,) = mesh.skipped
    assert len(mesh) == 12
    assert re.fullmatch(r"IfcWall \d+ 'wall 0', in part: .*extrusion height.*", reason)


def test_a_bounding_box_alone_is_twelve_triangles(model):
    mesh = rb.load(model("#41", "#41,#40"))
    assert np.bincount(mesh.objects).tolist() == [12, 12]
    assert mesh[mesh.objects == 0].bounds.tolist() == [[0, 0, 0], [2, 4, 3]]
    assert mesh[mesh.objects == 1].bounds.tolist() == [[-1, -2, 0], [1, 2, 3]]


def test_an_element_without_a_shape_is_counted(model):
    bare = "#200=IFCWALL('0000000000000000000200',$,'bare',$,$,#22,$,$,$);\n"
    mesh = rb.load(model("#40", end=bare + END))
    assert mesh.skipped == {"IfcWall without a surface": 1}


def test_curves_have_no_surface(model):
    assert rb.load(model("#40", "#43")).skipped == {"IfcWall without a surface": 1}
    with pytest.raises(rb.FileFormatError, match="no product with a surface"):
        rb.load(model("#43"))


def test_a_file_that_was_cut_off(model):
    with pytest.raises(rb.FileFormatError, match="ends too early"):
        rb.load(model("#40", end=""))


def test_a_product_whose_tessellation_ends_its_process(model, monkeypatch, tmp_path):
    stand_in(monkeypatch, tmp_path, "os.kill(os.getpid(), 9)")
    with pytest.warns(SkippedWarning, match="crashes"):
        mesh = rb.load(model("#40", "#40", "#40"))
    assert mesh.ids.tolist() == [f"{0:022}", f"{2:022}"]


def test_a_product_whose_tessellation_hangs(model, monkeypatch, tmp_path):
    monkeypatch.setattr(ifc, "SECONDS", 2.0)
    stand_in(monkeypatch, tmp_path, "time.sleep(1000)")
    with pytest.warns(SkippedWarning, match="takes over 2 s"):
        mesh = rb.load(model("#40", "#40", "#40"))
    assert mesh.ids.tolist() == [f"{0:022}", f"{2:022}"]


def stand_in(monkeypatch, tmp_path, action: str) -> None:
    """Make the tessellation of the product with the name 'wall 1' do something else."""
    program = tmp_path / "program.py"
    before = "    ifcopenshell.get_log()  # empties it\n"
    source = ifc.PROGRAM.read_text()
    assert before in source
    broken = f"    import time\n    if product.Name == 'wall 1':\n        {action}\n"
    program.write_text(source.replace(before, broken + before))
    monkeypatch.setattr(ifc, "PROGRAM", program)
