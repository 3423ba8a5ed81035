"""rb.load of IFC: the surfaces of each product are ifcopenshell's own shapes."""

import re
import signal
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

import raybox as rb
from needs import package
from raybox.errors import SkippedWarning
from raybox.files import read
from raybox.io.formats import ifc
from real_data import HOUSE, HOUSE_BOXES

ifcopenshell = package("ifcopenshell")
geom = package("ifcopenshell.geom")


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


@pytest.fixture(scope="module")
def house() -> list[Product]:
    return products_of(HOUSE)


@pytest.fixture(scope="module")
def mesh() -> rb.Mesh:
    return rb.load(HOUSE)


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


def test_spaces_and_openings_on_request():
    boxes, table = rb.load(HOUSE, boxes=True, all_objects=True), rb.load(HOUSE_BOXES)
    classes = Counter(boxes.labels["ifc_class"])
    assert (len(boxes), classes["IfcSpace"], classes["IfcOpeningElement"]) == (286, 21, 50)
    assert not boxes.skipped
    order = [boxes.ids.tolist().index(name) for name in table.ids]
    np.testing.assert_allclose(boxes[order].lower, table.lower, atol=1e-5)
    np.testing.assert_allclose(boxes[order].upper, table.upper, atol=1e-5)


def test_the_faster_tessellation_has_the_same_objects_within_a_centimetre(mesh):
    hybrid = rb.load(HOUSE, tessellation="hybrid")
    assert hybrid.ids.tolist() == mesh.ids.tolist()
    for number in range(215):
        own, other = (m[m.objects == number].bounds for m in (mesh, hybrid))
        assert np.abs(own - other).max() < 0.01


def test_an_unknown_tessellation(model):
    with pytest.raises(rb.InvalidInput, match=r"tessellation must be .*; got 'cgal'"):
        rb.load(model("#40"), tessellation="cgal")


# Products without matter

WITHOUT_MATTER = "Space OpeningElement Annotation Grid VirtualElement Building DistributionPort"
SCHEMAS = {
    "IFC2X3": "RoundedEdgeFeature StructuralSurfaceMember",
    "IFC4": "SpatialZone ExternalSpatialElement VoidingFeature OpeningStandardCase StructuralSurfaceMember",
    "IFC4X3_ADD2": "SpatialZone ExternalSpatialElement VoidingFeature EarthworksCut RoadPart Alignment",
}
WITH_MATTER = ("Wall", "Site", "BuildingElementProxy", "Furniture", "ProjectionElement", "Railing")


@pytest.mark.parametrize("schema", SCHEMAS)
def test_what_has_no_matter_is_left_out_by_the_tree_of_the_schema(schema, tmp_path):
    classes = [f"Ifc{name}" for name in (*f"{WITHOUT_MATTER} {SCHEMAS[schema]}".split(), *WITH_MATTER)]
    if schema == "IFC2X3":
        classes[classes.index("IfcFurniture")] = "IfcFurnishingElement"
    path = cubes_of(tmp_path / "all.ifc", schema, classes)
    mesh, every = rb.load(path), rb.load(path, all_objects=True)
    assert mesh.labels["ifc_class"].tolist() == classes[-len(WITH_MATTER) :]
    assert mesh.skipped == dict.fromkeys(classes[: -len(WITH_MATTER)], 1)
    assert every.labels["ifc_class"].tolist() == classes
    assert every.bounds[1, 0] == len(classes) - 0.5
    assert not every.skipped


