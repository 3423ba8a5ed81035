"""Variants of VOX, PCD, PLY, OBJ and CSV that other programs write, and damaged files of these formats."""

import struct
from pathlib import Path

import numpy as np
import pytest

import raybox as rb
from file_samples import (
    CORNERS,
    ENCODINGS,
    POINTS,
    compress_lzf,
    pcd,
    ply,
    samples,
    strips,
    tables,
    vox,
    vox_chunk,
    vox_text,
    vox_transform,
)
from mutants import Tally, mutants, tally
from raybox.casting.readers import open_ray_file
from raybox.geometry.triangle_strips import strip_triangles
from raybox.io.formats import contents, read
from raybox.io.formats.common import ReadOptions
from raybox.io.formats.pcd import decompress_lzf
from refusals import check_replaced, refused

ORIGIN = (0.5, 0.25, 0.0)


def points(path):
    return contents(path).arrays["points"].tolist()


# MagicaVoxel


def _frames(*counts):
    """Return an old animation: models of that many voxels each, without a scene."""
    models = b""
    for count in counts:
        cells = b"".join(bytes([k, 0, 0, 1]) for k in range(count))
        models += vox_chunk(b"SIZE", struct.pack("<3i", 9, 9, 9))
        models += vox_chunk(b"XYZI", struct.pack("<i", count) + cells)
    return models


def _file(chunks):
    return b"VOX " + struct.pack("<i", 150) + b"MAIN" + struct.pack("<ii", 0, len(chunks)) + chunks


def _packed(count):
    return vox_chunk(b"PACK", struct.pack("<i", count))


def test_an_animation_is_its_first_frame(put):
    boxes = rb.load(put("walk.vox", _file(_packed(3) + _frames(2, 5, 4))))
    assert boxes.lower.tolist() == [[0, 0, 0], [1, 0, 0]]
    text = refused(put("lost.vox", _file(_packed(4) + _frames(2, 5, 4))))
    assert "PACK chunk announces 4 models, the file holds 3" in text
    text = refused(put("unplaced.vox", _file(_frames(2, 5))))
    assert "holds 2 models, but no scene with their places, and no PACK chunk of frames" in text


def test_an_animated_shape_is_its_lowest_frame(put):
    def shape(*frames):
        models = b"".join(
            struct.pack("<ii", k, 1) + vox_text(b"_f") + vox_text(f) for k, f in enumerate(frames)
        )
        return vox_chunk(b"nSHP", struct.pack("<iii", 1, 0, len(frames)) + models)

    scene = vox_transform(0, 1, {b"_t": b"4 4 4"})
    boxes = rb.load(put("new.vox", _file(_frames(2, 5, 4) + scene + shape(b"8", b"0", b"16"))))
    assert boxes.lower.tolist() == [[k, 0, 0] for k in range(5)]
    text = refused(put("wrong.vox", _file(_frames(2, 5) + scene + shape(b"0", b"x"))))
    assert "its nSHP chunk is broken ('x' is not a whole number)" in text


def test_broken_chunks_are_named_in_plain_words(put):
    cells = [(0, 0, 0)]
    for frame in ({b"_t": b"1 2"}, {b"_t": b"1 2 z"}, {b"_t": b"1 2 " + b"9" * 30}):
        scene = vox_transform(0, 1, frame)
        assert "its nTRN chunk is broken" in refused(put("a.vox", vox(cells, models=2, scene=scene)))
    short = _file(vox_chunk(b"SIZE", b"1234"))
    assert "SIZE chunk is broken (it ends too early)" in refused(put("a.vox", short))
    pair = "models are pairs of a SIZE and an XYZI chunk"
    assert pair in refused(put("a.vox", _file(_frames(1).replace(b"SIZE", b"SIZA"))))
    assert pair in refused(put("a.vox", _file(_packed(2) + _frames(1, 2).replace(b"XYZI", b"XYZA", 1))))
    assert "too early" in refused(put("a.vox", _file(_packed(2) + _frames(1) + _frames(1)[:24])))


