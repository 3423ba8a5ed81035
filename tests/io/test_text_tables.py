"""Text tables: harmless bytes, encodings, line ends, comments, and text that must stay as it is."""

import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import raybox as rb
from raybox.io.formats import csv_table, read
from refusals import refused
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
    x, column = np.arange(11) * 2.0, np.array(texts, object)
    bounds = dict(zip(HEADER[1:], (x, 0 * x, x + 1, 0 * x + 1), strict=True))
    rb.save(tmp_path / "boxes.csv", {"id": column} | bounds)
    named = rb.load(tmp_path / "boxes.csv")
    assert named.ids.tolist() == texts
    rays = {"origin_x": x + 0.5, "origin_y": 0 * x - 1, "direction_x": 0 * x, "direction_y": 0 * x + 1}
    rb.save(tmp_path / "rays.csv", {"note\r,": column} | rays)
    out, ids = tmp_path / f"out.{ending}", [text.replace("\0", "") for text in texts]
    rb.stream.cast(rb.Scene(named), tmp_path / "rays.csv", out, ids=ids, carry=["note\r,"], chunk=4)
    if ending == "parquet":
        table = pytest.importorskip("pyarrow.parquet").read_table(out).to_pydict()
    else:
        with out.open(encoding="utf-8", newline="") as file:
            head, *rows = csv.reader(file)
        table = {name: [row[k] for row in rows] for k, name in enumerate(head)}
    assert table["id"] == ids
    assert table["note\r,"] == texts


@pytest.mark.parametrize("ending", ["csv", "parquet", "npy", "npz"])
@pytest.mark.parametrize("text", ["a\0", "\0", "a\0b", "\ud800"])
def test_ids_that_a_format_cannot_hold_are_refused(tmp_path, ending, text):
    scene, rays, out = (
        rb.Scene(rb.Boxes([[0, 0]], [[1, 1]])),
        tmp_path / "rays.npz",
        tmp_path / f"out.{ending}",
    )
    rb.save(rays, rb.Rays([[-1, 0.5]], [1, 0]))
    if text == "a\0b":  # NumPy drops NUL at the end alone
        rb.stream.cast(scene, rays, out, ids=[text])
        assert get(out)["id"].tolist() == [text]
        return
    words = "without NUL at its end, without surrogates"
    with pytest.raises(rb.InvalidInput, match=words):
        rb.stream.cast(scene, rays, out, ids=[text])
    with pytest.raises(rb.InvalidInput, match=words):
        rb.save(out, scene.nearest(rb.load(rays)), ids=[text])
    assert not out.exists()


BOUNDS = "min_x,min_y,max_x,max_y\n"
NOT_WHOLE = "line 2: is not a whole table: a quoted field does not end"
PROBLEMS = {
    "1,2,3,4,5,6\n": "name them in the first line, or by layout= or --layout, such as min_x",
    "1,2\n": "does not name the 2 columns of its rows; name them in the first line, or by",
    "a,b\n": "has no columns of boxes, rays or points, but 'a,b'",
    "a,b\n1,2\n": "name the columns in the first line, for boxes: min_x",
    BOUNDS.replace(",", "|"): "header: has no columns of boxes, rays or points",
    BOUNDS.replace("max_y", "top"): "header: lacks the column max_y",
    BOUNDS.replace("max_y", "max_x"): "header: has more than one column named 'max_x'",
    BOUNDS + "0,0,1,1\n\n0,0,1\n": "line 4: 3 fields, while the first line has 4",
    BOUNDS + "0,0,1,1,1\n": "line 2: 5 fields, while the first line has 4; write decimal points, not commas",
    BOUNDS + "0,0,1,1\n0,2,1,1\n": "line 3, column max_y: 1.0 is below the lower bound",
    BOUNDS + "0,nan,1,1\nnan,0,1,1\n": "line 2, column min_y: nan is not a number (2 such numbers)",
    BOUNDS + "0,0,1,\n": "line 2, column max_y: a number is missing; correct the row, or",
    **{
        f"{BOUNDS}0,0,1,{x}\n": f"line 2, column max_y: '{x}' is not a number"
        for x in ("1_0", "0x1", "١", "ÿ")
    },
    BOUNDS + '0,0,1,"1\n': NOT_WHOLE,
    BOUNDS + '0,0,1,"1"2\n': NOT_WHOLE,
    BOUNDS + "   \n": "line 2: holds blanks only",
    BOUNDS + "0,0,1,\0\n": "line 2, column max_y: '\\x00' is not a number",
}