def cubes_of(path: Path, schema: str, classes: list[str]) -> Path:
    """Write a model with a cube of each class, in a row, each with its class as its name."""
    model = ifcopenshell.file(schema=schema)
    frame = model.createIfcAxis2Placement3D(model.createIfcCartesianPoint((0.0, 0.0, 0.0)))
    context = model.createIfcGeometricRepresentationContext(None, "Model", 3, 1e-5, frame)
    units = model.createIfcUnitAssignment([model.createIfcSIUnit(None, "LENGTHUNIT", None, "METRE")])
    model.create_entity("IfcProject", ifcopenshell.guid.new(), RepresentationContexts=[context],
                        UnitsInContext=units)  # fmt: skip
    middle = model.createIfcAxis2Placement2D(model.createIfcCartesianPoint((0.0, 0.0)))
    profile = model.createIfcRectangleProfileDef("AREA", None, middle, 1.0, 1.0)
    up = model.createIfcDirection((0.0, 0.0, 1.0))
    for x, name in enumerate(classes):
        corner = model.createIfcAxis2Placement3D(model.createIfcCartesianPoint((float(x), 0.0, 0.0)))
        solid = model.createIfcExtrudedAreaSolid(profile, corner, up, 1.0)
        body = model.createIfcShapeRepresentation(context, "Body", "SweptSolid", [solid])
        product = model.create_entity(name, ifcopenshell.guid.new(), Name=f"{name}, {x}")
        product.Representation = model.createIfcProductDefinitionShape(None, None, [body])
        product.ObjectPlacement = model.createIfcLocalPlacement(None, frame)
    model.write(str(path))
    return path


def test_a_file_of_spaces_alone_says_how_to_read_them(tmp_path):
    path = cubes_of(tmp_path / "spaces.ifc", "IFC4", ["IfcSpace", "IfcSpace"])
    with pytest.raises(rb.FileFormatError, match=r"but IfcSpace \(2\); all_objects=True reads"):
        rb.load(path)


ROOTS = {
    *("IfcSpatialElement", "IfcSpatialStructureElement"),  # the second is the root of IFC2X3
    *("IfcFeatureElementSubtraction", "IfcVirtualElement", "IfcAnnotation", "IfcGrid", "IfcPort"),
    *("IfcPositioningElement", "IfcLinearElement", "IfcStructuralItem", "IfcStructuralActivity"),
}
"""Classes whose products, with those of their subclasses, have no matter."""


def test_classes_without_matter_are_those_of_all_schemas():
    wrapper = ifcopenshell.ifcopenshell_wrapper
    found = set()
    for schema in map(wrapper.schema_by_name, SCHEMAS):
        for entity in schema.entities():
            above, names = entity, []
            while above:
                names.append(above.name())
                above = above.supertype()
            if {*names} & ROOTS and not entity.is_abstract():
                found.add(entity.name())
    assert found - {"IfcSite"} == {*ifc.NO_MATTER}


# Labels and units


def test_the_predefined_type_is_of_the_product_or_of_its_type(tmp_path):
    path = cubes_of(tmp_path / "types.ifc", "IFC4", ["IfcBuildingElementProxy"] * 2 + ["IfcSlab"] * 4)
    model = ifcopenshell.open(str(path))
    provision, own, *slabs = model.by_type("IfcElement")
    provision.PredefinedType = "PROVISIONFORVOID"
    own.PredefinedType, own.ObjectType = "USERDEFINED", "planned air"
    slabs[0].PredefinedType, slabs[1].PredefinedType = "USERDEFINED", "NOTDEFINED"
    roof = model.create_entity("IfcSlabType", ifcopenshell.guid.new(), PredefinedType="ROOF")
    model.createIfcRelDefinesByType(ifcopenshell.guid.new(), None, None, None, slabs[1:3], roof)
    model.write(str(path))
    mesh = rb.load(path)
    expected = ["PROVISIONFORVOID", "planned air", "USERDEFINED", "ROOF", "ROOF", "NOTDEFINED"]
    assert mesh.labels["predefined_type"].tolist() == expected
    ray = rb.Rays([0, 0, 5], [0, 0, -1])
    assert rb.Scene(mesh).nearest(ray).t == 4
    assert not rb.Scene(mesh).nearest(ray, where="predefined_type != 'PROVISIONFORVOID'").hit


FOOT = "#12=IFCMEASUREWITHUNIT(IFCLENGTHMEASURE(0.3048),#11);\n#13=IFCDIMENSIONALEXPONENTS(1,0,0,0,0,0,0);\n"
FOOT += "#14=IFCCONVERSIONBASEDUNIT(#13,.LENGTHUNIT.,'FOOT',#12);\n"
UNITS = {
    "metre": (1, "(#11)", "(#11)"),
    "millimetre": (1e-3, "$,.METRE.", ".MILLI.,.METRE."),
    "foot": (0.3048, "(#11));\n", f"(#14));\n{FOOT}"),
    None: (1, "(#11)", "()"),
}