# PCD


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_pcd_with_capital_fields_and_without_points(put, encoding):
    content = pcd(encoding).replace(b"rgb x y z", b"RGB X Y Z").replace(b"POINTS 40\n", b"")
    np.testing.assert_array_equal(points(put("a.pcd", content)), POINTS)
    small = content.replace(b"WIDTH 40\nHEIGHT 1", b"WIDTH 8\nHEIGHT 5").replace(b"FIELDS", b"fields")
    np.testing.assert_array_equal(points(put("a.pcd", small)), POINTS)


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_fields_of_several_numbers_and_other_types(put, encoding):
    head = "FIELDS _ z normal x y x\nSIZE 1 2 4 8 4 1\nTYPE U I F F F I\nCOUNT 3 1 2 1 1 1\n"
    head += f"WIDTH 2\nHEIGHT 1\nPOINTS 2\nDATA {encoding}\n"
    rows = [(1, 2, 3, -5, 0.5, 1.5, 1e300, 0.25, 9), (4, 5, 6, 700, 2.5, 3.5, -0.1, 0.75, 8)]
    text = "".join(" ".join(map(str, row)) + "\n" for row in rows).encode()
    binary = b"".join(struct.pack("<3Bh2fdfb", *row) for row in rows)
    columns = [(1, 2, 3, 4, 5, 6), (-5, 700), (0.5, 1.5, 2.5, 3.5), (1e300, -0.1), (0.25, 0.75), (9, 8)]
    kinds = ("6B", "<2h", "<4f", "<2d", "<2f", "2b")
    fields = b"".join(struct.pack(kind, *column) for kind, column in zip(kinds, columns, strict=True))
    packed = compress_lzf(fields)
    body = {"ascii": text, "binary": binary}.get(
        encoding, struct.pack("<II", len(packed), len(fields)) + packed
    )
    expected = [[1e300, 0.25, -5], [-0.1, 0.75, 700]]
    assert points(put("a.pcd", head.encode() + body)) == expected


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
        (b"\x01ab\x00c", 2, "more than 2 bytes"),
        (b"\x00a\xe0\xff\x00", 100, "more than 100 bytes"),
    ],
)
def test_damaged_lzf_is_refused(put, data, size, expected):
    with pytest.raises(ValueError, match=expected):
        decompress_lzf(data, size)
    head = f"FIELDS x y z _\nSIZE 1 1 1 1\nTYPE U U U U\nCOUNT 0 0 0 {size}\nWIDTH 1\nPOINTS 1\n"
    head = head.replace(f"0 0 0 {size}", f"1 1 1 {size - 3}") + "DATA binary_compressed\n"
    if size > 2:
        body = struct.pack("<II", len(data), size) + data
        assert f"its compressed data are damaged ({expected})" in refused(
            put("a.pcd", head.encode() + body), origin=ORIGIN
        )


def test_sizes_of_compressed_data_are_compared_with_the_header(put):
    content = pcd("binary_compressed")
    at = content.index(b"DATA binary_compressed\n") + 23
    for sizes in ((5, 1120), (2**31, 1120), (100, 2**32 - 1), (0, 1120)):
        bent = content[:at] + struct.pack("<II", *sizes) + content[at + 8 :]
        assert refused(put("a.pcd", bent), origin=ORIGIN)
    assert "ends too early" in refused(put("a.pcd", content[: at + 5]), origin=ORIGIN)
    many = content.replace(b"WIDTH 40", b"WIDTH 1000000000000").replace(b"POINTS 40\n", b"")
    assert "while the header announces 28000000000000" in refused(put("a.pcd", many), origin=ORIGIN)


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
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
        ("DATA ascii", "DATA gzip", "its DATA is 'gzip', raybox reads ascii, binary, binary_compressed"),
        ("POINTS 40", "POINTS", "lacks POINTS"),
    ],
)
def test_wrong_headers_of_pcd_in_plain_words(tmp_path, old, new, expected):
    check_replaced(tmp_path / "a.pcd", pcd("ascii").decode(), old, new, expected, origin=ORIGIN)