@pytest.mark.parametrize("text", PROBLEMS)
def test_errors_are_in_plain_words(put, text):
    assert PROBLEMS[text] in refused(put("a.csv", text), kind="scene")


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("block", [5, 64, 1 << 21])
@pytest.mark.parametrize("start", ["", "\ufeff# one{0}# two{0}", "# "])
def test_casts_and_carried_columns_of_any_line_end(put, tmp_path, monkeypatch, end, block, start):
    monkeypatch.setattr(csv_table, "BLOCK_BYTES", block)
    texts = [ROWS[k % 5][0] + str(k) for k in range(20)]
    rows = [(text, k, 0, 1, 0) for k, text in enumerate(texts)]
    header = ["note", "Origin_X", "origin_y", "direction_x", "direction_y"]
    delimiter = ";" if start else ","
    path = put("rays.csv", start.format(end) + text_of(end, rows, header, delimiter) + end * 2)
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


NAMED = "min_x,min_y,max_x,max_y,name\n"
NAMED_ROWS = "0,0,1,1,a\n2,2,3,3,b\n"


@pytest.mark.parametrize(
    "text",
    [
        "# made by hand\n" + NAMED + NAMED_ROWS,
        '\ufeff# made, by "hand\r\n#\r\n' + (NAMED + NAMED_ROWS).replace("\n", "\r\n"),
        "# " + NAMED + NAMED_ROWS,
        "# made by hand\n#" + NAMED + NAMED_ROWS,
        (NAMED + NAMED_ROWS).replace(",", ";"),
        "# a;b\n" + (NAMED + NAMED_ROWS).replace(",", ";"),
        "Min_X,MIN_Y,max_x,Max_Y,name\n" + NAMED_ROWS,
        ("# a\n" + "MIN_X,MIN_Y,MAX_X,MAX_Y,name\n" + NAMED_ROWS).replace(",", " ; "),
    ],
)
def test_comments_semicolons_and_capitals(put, text):
    loaded = read(put("a.csv", text))
    assert loaded.geometry.bounds.tolist() == [[0, 0], [3, 3]]
    assert loaded.geometry.lower.tolist() == [[0, 0], [2, 2]]
    assert [name.strip() for name in loaded.labels["name"]] == ["a", "b"]


def test_headers_with_capitals_or_a_hash_are_columns(put):
    head = "#id,X,min_x,min_y,max_x,max_y,T_MIN,a;b\n"
    assert list(read(put("a.csv", head + "7,1,0,0,1,1,5,u\n")).labels) == ["#id", "X", "T_MIN", "a;b"]
    assert read(put("a.csv", "ID,MIN_X,min_y,max_x,max_y\n7,0,0,1,1\n")).ids == ["7"]
    assert "more than one column named 'min_x'" in refused(put("a.csv", "Min_X,MIN_X,min_y,max_x,max_y\n"))
    rays = "origin_x,origin_y,direction_x,direction_y,T_MAX\n0,0,1,0,5\n"
    assert rb.load(put("a.csv", rays)).t_max.tolist() == [5]


def test_lines_are_counted_from_the_first_comment(put):
    for text, problem in (
        ("# one\n# two\nx;y\n0;0\n1,5;0\n", "line 5, column x: '1,5' has a decimal comma"),
        ("# one\n# two\nx,y\n0,0\nnan,0\n", "line 5, column x: nan is not a finite number"),
        ('"x,y\n0,0\n', "header: is not a whole table: a quoted field does not end"),
        ('# one\nname,x,y\n"a,0,0\n', "line 3: is not a whole table: a quoted field does not end"),
    ):
        assert problem in refused(put("a.csv", text), origin=(0.0, 0.0))
