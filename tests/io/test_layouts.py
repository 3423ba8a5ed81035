"""Tables as other programs leave them: tabs, semicolons, white space, bare numbers, and float32 of lidars."""

import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import raybox as rb
from raybox.io.formats import csv_table
from raybox.io.formats.typed_labels import label
from refusals import refused
from streaming import get

ORIGIN = (0.0, 0.0, 0.0)
POINTS = [[1.5, 2, 3], [4, -5, 6]]
BARE = "1.5{0}2{0}3\n4{0}-5{0}6\n"
ENDINGS = ["csv", "tsv", "txt", "xyz"]
HEADS = ["", "x{0}y{0}z\n", "# by hand\nX{0}Y{0}Z\n", "// a, b; c\n\n", "#x{0}y{0}z\n"]


def directions(path, **options):
    """Return the points of a file, as directions from the origin."""
    return rb.load(path, origin=ORIGIN, **options).directions.tolist()


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("mark", [",", ";", "\t", " ", " \t  "])
@pytest.mark.parametrize("head", HEADS)
def test_points_in_every_separator(put, ending, mark, head):
    text = (head + BARE).format(mark)
    for end in ("\n", "\r\n", "\r"):
        assert directions(put(f"a.{ending}", text.replace("\n", end))) == POINTS
    if len(mark) == 1:
        assert directions(put("b.csv", f"sep={mark}\n{text}")) == POINTS
        assert directions(put("b.csv", f'\ufeff"SEP={mark}"\r\n{text}')) == POINTS


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("mark", [",", ";", "\t", " "])
def test_a_layout_names_the_columns_of_text(put, ending, mark):
    text = "# by hand\n7,1.5,2,3,tree\n8,4,-5,6,house\n".replace(",", mark)
    path = put(f"a.{ending}", text)
    assert directions(path, layout="n, x ,y,z,kind") == POINTS
    boxes = rb.load(path, layout="max_x,min_x,min_y,max_y,kind")
    assert boxes.bounds.tolist() == [[1.5, -5], [8, 6]]
    assert boxes.ids.tolist() == ["tree", "house"]
    text = refused(path, origin=ORIGIN, layout="x,y,z")
    assert "line 2: 5 fields, while there are names for 3" in text
    named = put(f"b.{ending}", "x,y,z,kind\n".replace(",", mark) + text)
    assert "names its columns; leave out layout" in refused(named, origin=ORIGIN, layout="x,y,z,a")


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("row", ["1,2", "1,2,3,4", "1,2,3,4,5,6", "5"])
def test_bare_numbers_other_than_three_need_a_layout(put, ending, row):
    path = put(f"a.{ending}", f"{row}\n{row}\n")
    problem = (
        f"does not name the {len(row.split(','))} columns of its rows; name them in the first line, or by"
    )
    assert problem in refused(path)
    assert "such as min_x,min_y,min_z,max_x,max_y,max_z" in refused(path, kind="scene")
    assert "such as x,y,z,i" in refused(path, origin=ORIGIN)


def test_comments_of_cloudcompare_and_savetxt_name_columns(put):
    rows = "1.5 2 3 7 8\n4 -5 6 7 8\n"
    for head in ("//X Y Z Intensity Class\n", "# x y z intensity class\n", "#\tx\ty\tz\tr\tg\n# more\n"):
        assert directions(put("a.txt", head + rows.replace(" ", "\t" if "\t" in head else " "))) == POINTS
    assert directions(put("a.txt", "# x y z\n# y x z\nz y x\n3 2 1.5\n6 -5 4\n")) == POINTS
    for sentence in ("# scale x y z by ten\n", "# the x y z of a tree, in metres\n"):
        assert directions(put("a.xyz", sentence + BARE.format(" "))) == POINTS
    assert directions(put("a.txt", "# x y z\n")) == []


COMMAS = ["1,5;2;3\n", "1;2;3\n4;5,5;6\n", "1,5 2 3\n", "x\ty\tz\n1\t2,25\t3\n", "x;y;z\n1;2;-1.000,5\n"]


@pytest.mark.parametrize("text", COMMAS)
@pytest.mark.parametrize("ending", ENDINGS)
def test_decimal_commas_are_refused_by_name(put, text, ending):
    assert "has a decimal comma; write decimal points" in refused(put(f"a.{ending}", text), origin=ORIGIN)
    text = "sep=;\n" + text.replace("\t", ";").replace(" ", ";")
    assert "has a decimal comma; write decimal points" in refused(put(f"a.{ending}", text), origin=ORIGIN)


WORDS = st.sampled_from(["1", "-2.5", "1e3", "inf", '"', "a\u00e9", "x\x1fy", "x\u00a0y", "#", "1,5", "'"])


