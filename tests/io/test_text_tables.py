"""Text tables: harmless bytes, encodings, line ends, comments, and text that must stay as it is."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import raybox as rb
from raybox.io.formats import csv_table, read
from streaming import get

ROWS = [
    ("a", 0, 0, 1, 1),
    ('b "2"', 2, 2, 3, 3),
    ("c\nd", 4, 4, 5, 5),
    ("e\rf", 6, 6, 7, 7),
    ("", 8, 8, 9, 9),
]
HEADER = ["name", "min_x", "min_y", "max_x", "max_y"]


def text_of(end, rows=ROWS, header=HEADER, delimiter=","):
    """Return a table whose lines end so; all texts are quoted."""
    quoted = ['"' + row[0].replace('"', '""') + '"' for row in rows]
    lines = [delimiter.join([name, *map(str, row[1:])]) for name, row in zip(quoted, rows, strict=True)]
    return end.join([delimiter.join(header), *lines, ""])


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
@pytest.mark.parametrize("delimiter", [",", ";"])
def test_line_ends_and_marks_change_no_text(put, monkeypatch, end, mark, delimiter):
    """LF and CR in quotes stay as they are, in blocks of any size."""
    for size in (3, 16, 1 << 21):
        monkeypatch.setattr(csv_table, "BLOCK_BYTES", size)
        boxes = rb.load(put("a.csv", mark + text_of(end, delimiter=delimiter)))
        assert boxes.lower.tolist() == [[0, 0], [2, 2], [4, 4], [6, 6], [8, 8]]
        assert boxes.labels["name"].tolist() == ["a", 'b "2"', "c\nd", "e\rf", None]


def test_blanks_after_the_end_and_mixed_line_ends(put):
    text = text_of("\n", ROWS[:2])
    for tail in ("\n", "\r\n\r\n", "\n\n\n", "\r"):
        assert len(rb.load(put("a.csv", text + tail))) == 2
    assert len(rb.load(put("a.csv", text_of("\r", ROWS[:2]) + "\r\r"))) == 2
    mixed = ",".join(HEADER) + '\r"a",0,0,1,1\n"b",0,0,1,1\r\n"c",0,0,1,1'
    assert rb.load(put("a.csv", mixed)).ids.tolist() == ["a", "b", "c"]
    quoted = '"a\rname",min_x,min_y,max_x,max_y\n"x\ry",0,0,1,1\nz,0,0,1,1\n'
    assert rb.load(put("a.csv", quoted)).labels["a\rname"].tolist() == ["x\ry", "z"]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_other_encodings_are_named(put, encoding):
    text = text_of("\n")
    name = "UTF-32" if "32" in encoding else "UTF-16"
    with pytest.raises(rb.FileFormatError, match=f"is {name} text, or no text; save it as UTF-8"):
        rb.load(put("a.csv", text.encode(encoding)))
    with pytest.raises(rb.FileFormatError, match="is not UTF-8 text; save it as UTF-8"):
        rb.load(put("b.csv", text.replace('"a"', '"ä"').encode("latin-1")))
    assert rb.load(put("c.csv", text.replace('"a"', '"ä"').encode())).lower.shape == (5, 2)


def test_comments_are_read_once(put, monkeypatch):
    """Counted, not timed: each comment line is parsed a bounded number of times, most of them never."""
    parsed, reader, counts = [], csv_table.csv.reader, []
    monkeypatch.setattr(
        "raybox.io.formats.csv_header.csv.reader", lambda *a, **k: parsed.append(1) or reader(*a, **k)
    )
    for count in (10, 1000):
        parsed.clear()
        boxes = rb.load(put("a.csv", "# made by hand\n" * count + text_of("\n", ROWS[:1])))
        assert len(boxes) == 1
        counts.append(len(parsed))
    assert counts[0] == counts[1] < 30
    parsed.clear()
    rb.load(put("a.csv", "# x, y; any\n" * 1000 + text_of("\n", ROWS[:1])))
    assert 1000 < len(parsed) < 12_000


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_ids_and_carried_text_with_cr_read_back(tmp_path, ending):
    """Whatever text a column holds, the output has the same, and text that needs quotes is quoted."""
    texts = ["a\rb", "c\nd", "e\r\nf", 'g"h', "i,j", "", " k ", "\ufeffl", "m\0n", "'", "#"]
    boxes = rb.Boxes(np.c_[np.arange(11) * 2.0, np.zeros(11)], np.c_[np.arange(11) * 2.0 + 1, np.ones(11)])
    rb.save(
        tmp_path / "boxes.csv",
        {
            "id": np.array(texts, object),
            **dict(zip(HEADER[1:], np.c_[boxes.lower, boxes.upper].T, strict=True)),
        },
    )
    named = rb.load(tmp_path / "boxes.csv")
    assert named.ids.tolist() == texts
    columns = {
        "note\r,": np.array(texts, object),
        "origin_x": boxes.lower[:, 0] + 0.5,
        "origin_y": np.full(11, -1.0),
    }
    rb.save(tmp_path / "rays.csv", columns | {"direction_x": np.zeros(11), "direction_y": np.ones(11)})
    out = tmp_path / f"out.{ending}"
    ids = [text.replace("\0", "") for text in texts]
    rb.stream.cast(rb.Scene(named), tmp_path / "rays.csv", out, ids=ids, carry=["note\r,"], chunk=4)
    if ending == "parquet":
        table = pytest.importorskip("pyarrow.parquet").read_table(out).to_pydict()
    else:
        with out.open(encoding="utf-8", newline="") as file:
            head, *rows = csv_table.csv.reader(file)
        table = {name: [row[k] for row in rows] for k, name in enumerate(head)}
    assert table["id"] == ids
    assert table["note\r,"] == texts


@pytest.mark.parametrize("ending", ["csv", "parquet", "npy", "npz"])
@pytest.mark.parametrize("text", ["a\0", "\0", "a\0b", "\ud800"])
def test_ids_that_a_format_cannot_hold_are_refused(tmp_path, ending, text):
    scene = rb.Scene(rb.Boxes([[0, 0]], [[1, 1]]))
    rb.save(tmp_path / "rays.npz", rb.Rays([[-1, 0.5]], [1, 0]))
    out = tmp_path / f"out.{ending}"
    if text == "a\0b":  # NumPy drops NUL at the end alone
        rb.stream.cast(scene, tmp_path / "rays.npz", out, ids=[text])
        assert get(out)["id"].tolist() == [text]
        return
    for write in (
        lambda: rb.stream.cast(scene, tmp_path / "rays.npz", out, ids=[text]),
        lambda: rb.save(out, scene.nearest(rb.Rays([[-1, 0.5]], [1, 0])), ids=[text]),
    ):
        with pytest.raises(rb.InvalidInput, match="without NUL at its end, without surrogates"):
            write()
        assert not out.exists()


PROBLEMS = {
    "1,2\n": "does not name the 2 columns of its rows; name them in the first line, or by",
    "a,b\n": "has no columns of boxes, rays or points, but 'a,b'",
    "min_x,min_y,max_x,max_y\n0,0,1\n": "line 2: 3 fields, while the first line has 4",
    "min_x,min_y,max_x,max_y\n0,0,1,1,1\n": "line 2: 5 fields, while the first line has 4",
    "min_x,min_y,max_x,max_y\n0,0,1,\n": "line 2, column max_y: a number is missing; correct the row, or",
    "min_x,min_y,max_x,max_y\n0,0,1,1_0\n": "line 2, column max_y: '1_0' is not a number",
    "min_x,min_y,max_x,max_y\n0,0,1,0x1\n": "line 2, column max_y: '0x1' is not a number",
    "min_x,min_y,max_x,max_y\n0,0,1,١\n": "line 2, column max_y: '١' is not a number",
    'min_x,min_y,max_x,max_y\n0,0,1,"1\n': "line 2: is not a whole table: a quoted field does not end",
    'min_x,min_y,max_x,max_y\n0,0,1,"1"2\n': "line 2: is not a whole table: a quoted field does not end",
    "min_x,min_y,max_x,max_y\n   \n": "line 2: holds blanks only",
    "min_x,min_y,max_x,max_y\n0,0,1,\0\n": "line 2, column max_y: '\\x00' is not a number",
}


@pytest.mark.parametrize("text", PROBLEMS)
def test_errors_are_in_plain_words(put, text):
    path = put("a.csv", text)
    with pytest.raises(rb.FileFormatError) as caught:
        read(path, kind="scene")
    assert PROBLEMS[text] in str(caught.value)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("block", [5, 64, 1 << 21])
def test_casts_and_carried_columns_of_any_line_end(put, tmp_path, monkeypatch, end, block):
    monkeypatch.setattr(csv_table, "BLOCK_BYTES", block)
    texts = [ROWS[k % 5][0] + str(k) for k in range(20)]
    rows = [(text, k, 0, 1, 0) for k, text in enumerate(texts)]
    header = ["note", "origin_x", "origin_y", "direction_x", "direction_y"]
    path = put("rays.csv", text_of(end, rows, header) + end * 2)
    scene = rb.Scene(rb.Boxes([[9.5, -1]], [[10, 1]]))
    rb.stream.cast(scene, path, tmp_path / "out.csv", carry=["note"], chunk=3)
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        found = list(csv_table.csv.DictReader(file))
    assert [row["note"] for row in found] == texts
    assert [row["index"] for row in found] == ["0"] * 11 + ["-1"] * 9


def parsed_by_python(text):
    """Return the numbers and the notes of a table by the csv module and `float`; None if it is none."""
    header, *rows = csv.reader(io.StringIO(text, newline=""), strict=True)
    rows = [row for row in rows if row]
    if any(len(row) != len(header) for row in rows):
        return None
    numbers = [[float(row[k]) for k in range(4)] for row in rows]
    return numbers, [row[4] or None for row in rows]


FIELDS = ["0", "1", "-2.5", "1e3", " 7 ", '"3"', "inf"]
NOTES = ["a", "", '"b,c"', '"d""e"', '"f\ng"', '"h\r"', "i j", '"', "1,2", '""', "é", '"k"l']


@given(
    st.lists(st.tuples(*[st.sampled_from(FIELDS)] * 2, st.sampled_from(NOTES)), max_size=8),
    st.sampled_from(["\n", "\r\n", "\n\n"]),
    st.sampled_from([5, 1 << 21]),
)
@settings(max_examples=200, deadline=None)
def test_rows_are_those_of_the_csv_module(rows, end, block):
    """Each row has as many fields as the header, and every row is read, or the file is refused."""
    lines = [f"{x},{y},{x},{y},{note}" for x, y, note in rows]
    text = end.join(["min_x,min_y,max_x,max_y,note", *lines, ""])
    try:
        wanted = parsed_by_python(text)
    except csv.Error:
        wanted = None
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_table, "BLOCK_BYTES", block)
        if wanted is None:
            with pytest.raises(rb.FileFormatError):
                rb.load(io.BytesIO(text.encode()), format=".csv")
            return
        boxes = rb.load(io.BytesIO(text.encode()), format=".csv")
    assert np.hstack([boxes.lower, boxes.upper]).reshape(-1, 4).tolist() == wanted[0]
    assert [v if v is None else str(v) for v in boxes.labels["note"].tolist()] == wanted[1]
