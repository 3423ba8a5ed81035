"""OBJ, STL, PLY and PCD: harmless bytes are read, harmless lines counted, others refused."""

import struct
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import raybox as rb
from file_samples import CASES, CORNERS, FACES, compress_lzf, pcd, ply, stl
from raybox.errors import SkippedWarning
from raybox.io.formats import contents, read
from raybox.io.formats.text_lines import floats
from refusals import check_replaced, refused

SHORT = "faces of fewer than three corners"
TRIANGLE = "v 0 0 0\nv 1 0 0\nv 0 1 0\n"


def counted(path, **options):
    """Return a geometry and its counts, of which one warning tells."""
    with pytest.warns(SkippedWarning) as caught:
        geometry = rb.load(path, **options)
    assert len(caught) == 1
    assert all(
        f"{reason} ({count:,})" in str(caught[0].message) for reason, count in geometry.skipped.items()
    )
    assert not set(geometry.skipped.values()) & {0}
    return geometry, dict(geometry.skipped)


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


@pytest.mark.parametrize("order", ["binary_little_endian", "binary_big_endian"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("tail", [b"", b"\r\n"])
def test_binary_ply_with_such_headers(put, order, end, mark, tail):
    head, body = ply(order).split(b"end_header\n")
    content = mark + (head + b"end_header\n").replace(b"\n", end) + body + tail
    np.testing.assert_array_equal(rb.load(put("a.ply", content)).triangles, CORNERS[FACES])


@pytest.mark.parametrize("encoding", ["binary", "binary_compressed"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
@pytest.mark.parametrize("tail", [b"", b"\n", b"\0\0\0 \n"])
def test_binary_pcd_with_such_headers(put, encoding, end, tail):
    head, mark, body = pcd(encoding).partition(encoding.encode() + b"\n")
    content = (head + mark).replace(b"\n", end) + body + tail
    assert numbers(put("a.pcd", content)) == numbers(put("b.pcd", pcd(encoding)))


@pytest.mark.parametrize("tail", [b"\n", b"\r\n", b"  \t\n\n"])
def test_blanks_after_a_binary_stl(put, tail):
    assert len(rb.load(put("a.stl", stl(text=False) + tail))) == len(FACES)
    assert "3 bytes follow the end" in refused(put("a.stl", stl(text=False) + b"abc"))
    assert "284 bytes announced, 283 there" in refused(put("a.stl", stl(text=False)[:-1] + b""))


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


@pytest.mark.parametrize("word", ["9007199254740993", "-9007199254740993", "123456789012345678901"])
def test_integers_that_float64_does_not_hold(put, word):
    problem = f"float64 does not hold the integer '{word}' exactly"
    assert problem in refused(put("a.obj", f"v {word} 0 0\n"))
    assert problem in refused(put("a.stl", stl(True).replace(b"vertex 0.0", f"vertex {word}".encode())))
    assert problem in refused(put("a.ply", ply().replace(b"4.0 0.0 0.0 9", f"4.0 {word} 0 9".encode())))
    assert problem in refused(_with_first(put, word), kind="rays")
    assert floats([word + ".0", word + "e0", "9007199254740994", str(2**70)])


def _with_first(put, word):
    head, _, rows = pcd("ascii").partition(b"DATA ascii\n")
    _, _, rest = rows.partition(b"\n")
    return put("a.pcd", head + b"DATA ascii\n" + f"7 {word} 0 0\n".encode() + rest)


@pytest.mark.parametrize("encoding", ["binary", "binary_compressed"])
def test_large_integers_of_binary_pcd(put, encoding):
    head = f"FIELDS x y z\nSIZE 8 8 8\nTYPE I I U\nWIDTH 1\nDATA {encoding}\n".encode()
    for x, exact in ((2**53 + 2, True), (-(2**53) - 1, False), (2**62 + 1, False)):
        body = struct.pack("<qqQ", x, 1, 2**63)  # of one point, the same in both encodings
        packed = compress_lzf(body)
        if encoding == "binary_compressed":
            body = struct.pack("<II", len(packed), len(body)) + packed
        path = put("a.pcd", head + body)
        if exact:
            assert numbers(path) == [[x, 1, 2**63]]
        else:
            text = refused(path, origin=(0, 0, 0))
            assert "field x has an integer that float64 does not hold exactly" in text


@pytest.mark.parametrize("word", ["1_0", "x", "0x10", "1e", "--1", "1,5", "١"])
def test_words_that_are_no_numbers(put, word):
    assert "is not a number" in refused(put("a.obj", f"v {word} 0 0\n"))
    text = stl(True).decode().replace("vertex 0.0", f"vertex {word}", 1)
    assert "is not a number" in refused(put("a.stl", text))
    assert "is not a number" in refused(
        put("a.ply", ply().decode().replace("4.0 0.0 0.0 9", f"4 {word} 0 9"))
    )
    assert "is not a number" in refused(_with_first(put, word), kind="rays")
    if word not in ("1e", "0x10"):
        return
    assert "is not a face of numbers" in refused(put("a.obj", TRIANGLE + f"f 1 2 {word}\n"))


# OBJ


def test_what_carries_no_triangles_is_passed_or_counted(put):
    passed = "vn 0 0 1\nvt 0 0\nvp 0.5\ns off\nmtllib a.mtl\nmg 1 2\nlod 3\n"
    passed += "parm u 0 1\ntrim 0 1 1\nend\n"
    path = put("a.obj", TRIANGLE + passed + "f 1/1/1 2//1 3/2\nfo 3 2 1\n")
    assert len(rb.load(path)) == 2
    assert rb.load(path).skipped == {}
    lost = "p 1 2\nl 1 2\nl 1 2 3\ncurv 0 1 1 2\nsurf 0 1 0 1 1 2\nf 1 2\nf 1\nf -1 -2\nf 1 2 3\n"
    mesh, skipped = counted(put("a.obj", TRIANGLE + lost))
    assert len(mesh) == 1
    assert skipped == {"points": 1, "lines": 2, "curves": 1, "free-form surfaces": 1, SHORT: 3}
    problem = f"holds no triangles, but lines (1), {SHORT} (1); check"
    assert problem in refused(put("a.obj", TRIANGLE + "l 1 2\nf 1 2\n"))


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
    n = 60_000
    angles = np.arange(n) * (2 * np.pi / n)
    vertices = "".join(f"v {np.cos(a):.17g} {np.sin(a):.17g} 0\n" for a in angles)
    face = "f" + "".join(f" \\\n{k}" for k in range(1, n + 1))
    lines = sum(1 for _ in _obj_statements(put("a.obj", vertices + face + "\n")))
    assert lines == n + 1


def _obj_statements(path):
    from raybox.io.formats import obj

    return obj._statements(path)


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


HARMLESS = {
    "vw 0 0 1": 1,
    "vc 1 1 1\nvc 1 0 0": 2,
    "t 0 1": 1,
    "Ka 1 1 1": 1,
    "newmtl stone": 1,
    "vertex 0 0 0": 1,
    "#MRGB ffff00": 0,
    "usemap a": 0,
}


@pytest.mark.parametrize(("lines", "count"), HARMLESS.items())
@pytest.mark.parametrize("place", [0, 1, 4])
def test_a_line_of_obj_that_carries_no_triangle_is_counted(put, lines, count, place):
    content = (TRIANGLE + "f 1 2 3\n").splitlines()
    content[place:place] = lines.splitlines()
    path, word = put("a.obj", "\n".join(content) + "\n"), lines.split()[0]
    if count:
        mesh, skipped = counted(path)
        assert skipped == {f"lines of {word!r}, which raybox does not know": count}
    else:
        mesh = rb.load(path)
    assert mesh.triangles.tolist() == [[[0, 0, 0], [1, 0, 0], [0, 1, 0]]]


def test_many_unknown_words_are_counted_together(put):
    lines = "".join(f"word{chr(97 + k % 26)}{k} 1\n" for k in range(500))
    with pytest.warns(SkippedWarning, match="16 other reasons"):
        mesh = rb.load(put("a.obj", TRIANGLE + "f 1 2 3\n" + lines))
    assert (len(mesh), len(mesh.skipped), sum(mesh.skipped.values())) == (1, 21, 500)


def test_further_words_of_vertices_are_counted(put):
    text = "v 0 0 0 1 2\nv 1 0 0 .1 .2 .3 1 9\nv 0 1 0 red\nf 1 2 3\n"
    mesh, skipped = counted(put("a.obj", text))
    assert mesh.vertices.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert skipped == {"words after x y z of vertices": 7}


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
    mesh, skipped = counted(put("a.ply", ply(faces=[])))
    assert (len(mesh), skipped) == (0, {"vertices without a face (points need an origin)": 4})


# STL


def test_lines_that_are_not_of_stl_are_counted(put):
    text = "# a scanner\nsome words\n" + STL.replace("  outer", "  color 1 0 0\n  outer") + "more\n"
    mesh, skipped = counted(put("a.stl", text))
    np.testing.assert_array_equal(mesh.triangles, CORNERS[FACES])
    counts = {"#": 1, "some": 1, "color": 4, "more": 1}
    assert skipped == {f"lines of '{w}', which raybox does not know": n for w, n in counts.items()}


@pytest.mark.parametrize("tail", [b"\0", b"\0\0", b"\0" * 49, b"\n\0\n"])
def test_zeros_after_a_binary_stl(put, tail):
    assert len(rb.load(put("a.stl", stl(text=False) + tail))) == len(FACES)
    lost = stl(text=False) + bytes(50)
    assert "50 bytes follow the end" in refused(put("a.stl", lost))


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


PROPERTIES = {
    "vertex": [("double", "x"), ("float", "y"), ("short", "z"), ("uchar", "red"), ("list uchar int", "near")],
    "face": [("list uchar uint", "vertex_indices"), ("list short float", "uv"), ("int", "flags")],
    "edge": [("int", "vertex1"), ("int", "vertex2"), ("list uchar double", "more")],
}
FORMATS = {"char": "b", "uchar": "B", "short": "h", "ushort": "H", "int": "i", "uint": "I"}
FORMATS |= {"float": "f", "double": "d"}


def random_ply(rng, order):
    """Return a file with elements and properties in any order, its vertices, and its faces."""
    vertices, faces = rng.integers(-9, 9, (6, 3)).tolist(), []
    for _ in range(int(rng.integers(1, 6))):
        faces.append(rng.permutation(6)[: rng.integers(0, 4)].tolist())
    head, body = f"ply\nformat {order} 1.0\nobj_info any words\n", []
    for element in rng.permutation(list(PROPERTIES)).tolist():
        count = {"vertex": 6, "face": len(faces), "edge": 2}[element]
        head += f"comment here\nelement {element} {count}\n"
        properties = [PROPERTIES[element][k] for k in rng.permutation(len(PROPERTIES[element]))]
        head += "".join(f"property {kind} {name}\n" for kind, name in properties)
        for row in range(count):
            for kind, name in properties:
                *length, item = kind.removeprefix("list ").split()
                values = rng.integers(0, 9, rng.integers(0, 3) if length else 1).tolist()
                if element == "vertex" and name in "xyz":
                    values = [vertices[row]["xyz".index(name)]]
                if name == "vertex_indices":
                    values = faces[row]
                body += [(length[0], len(values))] if length else []
                body += [(item, value) for value in values]
            body.append(("row", 0))
    head += "end_header\n"
    if order == "ascii":
        rows = " ".join("\n" if kind == "row" else str(value) for kind, value in body)
        return (head + rows).encode(), vertices, faces
    end = "<" if "little" in order else ">"
    packed = [struct.pack(end + FORMATS[kind], value) for kind, value in body if kind != "row"]
    return head.encode() + b"".join(packed), vertices, faces


@given(st.integers(0, 2**32), st.sampled_from(["ascii", "binary_little_endian", "binary_big_endian"]))
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
        ("property uchar red", "property float x", "header: declares a property of vertex twice"),
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
    ],
)
def test_wrong_lines_of_ply(tmp_path, old, new, expected):
    check_replaced(tmp_path / "a.ply", ply("ascii").decode(), old, new, expected)


SIZES = {"int64": "q", "uint64": "Q", "float16": "e", "uint8_t": "B"}


@pytest.mark.parametrize("kind", SIZES)
@pytest.mark.parametrize("listed", [False, True])
@pytest.mark.parametrize("order", ["ascii", "binary_little_endian", "binary_big_endian"])
def test_properties_of_any_size_are_skipped(put, kind, listed, order):
    """Also two of one name: no one reads them."""
    word = f"list uchar {kind}" if listed else kind
    head, _, body = ply(order).partition(b"end_header\n")
    head = head.replace(b"element face", f"property {word} a\nproperty {word} a\nelement face".encode())
    if order == "ascii":
        rows = body.decode().splitlines()
        rows[:4] = [row + (" 2 1 2 0" if listed else " 3 4") for row in rows[:4]]
        body = "\n".join(rows).encode()
    else:
        end = "<" if "little" in order else ">"
        more = struct.pack(f"{end}B2{SIZES[kind]}B", 2, 1, 2, 0)
        more = more if listed else struct.pack(f"{end}2{SIZES[kind]}", 3, 4)
        rows = [body[13 * k : 13 * k + 13] + more for k in range(4)]
        body = b"".join(rows) + body[52:]
    mesh = rb.load(put("a.ply", head + b"end_header\n" + body))
    np.testing.assert_array_equal(mesh.triangles, CORNERS[FACES])


def test_types_that_no_one_knows_are_words_of_a_text_alone(put):
    text = ply("ascii").decode().replace("uchar red", "string red").replace(" 9\n", " dark\n")
    np.testing.assert_array_equal(rb.load(put("a.ply", text)).triangles, CORNERS[FACES])
    binary = ply("binary_little_endian").replace(b"uchar red", b"string red")
    assert "'property string red' is of a type whose size raybox does not know" in refused(
        put("a.ply", binary)
    )
    twice = (
        ply("ascii")
        .decode()
        .replace("end_header", "element edge 0\nelement edge 1\nproperty a b\nend_header")
    )
    assert len(counted(put("a.ply", twice + "1\n"))[0]) == 4


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


ORDERS = ["ascii", "binary_little_endian", "binary_big_endian"]


def ply_of_objects(order, faces, objects, kind="int", own=""):
    """Return a file whose faces have the property `object` before their corners."""
    head = f"ply\nformat {order} 1.0\n{own}element vertex 4\n"
    head += "".join(f"property float {axis}\n" for axis in "xyz") + f"element face {len(faces)}\n"
    head += f"property {kind} object\nproperty list uchar int vertex_indices\nend_header\n"
    if order == "ascii":
        rows = [" ".join(map(str, row)) for row in CORNERS.tolist()]
        rows += [" ".join(map(str, [o, len(f), *f])) for o, f in zip(objects, faces, strict=True)]
        return (head + "\n".join(rows) + "\n").encode()
    end = "<" if "little" in order else ">"
    body = struct.pack(f"{end}12f", *CORNERS.ravel())
    for number, face in zip(objects, faces, strict=True):
        body += struct.pack(f"{end}{FORMATS[kind]}B{len(face)}i", number, len(face), *face)
    return head.encode() + body


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("kind", ["uchar", "short", "int"])
@pytest.mark.parametrize("second", [[1, 2, 3], [0, 1], [0, 1, 2, 3]])
def test_the_property_object_of_faces_is_the_object_of_their_triangles(put, order, kind, second):
    faces = [[0, 1, 2], second, [0, 1, 3]]
    path, objects = put("a.ply", ply_of_objects(order, faces, [4, 0, 4], kind)), []
    for face, number in zip(faces, [4, 0, 4], strict=True):
        objects += [number] * (len(face) - 2)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkippedWarning)
        mesh = read(path).geometry
        boxes = read(path, boxes=True).geometry
    assert (mesh.objects.tolist(), mesh.ids) == (objects, None)
    assert len(boxes) == len(set(objects))
    assert boxes.upper[-1].tolist() == mesh.triangles[mesh.objects == 4].reshape(-1, 3).max(axis=0).tolist()


def test_other_properties_named_object_are_no_objects(put):
    named = ply_of_objects("ascii", [[0, 1, 2]], [3], "float")
    assert rb.load(put("a.ply", named)).ids.tolist() == ["a"]
    listed = named.replace(b"property float object", b"property list uchar int object")
    assert rb.load(put("a.ply", listed.replace(b"\n3 3 ", b"\n1 3 3 "))).ids.tolist() == ["a"]
    colored = ply("ascii").replace(b"property uchar red", b"property int object")
    assert rb.load(put("a.ply", colored)).ids.tolist() == ["a"]
    for order in ORDERS:
        content = ply_of_objects(order, [[0, 1, 2], [1, 2, 3], [0, 1, 3], [0, 2, 3]], [0, -1, 7, -2])
        mesh, skipped = counted(put("a.ply", content))
        assert mesh.objects.tolist() == [0, 8, 7, 8]
        assert skipped == {"faces of an object below 0, which are one object, the last": 2}
    assert "'2.0' is not a whole number" in refused(
        put("a.ply", named.replace(b"float object", b"int object").replace(b"\n3 3 ", b"\n2.0 3 "))
    )
    assert len(rb.load(put("a.ply", ply_of_objects("ascii", [[0, 1, 2]], [2**31 - 1])))) == 1


def test_objects_of_faces_next_to_strips_are_counted(put):
    head, _, body = ply_of_objects("ascii", [[0, 1, 2]], [3]).partition(b"end_header\n")
    strip = b"element tristrips 1\nproperty list int int vertex_indices\nend_header\n"
    mesh, skipped = counted(put("a.ply", head + strip + body + b"4 0 1 2 3\n"))
    assert mesh.objects.tolist() == [0, 0, 0]
    assert skipped == {"objects of faces, next to triangle strips": 1}


@pytest.mark.parametrize("order", ORDERS)
def test_without_objects_only_triangles_of_raybox_are_objects(put, order):
    content = ply(order)
    assert rb.load(put("a.ply", content)).objects.tolist() == [0] * 4
    mesh = rb.load(put("a.ply", content.replace(b"made by hand", b"triangles by raybox")))
    assert (mesh.objects.tolist(), mesh.ids) == ([0, 1, 2, 3], None)
    empty = ply(order, []).replace(b"made by hand", b"triangles by raybox")
    assert len(rb.load(put("a.ply", empty))) == 0
    assert len(rb.load(put("a.ply", empty), origin=(0, 0, 0))) == 4


def test_points_of_a_ply_with_other_elements(put):
    text = (
        ply(faces=[]).decode().replace("end_header\n", "element range_grid 1\nproperty int a\nend_header\n")
    )
    rays, skipped = None, None
    with pytest.warns(SkippedWarning, match=r"rows of range_grid \(1\)"):
        rays = rb.load(put("a.ply", text + "1\n"), origin=(0, 0, 0))
    assert (len(rays), skipped) == (4, None)


# PCD


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("VIEWPOINT 0 0 0 1 0 0 0", "POSE 0 0 0", "line 9: 'POSE 0 0 0' is no line of a PCD header"),
        ("HEIGHT 1", "WIDTH 40", "or one that comes again"),
        ("DATA ascii", "DATA binary_zstd", "its DATA is 'binary_zstd', raybox reads ascii, binary"),
        ("WIDTH 40", "WIDTH 4_0", "WIDTH is '4_0', not a whole number"),
    ],
)
def test_wrong_lines_of_pcd(tmp_path, old, new, expected):
    check_replaced(tmp_path / "a.pcd", pcd("ascii").decode(), old, new, expected, origin=(0, 0, 0))