@given(
    st.lists(
        st.tuples(st.integers(-9, 9), st.floats(-9, 9), WORDS, st.sampled_from(["", " ", "\t "])), max_size=8
    ),
    st.sampled_from(["\n", "\r\n", "\n\n", " \n"]),
    st.sampled_from([" ", "\t", "  \t"]),
    st.sampled_from([5, 1 << 21]),
)
@settings(max_examples=200, deadline=None)
def test_rows_of_white_space_are_those_of_split(rows, end, mark, block):
    """A quote is a letter there; a row has as many words as names, or the file is refused."""
    lines = [f"{start}{x}{mark}{y!r}{mark}{word}{mark}{x + 1}{mark}{y + 1!r}" for x, y, word, start in rows]
    text = end.join(["min_x min_y note max_x max_y", *lines, ""])
    split = [line.split() for line in lines]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_table, "BLOCK_BYTES", block)
        if any(len(row) != 5 for row in split):
            with pytest.raises(rb.FileFormatError, match="6 fields, while the first line has 5"):
                rb.load(io.BytesIO(text.encode()), format=".txt")
            return
        boxes = rb.load(io.BytesIO(text.encode()), format=".txt")
    assert boxes.lower.tolist() == [[x, y] for x, y, _, _ in rows]
    typed = label("note", [np.array([*(row[2] for row in split), None], object)[:-1]]) if rows else []
    assert list(map(str, boxes.labels["note"])) == list(map(str, typed))


# .bin and .npy


@pytest.mark.parametrize("layout", ["x,y,z,i", "x,y,z,i,ring", "ring,z,y,x"])
def test_scans_of_float32(tmp_path, layout):
    """As KITTI and nuScenes write them."""
    names, path = layout.split(","), tmp_path / "a.bin"
    table = np.zeros((2, len(names)), "<f4")
    table[:, [names.index(axis) for axis in "xyz"]] = POINTS
    table.tofile(path)
    np.save(tmp_path / "a.npy", table.astype(">f8"))
    for one in (path, tmp_path / "a.npy"):
        assert directions(one, layout=layout) == POINTS
    assert "such as x,y,z,i" in refused(path, origin=ORIGIN)
    assert "KITTI" in refused(path)
    assert "holds points, not rays" in refused(path, layout=layout)
    path.write_bytes(path.read_bytes()[:-3])
    problem = refused(path, layout=layout, origin=ORIGIN)
    assert f"its {8 * len(names) - 3} bytes are no whole number of rows of {len(names)} float32" in problem
    assert f"({4 * len(names)} bytes)" in problem


def test_boxes_and_rays_of_bare_numbers(tmp_path):
    table = np.array([[1, 2, 3, 4, 5, 6, 0.5], [1, 2, 3, 4, 5, 6, 0]], np.float32)
    np.save(tmp_path / "a.npy", table)
    table.tofile(tmp_path / "a.bin")
    for path in (tmp_path / "a.bin", tmp_path / "a.npy"):
        turned = rb.load(path, layout="x,y,z,dx,dy,dz,yaw")
        wanted = rb.Instances.oriented_boxes(table[:, :3], table[:, 3:6], yaw=table[:, 6])
        np.testing.assert_array_equal(turned.transforms, wanted.transforms)
        boxes = rb.load(path, layout="x,y,z,dx,dy,dz,score", kind="scene")
        np.testing.assert_array_equal(boxes.lower, [[-1, -0.5, 0]] * 2)
        assert boxes.labels["score"].tolist() == [0.5, 0]
        rays = rb.load(path, layout="origin_x,origin_y,origin_z,direction_x,direction_y,direction_z,t_max")
        assert (rays.directions.tolist(), rays.t_max.tolist()) == ([[4, 5, 6]] * 2, [0.5, 0])
        for layout in ("x,y,z", "x,y,z,a,b,c,d,e"):
            assert refused(path, layout=layout, origin=ORIGIN)