def test_pcd_without_width_is_read(put):
    assert len(points(put("a.pcd", pcd("ascii").replace(b"WIDTH 40\n", b"")))) == 40


def test_rows_of_pcd_are_compared_with_the_header(put):
    text = pcd("ascii").decode()
    assert "has 41 points, but its header announces 40" in refused(
        put("a.pcd", text + "7 1 2 3\n"), origin=ORIGIN
    )
    assert "is not a point" in refused(put("a.pcd", text.rstrip() + " 8\n"), origin=ORIGIN)


# PLY


@pytest.mark.parametrize("order", ["ascii", "binary_little_endian"])
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
    assert rb.load(put("a.ply", head + "3 0 1 2\n4 0 1 2 3\n")).faces.tolist() == [
        [0, 1, 2],
        [0, 1, 2],
        [2, 1, 3],
    ]
    assert "vertex 9 does not exist" in refused(put("a.ply", head + "3 0 1 2\n3 0 1 9\n"))
    assert "vertex -2 does not exist" in refused(put("a.ply", head + "3 0 1 2\n3 0 1 -2\n"))


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ("property float y", "property float y\nproperty float x", "declares a property of vertex twice"),
        ("list uchar int vertex_indices", "list float int vertex_indices", "are not whole numbers"),
        ("list uchar int vertex_indices", "list uchar float vertex_indices", "are not whole numbers"),
        ("vertex_indices", "corners", "face has 0 lists of vertices"),
        ("\n3 0 1 3", "\n3 0 1 99999999999999999999", "is not a whole number of up to 18 digits"),
        ("\n3 0 1 3", "\n3 0 1 x", "'3 0 1 x': 'x' is not a whole number"),
    ],
)
def test_wrong_headers_and_rows_of_ply_in_plain_words(tmp_path, old, new, expected):
    check_replaced(tmp_path / "a.ply", ply("ascii").decode(), old, new, expected)


# OBJ


def test_comments_at_the_end_of_lines_of_obj(put):
    text = "# C:\\models\\\nv 0 0 0 # first\nv 1 0 0#second\nv 0 1 0\no part # 1\nf 1 2 3 # the only face\n"
    path = put("a.obj", text + "f 1/1 3/2 2/3# turned\nf 1 2 \\\n3 # \\\n")
    assert rb.load(path).faces.tolist() == [[0, 1, 2], [0, 2, 1], [0, 1, 2]]
    assert read(path, boxes=True).ids == ["part # 1"]


def test_wrong_statements_of_obj_in_plain_words(put):
    assert "line 1: 'v 0 x 0' is not a vertex: 'x' is not a number" in refused(put("a.obj", "v 0 x 0\n"))
    assert "'f 1 a/1 2' is not a face of numbers of vertices" in refused(put("a.obj", "f 1 a/1 2\n"))
    assert "has a number that is too large" in refused(put("a.obj", f"f 1 {10**30} 2\n"))


# CSV

ROWS = "0,0,1,1,a\n2,2,3,3,b\n"
CSV_HEADER = "min_x,min_y,max_x,max_y,name\n"


@pytest.mark.parametrize(
    "text",
    [
        "# made by hand\n" + CSV_HEADER + ROWS,
        '\ufeff# made, by "hand\r\n#\r\n' + (CSV_HEADER + ROWS).replace("\n", "\r\n"),
        "# " + CSV_HEADER + ROWS,
        "# made by hand\n#" + CSV_HEADER + ROWS,
        (CSV_HEADER + ROWS).replace(",", ";"),
        "# a;b\n" + (CSV_HEADER + ROWS).replace(",", ";"),
        "Min_X,MIN_Y,max_x,Max_Y,name\n" + ROWS,
        ("# a\n" + "MIN_X,MIN_Y,MAX_X,MAX_Y,name\n" + ROWS).replace(",", " ; "),
    ],
)
def test_csv_with_comments_semicolons_and_capitals(put, text):
    loaded = read(put("a.csv", text))
    assert loaded.geometry.lower.tolist() == [[0, 0], [2, 2]]
    assert loaded.geometry.upper.tolist() == [[1, 1], [3, 3]]
    assert [name.strip() for name in loaded.labels["name"]] == ["a", "b"]