def test_rows_of_pcd_with_other_numbers_of_words(put):
    head, _, rows = pcd("ascii").decode().partition("DATA ascii\n")
    for words, problem in (("7 1 2", "3 words, the header announces 4"), ("7 1 2 3 4", "5 words")):
        _, _, rest = rows.partition("\n")
        text = refused(put("a.pcd", f"{head}DATA ascii\n{words}\n{rest}"), origin=(0, 0, 0))
        assert f"point 0: '{words}' is not a point: {problem}" in text
    holes = put("a.pcd", f"{head}DATA ascii\n7 nan nan nan\n{rows.partition(chr(10))[2]}")
    assert np.isnan(contents(holes).arrays["points"][0]).all()


# LAZ


@pytest.mark.parametrize("method", [1, 0, 4])
def test_laz_of_an_old_laszip_is_named(put, method):
    pytest.importorskip("laspy")
    from file_samples import las

    content = bytearray(las("laz"))
    at = content.index(b"laszip encoded") - 2 + 54
    assert content[at : at + 2] == b"\2\0"
    content[at] = method
    text = refused(put("a.laz", bytes(content)), origin=(0, 0, 0))
    assert f"is compressed by method {method} of LASzip" in text
    assert ("(version 1.2 or older)" in text) == (method == 1)
    assert "compress it again by a newer LASzip" in text