def test_a_layout_is_for_bare_numbers(tmp_path, put):
    for names, layout, words in (
        (
            ("a.obj", "a.npz", "a.parquet", "a.las"),
            "x,y,z",
            r"layout is for files of bare numbers \(\.bin \.npy",
        ),
        *((["a.csv"], layout, "layout must be names of columns") for layout in ("", "x,,z", "x,y,", ",")),
    ):
        for name in names:
            with pytest.raises(rb.InvalidInput, match=words):
                rb.load(put(name, "v 0 0 0\n"), layout=layout)
    np.save(tmp_path / "named.npy", np.zeros(2, [("x", "f8"), ("y", "f8")]))
    assert "names its columns; leave out layout" in refused(tmp_path / "named.npy", layout="x,y")
    np.save(tmp_path / "deep.npy", np.zeros((2, 3, 3)))
    assert "has shape (2, 3, 3), while layout has 3 names" in refused(tmp_path / "deep.npy", layout="x,y,z")
    assert "more than one column named 'x'" in refused(put("b.csv", "1,2,3\n"), layout="x,y,x")
    rb.save(tmp_path / "a.npz", rb.Rays([0, 0, 0], [[1, 0, 0]]))
    with pytest.raises(rb.FileFormatError, match="names its columns; leave out layout"):
        rb.stream.cast(SLAB, tmp_path / "a.npz", tmp_path / "out.csv", layout="x,y,z")


SLAB = rb.Scene(rb.Boxes([[-3, -3, -3]], [[-2, 3, 3]]))


@pytest.mark.parametrize("ending", ["bin", "npy", *ENDINGS])
def test_casts_take_a_layout(tmp_path, monkeypatch, ending):
    """Row by row as `load` reads them, and another layout is another cast."""
    monkeypatch.setattr(csv_table, "BLOCK_BYTES", 64)
    table = np.random.default_rng(3).integers(-9, 9, (40, 4)).astype("<f4")
    path, results = tmp_path / f"a.{ending}", []
    if ending == "npy":
        np.save(path, table)
    elif ending == "bin":
        table.tofile(path)
    else:
        np.savetxt(path, table, delimiter="," if ending == "csv" else " ")
    for layout in ("x,y,z,i", "i,z,y,x"):
        rb.stream.cast(SLAB, path, tmp_path / "out.npy", origin=ORIGIN, layout=layout, chunk=7)
        results.append(np.load(tmp_path / "out.npy")["index"].tolist())
        assert results[-1] == SLAB.nearest(rb.load(path, origin=ORIGIN, layout=layout)).index.tolist()
        (tmp_path / "out.npy").unlink()
    assert results[0] != results[1]
    assert 0 in results[0]


def test_a_table_of_spaces_carries_columns(put, tmp_path):
    path = put("a.txt", "x y z name\n-5 0 0 a'b\n5 0 0 \"c\n")
    rb.stream.cast(SLAB, path, tmp_path / "out.csv", origin=ORIGIN, carry=["name"])
    assert get(tmp_path / "out.csv")["name"].tolist() == ["a'b", '"c']


def test_an_open_file_of_a_lidar():
    data = np.array([[1, 2, 3, 0.5]], "<f4").tobytes()
    for content, how in ((data, {"format": ".bin", "layout": "x,y,z,i"}), (b"1 2 3\n", {"format": "xyz"})):
        assert rb.load(io.BytesIO(content), origin=ORIGIN, **how).directions.tolist() == [[1, 2, 3]]


def test_a_signalling_nan_is_a_nan(tmp_path):
    """NumPy warns where it converts one to float64."""
    path = tmp_path / "a.bin"
    path.write_bytes(np.array([[1, 2, 3], [4, 5, 6]], "<f4").tobytes()[:-4] + b"\1\0\x80\x7f")
    expected = "row 1 (the first is 0), column z: nan is not a finite number"
    assert expected in refused(path, layout="x,y,z", origin=ORIGIN)
    rays = rb.load(path, layout="x,y,z", origin=ORIGIN, invalid="miss")
    assert np.isnan(rays.directions).tolist() == [[False] * 3, [False, False, True]]


def test_a_quote_between_spaces_does_not_join_rows(put, monkeypatch):
    """Else a single one would hold all rows after it in memory."""
    monkeypatch.setattr(csv_table, "BLOCK_BYTES", 64)
    monkeypatch.setattr(csv_table, "LONGEST_ROW", 256)
    path = put("a.txt", 'x y z width\n1 2 3 5"\n' + "1 2 3 4\n" * 99)
    assert rb.load(path, origin=ORIGIN).shape == (100,)


def test_a_cast_is_not_continued_with_another_layout(tmp_path):
    table = np.ones((9, 4), "<f4")
    table[8, 1] = np.nan
    table.tofile(tmp_path / "a.bin")

    def cast(layout, **how):
        rb.stream.cast(
            SLAB, tmp_path / "a.bin", tmp_path / "out.npy", layout=layout, origin=ORIGIN, chunk=4, **how
        )

    with pytest.raises(rb.FileFormatError, match="row 8"):
        cast("x,y,z,i")
    with pytest.raises(rb.FileFormatError) as caught:
        cast("i,x,y,z")
    assert "row 8" not in str(caught.value)
    cast("x,y,z,i", invalid="miss")