def test_csv_headers_with_capitals_or_a_hash_are_columns(put):
    head = "#id,X,min_x,min_y,max_x,max_y,T_MIN,a;b\n"
    assert list(read(put("a.csv", head + "7,1,0,0,1,1,5,u\n")).labels) == ["#id", "X", "T_MIN", "a;b"]
    assert read(put("a.csv", "ID,MIN_X,min_y,max_x,max_y\n7,0,0,1,1\n")).ids == ["7"]
    assert "more than one column named 'min_x'" in refused(put("a.csv", "Min_X,MIN_X,min_y,max_x,max_y\n"))
    rays = "origin_x,origin_y,direction_x,direction_y,T_MAX\n0,0,1,0,5\n"
    assert rb.load(put("a.csv", rays)).t_max.tolist() == [5]


def test_lines_are_counted_from_the_first_comment(put):
    text = "# one\n# two\nx;y\n0;0\n1,5;0\n"
    assert "line 5, column x: '1,5' has a decimal comma" in refused(put("a.csv", text), origin=(0.0, 0.0))
    text = "# one\n# two\nx,y\n0,0\nnan,0\n"
    assert "line 5, column x: nan is not a finite number" in refused(put("a.csv", text), origin=(0.0, 0.0))
    for broken, place in (('"x,y\n0,0\n', "header"), ('# one\nname,x,y\n"a,0,0\n', "line 3")):
        text = refused(put("a.csv", broken), origin=(0.0, 0.0))
        assert f"{place}: is not a whole table: a quoted field does not end" in text


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("start", ["", "# one\n# two\n", "\ufeff# one\n", "# "])
def test_casting_reads_csv_as_load_does(put, start, end):
    for delimiter in ",;":
        text = start + "X,Y\n" + "".join(f"{k},{k / 2}\n" for k in range(50))
        path = put("a.csv", text.replace(",", delimiter).replace("\n", end))
        wanted = points(path)
        assert len(wanted) == 50
        found = list(open_ray_file(path, ReadOptions("rays", (0.0, 0.0))).blocks(0, 0, ()))
        assert [list(map(list, zip(*(b.columns[a] for a in "xy"), strict=True))) for b in found] == [wanted]


# Damaged files

DAMAGED = [name for name in samples() if not name.endswith((".ifc", ".json", ".las", ".laz"))] + [*tables()]


@pytest.mark.long
@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_files_are_read_or_refused_in_plain_words(tmp_path, name):
    content, options = (samples() | tables())[name]
    found, faults = tally(tmp_path / name, mutants(content, 120, seed=29), options)
    assert faults == []
    assert found.read + found.refused == 120
    assert found.refused > 30


def test_the_tally_counts_faults(monkeypatch, tmp_path):
    errors = [rb.FileFormatError("incomplete header ('POINTS'); check it"), KeyError("POINTS")]

    def fault(_path, **_options):
        raise errors.pop()

    def spin(_path, **_options):
        while True:
            pass

    monkeypatch.setattr("mutants.read", fault)
    found, faults = tally(tmp_path / "a.vox", iter([b"1", b"2"]), {})
    assert found == Tally(foreign=1, worded=1)
    assert len(faults) == found.faults == 2
    monkeypatch.setattr("mutants.read", spin)
    monkeypatch.setattr("mutants.SECONDS", 0.05)
    assert tally(tmp_path / "a.vox", iter([b"1"]), {})[0] == Tally(slow=1)
    monkeypatch.setattr("mutants.read", lambda path, **options: np.zeros(20_000_000))
    assert tally(tmp_path / "a.vox", iter([b"1"]), {})[0].faults == 1


def test_mutants_are_the_same_each_time():
    content = Path(__file__).read_bytes()
    assert list(mutants(content, 20, seed=1)) == list(mutants(content, 20, seed=1))
    assert len(set(mutants(content, 200, seed=1))) > 190