@pytest.mark.parametrize("unit", UNITS)
def test_coordinates_are_in_metres(model, unit):
    path, (scale, old, new) = model("#40"), UNITS[unit]
    path.write_text(path.read_text().replace(old, new))
    found = read(path)
    assert (found.units, found.up) == ("metre" if unit else None, "z")
    np.testing.assert_allclose(found.geometry.bounds[1], [1 * scale, 2 * scale, 3 * scale], rtol=1e-12)


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
    with pytest.raises(rb.FileFormatError, match=r"no product with a surface, but IfcWall without a surface"):
        rb.load(model("#43"))


PLACED = "#54=IFCCARTESIANTRANSFORMATIONOPERATOR3D($,$,#2,$,$);\n"
FLAT = (
    "#50=IFCCARTESIANPOINTLIST3D(((0.,0.,0.),(1.,0.,0.),(2.,0.,0.)));\n"
    "#51=IFCTRIANGULATEDFACESET(#50,$,$,((1,2,3)),$);\n"
)
BODIES = {
    "half space": "#50=IFCPLANE(#3);\n#51=IFCHALFSPACESOLID(#50,.T.);\n{body}(#51));\n",
    "flat face": FLAT + "{body}(#51));\n",
    "nothing remains": "#50=IFCBOOLEANRESULT(.DIFFERENCE.,#32,#32);\n{body}(#50));\n",
    "a mapped one": (
        FLAT + "#52=IFCSHAPEREPRESENTATION(#5,'Body','Tessellation',(#51));\n"
        "#53=IFCREPRESENTATIONMAP(#3,#52);\n" + PLACED + "#55=IFCMAPPEDITEM(#53,#54);\n{body}(#55));\n"
    ),
    "a surface of a set": (
        "#50=IFCPLANE(#3);\n#51=IFCPOLYLINE((#2,#36,#2));\n#52=IFCCURVEBOUNDEDPLANE(#50,#51,());\n"
        "#53=IFCGEOMETRICSET((#37,#52));\n{body}(#53));\n"
    ),
    "no items": "{body}());\n",
    "no surface of IFC": "#50=IFCSECTIONEDSPINE($,(#30,#30),(#3,#3));\n{body}(#50));\n",
}


@pytest.mark.parametrize("kind", BODIES)
def test_a_product_whose_body_fails_is_never_without_a_surface(model, kind):
    shape = BODIES[kind].format(body="#60=IFCSHAPEREPRESENTATION(#5,'Body','Brep',")
    bad = shape + "#61=IFCPRODUCTDEFINITIONSHAPE($,$,(#60));\n"
    bad += "#62=IFCWALL('0000000000000000000062',$,'bad',$,$,#22,#61,$,$);\n"
    with pytest.warns(SkippedWarning, match=r"IfcWall 0000000000000000000062 'bad': \w"):
        mesh = rb.load(model("#40", end=bad + END))
    assert [*mesh.skipped.values()] == [1]
    assert mesh.ids.tolist() == [f"{0:022}"]
    with pytest.raises(rb.FileFormatError, match=r"no product with a surface, but IfcWall \d+62 'bad': \w"):
        rb.load(model(end=bad + END))


@pytest.mark.parametrize("items", ["#37", "#51", "#53"])
def test_curves_of_any_kind_are_no_failure(model, items):
    curves = (
        "#51=IFCGEOMETRICCURVESET((#37));\n#50=IFCREPRESENTATIONMAP(#3,#43);\n#53=IFCMAPPEDITEM(#50,#54);\n"
    )
    curves += f"{PLACED}#60=IFCSHAPEREPRESENTATION(#5,'Body','Curve3D',({items}));\n"
    curves += "#61=IFCPRODUCTDEFINITIONSHAPE($,$,(#60));\n"
    curves += "#62=IFCWALL('0000000000000000000062',$,'axis',$,$,#22,#61,$,$);\n"
    assert rb.load(model("#40", end=curves + END)).skipped == {"IfcWall without a surface": 1}


