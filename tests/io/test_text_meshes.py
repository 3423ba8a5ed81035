"""OBJ, STL, PLY and PCD: harmless bytes are read, harmless lines counted, others refused."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import raybox as rb
from file_samples import (
    CASES,
    CORNERS,
    ENCODINGS,
    FACES,
    ORDERS,
    PLY_CODES,
    POINTS,
    compress_lzf,
    pcd,
    pcd_body,
    ply,
    ply_rows,
    ply_with,
    samples,
    stl,
    strips,
)
from raybox.errors import SkippedWarning
from raybox.geometry.triangle_strips import strip_triangles
from raybox.io.formats import contents, obj, read
from raybox.io.formats.pcd import decompress_lzf
from raybox.io.formats.text_lines import floats
from refusals import check_replaced, counted, refused

SHORT = "faces of fewer than three corners"
TRIANGLE = "v 0 0 0\nv 1 0 0\nv 0 1 0\n"


# Bytes that are harmless

TEXTS = {
    "a.obj": TRIANGLE + "o part\nf 1 2 3\n",
    "a.stl": stl(text=True).decode(),
    "a.ply": ply("ascii").decode(),
    "a.pcd": pcd("ascii").decode(),
}
ENCODED = [(encoding, mark) for encoding in ("utf-16-le", "utf-16-be", "utf-32-le") for mark in (True, False)]


def numbers(path):
    """Return the numbers of a file as lists."""
    if path.suffix == ".pcd":
        return contents(path).arrays["points"].tolist()
    mesh = rb.load(path)
    return mesh.triangles.tolist(), mesh.ids.tolist()


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("tail", ["", "\n \t\r\n", "\r\r"])
def test_line_ends_marks_and_blanks(put, name, end, mark, tail):
    text = TEXTS[name].replace("\n", end)
    wanted = numbers(put(name, TEXTS[name]))
    assert numbers(put(name, (mark + text + tail).encode())) == wanted


@pytest.mark.parametrize("order", ORDERS[1:])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("tail", [b"", b"\r\n"])
def test_binary_ply_with_such_headers(put, order, end, mark, tail):
    head, body = ply(order).split(b"end_header\n")
    content = mark + (head + b"end_header\n").replace(b"\n", end) + body + tail
    np.testing.assert_array_equal(rb.load(put("a.ply", content)).triangles, CORNERS[FACES])


@pytest.mark.parametrize("encoding", ENCODINGS[1:])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("tail", [b"", b"\n", b"\0\0\0 \n"])
def test_binary_pcd_with_such_headers(put, encoding, end, tail):
    head, mark, body = pcd(encoding).partition(encoding.encode() + b"\n")
    content = (head + mark).replace(b"\n", end) + body + tail
    assert numbers(put("a.pcd", content)) == numbers(put("b.pcd", pcd(encoding)))


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize(("encoding", "marked"), ENCODED)
def test_other_encodings_are_read_or_named(put, name, encoding, marked):
    path = put(name, (("\ufeff" if marked else "") + TEXTS[name]).encode(encoding))
    if marked and name != "a.ply":
        assert numbers(path) == numbers(put(name, TEXTS[name]))
        return
    text = refused(path, kind="rays" if name == "a.pcd" else "scene")
    assert any(words in text for words in ("UTF-16", "does not begin like PLY", "is neither text nor"))


def test_damaged_utf16(put):
    content = "\ufeffv 0 0 0\n".encode("utf-16-le")
    for tail in (b"\0", b"\0\xd8", b"\0\xdcab"):
        assert "its text in UTF-16 is damaged" in refused(put("a.obj", content + tail))


# Numbers


VERTICES = {  # where the first number of a vertex or a point stands in a text of each format
    "a.obj": ("v {} 0 0\n", "v {} 0 0\n"),
    "a.stl": (TEXTS["a.stl"], "vertex 0.0"),
    "a.ply": (TEXTS["a.ply"], "4.0 0.0 0.0 9"),
    "a.pcd": (TEXTS["a.pcd"], TEXTS["a.pcd"].partition("DATA ascii\n")[2].partition("\n")[0]),
}
NUMBERS = {"a.obj": "v {} 0 0\n", "a.stl": "vertex {}", "a.ply": "4 {} 0 9", "a.pcd": "7 {} 0 0"}


def refused_with(put, name, word):
    """Return the error of a file in which a word stands in place of a coordinate."""
    text, old = VERTICES[name]
    path = put(name, text.replace(old, NUMBERS[name].format(word), 1))
    return refused(path, kind="rays" if name == "a.pcd" else "scene")


@pytest.mark.parametrize("word", ["9007199254740993", "-9007199254740993", "123456789012345678901"])
def test_integers_that_float64_does_not_hold(put, word):
    for name in TEXTS:
        assert f"float64 does not hold the integer '{word}' exactly" in refused_with(put, name, word)
    assert floats([word + ".0", word + "e0", "9007199254740994", str(2**70)])


@pytest.mark.parametrize("encoding", ENCODINGS[1:])
def test_large_integers_of_binary_pcd(put, encoding):
    head = f"FIELDS x y z\nSIZE 8 8 8\nTYPE I I U\nWIDTH 1\nDATA {encoding}\n".encode()
    for x, exact in ((2**53 + 2, True), (-(2**53) - 1, False), (2**62 + 1, False)):
        path = put("a.pcd", head + pcd_body(encoding, ("<q", "<q", "<Q"), [(x, 1, 2**63)]))
        if exact:
            assert numbers(path) == [[x, 1, 2**63]]
        else:
            text = refused(path, origin=(0, 0, 0))
            assert "field x has an integer that float64 does not hold exactly" in text


@pytest.mark.parametrize("word", ["1_0", "x", "0x10", "1e", "--1", "1,5", "١"])
def test_words_that_are_no_numbers(put, word):
    for name in TEXTS:
        assert "is not a number" in refused_with(put, name, word)
    if word in ("1e", "0x10"):
        assert "is not a face of numbers" in refused(put("a.obj", TRIANGLE + f"f 1 2 {word}\n"))


# OBJ


FACE = TRIANGLE + "f 1 2 3\n"
PASSED = "vn 0 0 1\nvt 0 0\nvp 0.5\ns off\nmtllib a.mtl\nmg 1 2\nlod 3\nparm u 0 1\ntrim 0 1 1\nend\n"
PASSED += "#MRGB ffff00\nusemap a\n"
LOST = "p 1 2\nl 1 2\nl 1 2 3\ncurv 0 1 1 2\nsurf 0 1 0 1 1 2\nf 1 2\nf 1\nf -1 -2\n"
LOST_COUNTS = {"points": 1, "lines": 2, "curves": 1, "free-form surfaces": 1, SHORT: 3}
MORE = "v 0 0 0 1 2\nv 1 0 0 .1 .2 .3 1 9\nv 0 1 0 red\nf 1 2 3\n"
RANGES = b"element range_grid 1\nproperty int a\nend_header\n"
STRIP = b"element tristrips 1\nproperty list int int vertex_indices\nend_header\n"


def unknown(**words):
    return {f"lines of {word!r}, which raybox does not know": count for word, count in words.items()}


def test_what_carries_no_triangles_is_passed_or_counted(put):
    passed = rb.load(put("a.obj", TRIANGLE + PASSED + "f 1/1/1 2//1 3/2\nfo 3 2 1\n"))
    assert (len(passed), passed.skipped) == (2, {})
    words = "# a scanner\nsome words\n" + STL.replace("  outer", "  color 1 0 0\n  outer") + "more\n"
    head, _, body = ply_of_objects("ascii", [[0, 1, 2]], [3]).partition(b"end_header\n")
    for name, content, triangles, counts in (
        ("a.obj", FACE + LOST, 1, LOST_COUNTS),
        ("a.obj", MORE, 1, {"words after x y z of vertices": 7}),
        ("a.stl", words, 4, unknown(**{"#": 1, "some": 1, "color": 4, "more": 1})),
        ("a.ply", head + STRIP + body + b"4 0 1 2 3\n", 3, {"objects of faces, next to triangle strips": 1}),
        ("a.ply", ply(faces=[]), 0, {"vertices without a face (points need an origin)": 4}),
    ):
        mesh, skipped = counted(put(name, content))
        assert (len(mesh), skipped) == (triangles, counts)
    path = put("a.ply", ply(faces=[]).replace(b"end_header\n", RANGES) + b"1\n")
    rays, skipped = counted(path, origin=(0, 0, 0))
    assert (len(rays), skipped) == (4, {"rows of range_grid": 1})
    problem = f"holds no triangles, but lines (1), {SHORT} (1); check"
    assert problem in refused(put("a.obj", TRIANGLE + "l 1 2\nf 1 2\n"))


UNKNOWN = ["vw 0 0 1", "vc 1 1 1\nvc 1 0 0", "t 0 1", "Ka 1 1 1", "newmtl stone", "vertex 0 0 0"]


@pytest.mark.parametrize("lines", UNKNOWN)
@pytest.mark.parametrize("place", [0, 1, 4])
def test_an_unknown_line_of_obj_is_counted(put, lines, place):
    content, given = FACE.splitlines(), lines.splitlines()
    content[place:place] = given
    mesh, skipped = counted(put("a.obj", "\n".join(content) + "\n"))
    assert skipped == unknown(**{lines.split()[0]: len(given)})
    assert mesh.triangles.tolist() == [[[0, 0, 0], [1, 0, 0], [0, 1, 0]]]


def test_many_unknown_words_are_counted_together(put):
    lines = "".join(f"word{chr(97 + k % 26)}{k} 1\n" for k in range(500))
    with pytest.warns(SkippedWarning, match="16 other reasons"):
        mesh = rb.load(put("a.obj", FACE + lines))
    assert (len(mesh), len(mesh.skipped), sum(mesh.skipped.values())) == (1, 21, 500)


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("0 0 0", "is no statement of OBJ"),
        ("-1 2", "is no statement of OBJ"),
        ("{}", "is no statement of OBJ"),
        ("V 0 0 0", "is in capitals, which OBJ does not have"),
        ("F 1 2 3", "is in capitals, which OBJ does not have"),
        ("call other.obj", "reads another file"),
        ("csh ls", "runs a command"),
        ("f", "is not a face of numbers"),
        ("f 1 2 3 4", "vertex 3 does not exist: there are 3"),
        ("f 1 2 -4", "names a vertex that does not exist; there are 3 so far, counted from 1"),
        ("f 0 1 2", "names a vertex that does not exist"),
        ("f 1 2 1_0", "is not a face"),
        ("f 1.0 2 3", "is not a face"),
        ("f 1 a/1 2", "'f 1 a/1 2' is not a face of numbers of vertices"),
        (f"f 1 {10**30} 2", "has a number that is too large"),
        ("v 0 x 0", "line 5: 'v 0 x 0' is not a vertex: 'x' is not a number"),
        ("v 0 0", "has 2 numbers, a vertex has 3 or more"),
        ("v 0 0 red 1", "'red' is not a number"),
        ("f 1 2 \\", "is continued, but no line follows"),
        ("\\", "is continued, but no line follows"),
    ],
)
def test_a_line_that_may_change_triangles_ends_the_reading(put, line, expected):
    content = (TRIANGLE + "f 1 2 3\n" + line + "\n").encode("latin-1")
    text = refused(put("a.obj", content))
    assert expected in text
    assert "line 5" in text or "part 'a', triangle 2" in text


def test_names_of_obj_as_they_are(put):
    text = TRIANGLE + "o Wand # süd\ng  a   b \nf 1 2 3\ng\nf 3 2 1\no Wand # süd\nf 1 3 2\nf 1 2 3\n"
    mesh = rb.load(put("a.obj", text))
    assert mesh.ids.tolist() == ["a b", "a", "Wand # süd"]
    assert mesh.objects.tolist() == [0, 1, 2, 2]
    comments = b"# \xe9\xff\nv 0 0 0 # \xe9\nv 1 0 0\nv 0 1 0\nusemtl caf\xe9\nf 1 2 3\n"
    assert len(rb.load(put("a.obj", comments))) == 1


def test_vertices_with_weights_or_colors(put):
    text = "v 0 0 0 1\nv 1 0 0 .5 .5 .5\nv 0 1 0 1 .5 .5 .5\nf 1 2 3\n"
    assert rb.load(put("a.obj", text)).vertices.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]


def test_many_continued_lines_and_a_long_one(put):
    """A face of 60,000 corners, one a line: quadratic joining would take minutes."""
    face = "f" + "".join(f" \\\n{k}" for k in range(1, 60_001))
    assert sum(1 for _ in obj._statements(put("a.obj", "v 0 0 0\n" * 60_000 + face + "\n"))) == 60_001


def test_comments_at_the_end_of_lines_of_obj(put):
    text = "# C:\\models\\\nv 0 0 0 # first\nv 1 0 0#second\nv 0 1 0\no part # 1\nf 1 2 3 # the only face\n"
    path = put("a.obj", text + "f 1/1 3/2 2/3# turned\nf 1 2 \\\n3 # \\\n")
    assert rb.load(path).faces.tolist() == [[0, 1, 2], [0, 2, 1], [0, 1, 2]]
    assert read(path, boxes=True).ids == ["part # 1"]


def test_concave_polygons_are_not_fans(put):
    mesh = rb.load(CASES / "o12b_L.obj")
    corners = mesh.triangles
    areas = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])[:, 2] / 2
    assert areas.sum() == 3
    assert (areas > 0).all()
    scene = rb.Scene(mesh)
    down = rb.Rays([[1.2, 1.2, 1], [0.5, 0.4, 1]], [[0, 0, -1]] * 2)
    assert scene.count(down).tolist() == [0, 1]
    bow = TRIANGLE + "v 1 1 0\nf 1 2\nf 1 2 3 4\nf 1 2 4 3\nf 2 3 4 1\n"
    mesh, skipped = counted(put("a.obj", bow))
    crossed = "exact shapes of faces that are not flat or cross themselves, such as face 1 counted from 0"
    assert (len(mesh), skipped) == (6, {SHORT: 1, crossed: 2})


def test_numbers_that_are_not_finite_only_where_they_are_used(put):
    for word in ("nan", "inf", "-inf", "1e999"):
        text = f"v 0 0 0\nv 0 {word} 0\nv 1 0 0\nv 0 1 0\no a\nf 1 3 4\no b\nf 4 3 1\n"
        mesh = rb.load(put("a.obj", text))
        assert mesh.triangles.tolist() == [
            [[0, 0, 0], [1, 0, 0], [0, 1, 0]],
            [[0, 1, 0], [1, 0, 0], [0, 0, 0]],
        ]
        assert rb.load(put("a.obj", text), boxes=True).ids.tolist() == ["a", "b"]
        problem = "vertex 1 (the first is 0), column y"
        assert problem in refused(put("a.obj", text + "f 1 2 3\n"))


def test_text_without_a_known_statement_is_no_obj(put):
    for text in ("# a comment\n", "\n\n"):
        assert "has no statement of OBJ; check that it is" in refused(put("a.obj", text))
    text = refused(put("a.obj", "# a\nfoo 1\nbar 2\n"))
    assert "line 2: 'foo 1' is no statement of OBJ, and no line is" in text


DAMAGED = [("caf\xe9", "caf\ufffd"), ("caf\xe8", "caf\ufffd"), ("s\xfcd", "s\ufffdd"), ("plain", "plain")]


def test_names_in_other_encodings(put):
    lines = "".join(f"g {name}\nf 1 2 3\n" for name, _ in DAMAGED)
    obj, skipped = counted(put("a.obj", (TRIANGLE + lines).encode("latin-1")))
    solids = "".join(STL.replace("tetra", name) for name, _ in DAMAGED).encode("latin-1")
    same = counted(put("a.stl", solids))
    for mesh, counts in ((obj, skipped), same):
        assert mesh.ids.tolist() == [name for _, name in DAMAGED]
        reason = "different names that are equal without what is not UTF-8"
        assert counts == {"names that are not UTF-8": 3, reason: 1}


def test_files_that_state_no_faces_are_empty_meshes(put):
    binary = b"no triangles".ljust(80) + bytes(4)
    files = {"a.obj": "o nothing\nmtllib a.mtl\n", "a.stl": "solid a\nendsolid a\n", "b.stl": binary}
    files |= {"a.ply": ply(faces=[]).replace(b"vertex 4", b"vertex 0").partition(b"end_header\n")[0]}
    files["a.ply"] += b"end_header\n"
    for name, content in files.items():
        mesh = rb.load(put(name, content))
        assert (len(mesh), mesh.skipped) == (0, {}), name
        assert len(rb.load(put(name, content), boxes=True)) == 0
        assert rb.Scene(mesh).count(rb.Rays([0, 0, 0], [1, 0, 0])) == 0
    assert "holds no triangles; check" in refused(put("a.obj", TRIANGLE))  # it may be cut off


# STL


TAILS = {
    "3 bytes follow the end": b"abc",
    "50 bytes follow the end": bytes(50),
    "284 bytes announced, 283": None,
}


@pytest.mark.parametrize("tail", [b"\n", b"\r\n", b"  \t\n\n", b"\0", b"\0\0", b"\0" * 49, b"\n\0\n"])
def test_blanks_and_zeros_after_a_binary_stl(put, tail):
    whole = stl(text=False)
    assert len(rb.load(put("a.stl", whole + tail))) == len(FACES)
    for problem, more in TAILS.items():
        assert problem in refused(put("a.stl", whole[:-1] if more is None else whole + more))


STL = stl(text=True).decode()


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("  outer loop\n", "", "stands where outer loop should stand"),
        ("  endloop\n", "", "'endfacet' stands where endloop should stand"),
        (" endfacet\n", "", "stands where endfacet should stand"),
        ("vertex 0.0 0.0 0.0", "vertex 0.0 0.0", "has 2 numbers, a vertex has 3"),
        ("vertex 0.0 0.0 0.0", "vertex 0.0 0.0 0.0 0.0", "has 4 numbers, a vertex has 3"),
        ("vertex 0.0 0.0 0.0", "color 1 0 0", "'endloop' stands where vertex should stand"),
        ("solid tetra\n", "facet\nsolid tetra\n", "line 1: 'facet' stands where solid should stand"),
        ("vertex 0.0 0.0 0.0", "vertex nan 0.0 0.0", "nan is not a finite number"),
        ("endsolid tetra\n", "", "ends too early"),
        ("endsolid tetra", "endsolid tetra\nsolid", "ends too early"),
        ("endsolid tetra", "endsolid tetra\nfacet", "'facet' stands where solid should stand"),
    ],
)
def test_wrong_lines_of_stl(tmp_path, old, new, expected):
    check_replaced(tmp_path / "a.stl", STL, old, new, expected)


def test_solids_are_objects_also_of_one_name(put):
    spaced = "\n\n" + STL.upper().replace("TETRA", "tür").replace("\n", " \n\n")
    mesh = rb.load(put("a.stl", STL + spaced + "solid\nendsolid\n" + STL))
    assert mesh.ids.tolist() == ["tetra", "tür", "tetra"]
    assert mesh.objects.tolist() == [0] * 4 + [1] * 4 + [2] * 4
    np.testing.assert_array_equal(mesh.triangles, np.tile(CORNERS[FACES], (3, 1, 1)))


# PLY


PROPERTIES = {  # those of types whose size alone matters may have one name, for no one reads them
    "vertex": [
        ("double", "x"),
        ("float", "y"),
        ("short", "z"),
        ("uchar", "red"),
        ("list uchar int", "near"),
        ("uint64", "other"),
        ("uint8_t", "other"),
        ("list uchar float16", "weights"),
    ],
    "face": [("list uchar uint", "vertex_indices"), ("list short float", "uv"), ("int", "flags")],
    "edge": [("int", "vertex1"), ("int", "vertex2"), ("list uchar double", "more"), ("int64", "key")],
}


def random_ply(rng, order):
    """Return a file with elements and properties in any order, its vertices, and its faces."""
    vertices = rng.integers(-9, 9, (6, 3)).tolist()
    faces = [rng.permutation(6)[: rng.integers(0, 4)].tolist() for _ in range(int(rng.integers(1, 6)))]
    head, rows = f"ply\nformat {order} 1.0\nobj_info any words\n", []
    for element in rng.permutation(list(PROPERTIES)).tolist():
        count = {"vertex": 6, "face": len(faces), "edge": 2}[element]
        head += f"comment here\nelement {element} {count}\n"
        properties = [PROPERTIES[element][k] for k in rng.permutation(len(PROPERTIES[element]))]
        head += "".join(f"property {kind} {name}\n" for kind, name in properties)
        for row in range(count):
            rows.append([])
            for kind, name in properties:
                *length, item = kind.removeprefix("list ").split()
                values = rng.integers(0, 9, rng.integers(0, 3) if length else 1).tolist()
                if element == "vertex" and name in "xyz":
                    values = [vertices[row]["xyz".index(name)]]
                if name == "vertex_indices":
                    values = faces[row]
                rows[-1] += [(PLY_CODES[length[0]], len(values))] if length else []
                rows[-1] += [(PLY_CODES[item], value) for value in values]
    return head.encode() + b"end_header\n" + ply_rows(order, rows), vertices, faces


@given(st.integers(0, 2**32), st.sampled_from(ORDERS))
def test_properties_in_any_order(tmp_path_factory, seed, order):
    content, vertices, faces = random_ply(np.random.default_rng(seed), order)
    path = tmp_path_factory.mktemp("ply") / "a.ply"
    path.write_bytes(content)
    whole = [face for face in faces if len(face) == 3]
    if not whole:  # the faces, or the edges of a file of no faces, are lost
        assert "no triangles" in refused(path, kind="scene")
        return
    mesh, skipped = counted(path)
    assert mesh.triangles.tolist() == [[vertices[k] for k in face] for face in whole]
    short = {SHORT: len(faces) - len(whole)} if len(faces) > len(whole) else {}
    assert skipped == short | {"rows of edge": 2}


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("format ascii 1.0", "format binary 1.0", "'format binary 1.0' is no format that raybox reads"),
        ("format ascii 1.0", "format ascii 2.0", "is no format that raybox reads"),
        ("format ascii 1.0\n", "", "'end_header' is no statement of a PLY header"),
        ("property uchar red", "property list real char red", "is of a type whose size raybox does not know"),
        ("property uchar red", "property list uchar", "is of a type whose size raybox does not know"),
        ("comment made by hand", "made by hand", "'made by hand' is no statement of a PLY header"),
        ("element vertex 4", "element vertex -4", "is no statement of a PLY header"),
        ("element vertex 4", "element vertex 1e3", "is no statement of a PLY header"),
        ("element face 4", "element vertex 4", "header: declares the element vertex twice"),
        ("element vertex 4\n", "", "'property float x' is no statement of a PLY header"),
        ("end_header\n", "", "is no statement of a PLY header"),
        ("\n4.0 0.0 0.0 9", "\n4.0 0.0 0.0 9 9", "5 words, the header announces 4"),
        ("\n4.0 0.0 0.0 9", "\n4.0 0.0 0.0", "3 words, the header announces 4"),
        ("\n3 0 1 3", "\n3 0 1 3 7", "1 words more than the header announces"),
        ("\n3 0 1 3", "\n3 0 1", "ends in vertex_indices"),
        ("\n3 0 1 3", "\n-3 0 1 3", "ends in vertex_indices"),
        ("\n3 0 1 3", "\n3 0 1 1_1", "'1_1' is not a whole number"),
        ("\n3 0 1 3", "\n3 0 1 2.0", "'2.0' is not a whole number"),
        ("property float y", "property float y\nproperty float x", "declares a property of vertex twice"),
        ("list uchar int vertex_indices", "list float int vertex_indices", "are not whole numbers"),
        ("list uchar int vertex_indices", "list uchar float vertex_indices", "are not whole numbers"),
        ("vertex_indices", "corners", "face has 0 lists of vertices"),
        ("\n3 0 1 3", "\n3 0 1 99999999999999999999", "is not a whole number of up to 18 digits"),
        ("\n3 0 1 3", "\n3 0 1 x", "'3 0 1 x': 'x' is not a whole number"),
    ],
)
def test_wrong_lines_of_ply(tmp_path, old, new, expected):
    check_replaced(tmp_path / "a.ply", ply("ascii").decode(), old, new, expected)


def test_types_that_no_one_knows_are_words_of_a_text_alone(put):
    text = ply("ascii").decode().replace("uchar red", "string red").replace(" 9\n", " dark\n")
    np.testing.assert_array_equal(rb.load(put("a.ply", text)).triangles, CORNERS[FACES])
    binary = put("a.ply", ply("binary_little_endian").replace(b"uchar red", b"string red"))
    assert "'property string red' is of a type whose size raybox does not know" in refused(binary)
    edges = b"element edge 0\nelement edge 1\nproperty a b\nend_header"
    assert len(counted(put("a.ply", ply("ascii").replace(b"end_header", edges) + b"1\n"))[0]) == 4


@pytest.mark.parametrize(("value", "exact"), [(2**53 + 2, True), (2**53 + 1, False), (-(2**60) - 1, False)])
def test_large_integers_of_binary_ply(put, value, exact):
    head = ply("binary_little_endian").replace(b"float", b"int64").replace(b"property uchar red\n", b"")
    head, mark, body = head.partition(b"end_header\n")
    rows = struct.pack("<12q", value, *range(11)) + body[52:]
    path = put("a.ply", head + mark + rows)
    if exact:
        assert rb.load(path).vertices[0].tolist() == [value, 0, 1]
    else:
        assert f"{value} is not exact in float64" in refused(path)


def ply_of_objects(order, faces, objects, kind="int", name="object"):
    """Return a file whose faces have a property before their corners."""
    return ply_with(order, kind, [[number] for number in objects], "before", [name], faces)


@pytest.mark.filterwarnings("ignore::raybox.errors.SkippedWarning")
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", ["uchar", "short", "int"])
@pytest.mark.parametrize("second", [[1, 2, 3], [0, 1], [0, 1, 2, 3]])
def test_the_property_object_of_faces_is_the_object_of_their_triangles(put, order, kind, second):
    faces, numbers = [[0, 1, 2], second, [0, 1, 3]], [4, 0, 4]
    path = put("a.ply", ply_of_objects(order, faces, numbers, kind))
    objects = [number for face, number in zip(faces, numbers, strict=True) for _ in face[2:]]
    mesh, boxes = read(path).geometry, read(path, boxes=True).geometry
    assert (mesh.objects.tolist(), mesh.ids) == (objects, None)
    assert len(boxes) == len(set(objects))
    assert boxes.upper[-1].tolist() == mesh.triangles[mesh.objects == 4].reshape(-1, 3).max(axis=0).tolist()


def test_other_properties_named_object_are_no_objects(put):
    named = ply_of_objects("ascii", [[0, 1, 2]], [3], "float")
    listed = ply_of_objects("ascii", [[0, 1, 2]], [1], "float").replace(
        b"float object", b"list uchar int object"
    )
    colored = ply("ascii").replace(b"property uchar red", b"property int object")
    for content in (named, listed.replace(b"\n1 3 ", b"\n1 1 3 "), colored):
        assert rb.load(put("a.ply", content)).ids.tolist() == ["a"]
    for order in ORDERS:
        content = ply_of_objects(order, [[0, 1, 2], [1, 2, 3], [0, 1, 3], [0, 2, 3]], [0, -1, 7, -2])
        mesh, skipped = counted(put("a.ply", content))
        assert mesh.objects.tolist() == [0, 8, 7, 8]
        assert skipped == {"faces of an object below 0, which are one object, the last": 2}
    broken = named.replace(b"float object", b"int object").replace(b"\n3 3 ", b"\n2.0 3 ")
    assert "'2.0' is not a whole number" in refused(put("a.ply", broken))
    assert len(rb.load(put("a.ply", ply_of_objects("ascii", [[0, 1, 2]], [2**31 - 1])))) == 1


@pytest.mark.parametrize("order", ORDERS)
def test_without_objects_only_triangles_of_raybox_are_objects(put, order):
    content = ply(order)
    assert rb.load(put("a.ply", content)).objects.tolist() == [0] * 4
    mesh = rb.load(put("a.ply", content.replace(b"made by hand", b"triangles by raybox")))
    assert (mesh.objects.tolist(), mesh.ids) == ([0, 1, 2, 3], None)
    empty = ply(order, []).replace(b"made by hand", b"triangles by raybox")
    assert len(rb.load(put("a.ply", empty))) == 0
    assert len(rb.load(put("a.ply", empty), origin=(0, 0, 0))) == 4


@pytest.mark.parametrize("order", ORDERS[:2])
def test_triangle_strips_of_ply(put, order):
    mesh = rb.load(put("a.ply", strips(order)))
    assert mesh.faces.tolist() == [[0, 1, 2], [2, 1, 3], [2, 3, 0], [0, 2, 3]]
    np.testing.assert_array_equal(mesh.vertices, CORNERS)


def test_strips_turn_every_second_triangle_and_skip_those_that_join():
    one = strip_triangles(np.array([0, 1, 2, 3, 3, 5, 5, 6, 7]))
    assert one.tolist() == [[0, 1, 2], [2, 1, 3], [5, 6, 7]]
    assert strip_triangles(np.array([-1, -1, 4, 5, -1, 7, 8, 9, -1])).tolist() == [[7, 8, 9]]
    assert strip_triangles(np.zeros(0, dtype=np.int64)).shape == (0, 3)


def test_rows_of_strips_are_strips_of_their_own(put):
    content = strips("ascii").decode().replace("element tristrips 1", "element tristrips 2")
    head, _, _ = content.partition("9 0 1 2 3")
    mesh = rb.load(put("a.ply", head + "3 0 1 2\n4 0 1 2 3\n"))
    assert mesh.faces.tolist() == [[0, 1, 2], [0, 1, 2], [2, 1, 3]]
    for corner in (9, -2):
        path = put("a.ply", head + f"3 0 1 2\n3 0 1 {corner}\n")
        assert f"vertex {corner} does not exist" in refused(path)
    binary = ply("binary_little_endian", faces=[[0, 1, 7]])
    assert "vertex 7 does not exist" in refused(put("a.ply", binary))


# PCD


ORIGIN = (0.5, 0.25, 0.0)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("VIEWPOINT 0 0 0 1 0 0 0", "POSE 0 0 0", "line 9: 'POSE 0 0 0' is no line of a PCD header"),
        ("HEIGHT 1", "WIDTH 40", "or one that comes again"),
        ("DATA ascii", "DATA gzip", "its DATA is 'gzip', raybox reads ascii, binary, binary_compressed"),
        ("WIDTH 40", "WIDTH 4_0", "WIDTH is '4_0', not a whole number"),
        ("FIELDS rgb x y z", "FIELDS rgb u y z", "lacks the field x; it has 'rgb u y z'"),
        ("FIELDS rgb x y z\n", "", "header: lacks FIELDS"),
        ("FIELDS rgb x y z", "FIELDS rgb x y", "has 3 FIELDS, but 4 words after TYPE"),
        ("TYPE U F F F", "TYPE U F F Q", "field 'z' has type 'Q 8'"),
        ("TYPE U F F F\n", "", "header: lacks TYPE"),
        ("COUNT 1 1 1 1", "COUNT 1 1 1 a", "COUNT is 'a', not a whole number from 0 on"),
        ("COUNT 1 1 1 1", "COUNT 1 1 1 0", "lacks the field z"),
        ("POINTS 40", "POINTS -3", "POINTS is '-3'"),
        ("POINTS 40", "POINTS 4", "has 40 points, but its header announces 4"),
        ("WIDTH 40\nHEIGHT 1\nVIEWPOINT 0 0 0 1 0 0 0\nPOINTS 40", "", "lacks POINTS, and WIDTH, too"),
        ("POINTS 40", "POINTS", "lacks POINTS"),
        ("DATA ascii\n", "DATA ascii\n7 1 2 3\n", "has 41 points, but its header announces 40"),
        (VERTICES["a.pcd"][1], "7 1 2", "point 0: '7 1 2' is not a point: 3 words, the header announces 4"),
        ("DATA ascii\n7", "DATA ascii\n7 7", "is not a point: 5 words"),
    ],
)
def test_wrong_headers_and_rows_of_pcd(tmp_path, old, new, expected):
    check_replaced(tmp_path / "a.pcd", pcd("ascii").decode(), old, new, expected, origin=ORIGIN)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_pcd_with_capital_fields_and_without_points_or_width(put, encoding):
    content = pcd(encoding).replace(b"rgb x y z", b"RGB X Y Z").replace(b"POINTS 40\n", b"")
    small = content.replace(b"WIDTH 40\nHEIGHT 1", b"WIDTH 8\nHEIGHT 5").replace(b"FIELDS", b"fields")
    for one in (content, small, pcd(encoding).replace(b"WIDTH 40\n", b"")):
        np.testing.assert_array_equal(numbers(put("a.pcd", one)), POINTS)
    holes = pcd("ascii").replace(b"DATA ascii\n", b"DATA ascii\n7 nan nan nan\n").replace(b" 40", b" 41")
    assert np.isnan(numbers(put("a.pcd", holes))[0]).all()


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_fields_of_several_numbers_and_other_types(put, encoding):
    head = "FIELDS _ z normal x y x\nSIZE 1 2 4 8 4 1\nTYPE U I F F F I\nCOUNT 3 1 2 1 1 1\n"
    head += f"WIDTH 2\nHEIGHT 1\nPOINTS 2\nDATA {encoding}\n"
    rows = [(1, 2, 3, -5, 0.5, 1.5, 1e300, 0.25, 9), (4, 5, 6, 700, 2.5, 3.5, -0.1, 0.75, 8)]
    body = pcd_body(encoding, ("3B", "<h", "<2f", "<d", "<f", "b"), rows)
    assert numbers(put("a.pcd", head.encode() + body)) == [[1e300, 0.25, -5], [-0.1, 0.75, 700]]


def test_lzf_of_any_bytes():
    rng = np.random.default_rng(5)
    for size in (0, 1, 31, 32, 33, 300, 9000, 20_000):
        for most in (1, 2, 256):
            data = rng.integers(0, most, size, dtype=np.uint8).tobytes()
            assert decompress_lzf(compress_lzf(data), size) == data
    far = bytes(range(256)) * 40
    assert decompress_lzf(compress_lzf(far), len(far)) == far


@pytest.mark.parametrize(
    ("data", "size", "expected"),
    [
        (b"\x00a\x20\x01", 4, "a reference to 1 bytes before the first one"),
        (b"\x00a\xff\x20", 50, "a reference that is cut off"),
        (b"\x05ab", 6, "a run of bytes that is cut off"),
        (b"\x01ab", 3, "2 of 3 bytes"),
        (b"\x01ab\x01cd", 3, "more than 3 bytes"),
        (b"\x00a\xe0\xff\x00", 100, "more than 100 bytes"),
    ],
)
def test_damaged_lzf_is_refused(put, data, size, expected):
    head = f"FIELDS x y z _\nSIZE 1 1 1 1\nTYPE U U U U\nCOUNT 1 1 1 {size - 3}\nWIDTH 1\nPOINTS 1\n"
    body = b"DATA binary_compressed\n" + struct.pack("<II", len(data), size) + data
    text = refused(put("a.pcd", head.encode() + body), origin=ORIGIN)
    assert f"its compressed data are damaged ({expected})" in text


def test_sizes_of_compressed_data_are_compared_with_the_header(put):
    content = pcd("binary_compressed")
    at = content.index(b"DATA binary_compressed\n") + 23
    for sizes in ((5, 1120), (2**31, 1120), (100, 2**32 - 1), (0, 1120)):
        bent = content[:at] + struct.pack("<II", *sizes) + content[at + 8 :]
        assert refused(put("a.pcd", bent), origin=ORIGIN)
    assert "ends too early" in refused(put("a.pcd", content[: at + 5]), origin=ORIGIN)
    many = content.replace(b"WIDTH 40", b"WIDTH 1000000000000").replace(b"POINTS 40\n", b"")
    assert "while the header announces 28000000000000" in refused(put("a.pcd", many), origin=ORIGIN)


# LAZ


@pytest.mark.parametrize("method", [1, 0, 4])
def test_laz_of_an_old_laszip_is_named(put, method):
    content = bytearray(samples()["points.laz"][0])
    at = content.index(b"laszip encoded") - 2 + 54
    assert content[at : at + 2] == b"\2\0"
    content[at] = method
    text = refused(put("a.laz", bytes(content)), origin=(0, 0, 0))
    assert f"is compressed by method {method} of LASzip" in text
    assert ("(version 1.2 or older)" in text) == (method == 1)
    assert "compress it again by a newer LASzip" in text