def test_a_file_that_was_cut_off(model):
    with pytest.raises(rb.FileFormatError, match="ends too early"):
        rb.load(model("#40", end=""))


WAITS = "time.sleep(1000)"


@pytest.mark.parametrize(
    ("seconds", "action", "change", "reason"),
    [
        (ifc.SECONDS, "os.kill(os.getpid(), 9)", (), "crashes"),
        (2.0, "while True: pass", (), "takes over 2 s of processor time"),
        (5.0, WAITS, ("WAITS = 10", "WAITS = 1"), "takes over 5 s"),  # it takes no processor time
        (
            5.0,
            WAITS,
            ("import resource", "raise ImportError"),
            "takes over 5 s",
        ),  # some systems have no limit
    ],
)
def test_a_product_whose_tessellation_does_not_end_well(
    model, monkeypatch, tmp_path, seconds, action, change, reason
):
    monkeypatch.setattr(ifc, "SECONDS", seconds)
    stand_in(monkeypatch, tmp_path, action, *([change] if change else []))
    with pytest.warns(SkippedWarning, match=reason):
        mesh = rb.load(model("#40", "#40", "#40"))
    assert mesh.ids.tolist() == [f"{0:022}", f"{2:022}"]


@pytest.mark.skipif(not hasattr(signal, "SIGXCPU"), reason="no limit of processor time")
def test_a_busy_machine_costs_no_product(model, monkeypatch, tmp_path):
    """By the clock, the second product takes longer than its limit of processor time."""
    monkeypatch.setattr(ifc, "SECONDS", 1.0)
    stand_in(monkeypatch, tmp_path, "time.sleep(2)")
    assert len(rb.load(model("#40", "#40")).ids) == 2


@pytest.mark.skipif(not hasattr(signal, "SIGXCPU"), reason="no limit of processor time")
def test_the_limit_is_raised_for_each_product(model, monkeypatch, tmp_path):
    """Two products take more than a second; the reason that they fail with is the limit of each."""
    action = """end = time.process_time() + 1.1
        while time.process_time() < end: pass
        return {"failed": str(resource.getrlimit(resource.RLIMIT_CPU)[0])}, b"" """
    stand_in(monkeypatch, tmp_path, action, ("product.Name == 'wall 1'", "product.Name != 'wall 2'"))
    with pytest.warns(SkippedWarning):
        mesh = rb.load(model("#40", "#40", "#40"))
    first, second = sorted(int(reason.split()[-1]) for reason in mesh.skipped)
    assert ifc.SECONDS < first < second


def test_an_exception_of_the_process_arrives_with_its_text(model, monkeypatch, tmp_path):
    stand_in(monkeypatch, tmp_path, "raise ValueError('no such curve')")
    with pytest.warns(SkippedWarning, match="'wall 1': its tessellation fails .*no such curve"):
        assert len(rb.load(model("#40", "#40")).ids) == 1
    path = model("#40")
    stand_in(monkeypatch, tmp_path, "", ('by_type("IfcProduct")', 'by_type("IfcNothing")'))
    with pytest.raises(rb.FileFormatError, match=r"walls\.ifc: its reader fails \(.*IfcNothing"):
        rb.load(path)
    path.write_text(path.read_text().replace("FILE_SCHEMA", "SCHEMA"))
    with pytest.raises(rb.FileFormatError, match="Unable to parse IFC SPF header; check the file"):
        rb.load(path)


def stand_in(monkeypatch, tmp_path, action: str, change: tuple[str, str] = ("", "")) -> None:
    """Make the tessellation of the product with the name 'wall 1' do something else."""
    program = tmp_path / "program.py"
    before = "    ifcopenshell.get_log()  # empties it\n"
    source = ifc.PROGRAM.read_text()
    assert before in source
    broken = f"    if product.Name == 'wall 1':\n        {action or 'pass'}\n"
    changed = source.replace(before, broken + before).replace(*change)
    assert changed.count(change[1])
    program.write_text(changed)
    monkeypatch.setattr(ifc, "PROGRAM", program)
