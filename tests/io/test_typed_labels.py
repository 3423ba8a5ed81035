"""Labels of tables are typed, and text stays as it is, whatever its bytes."""

import csv
import io
from decimal import Decimal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import raybox as rb
from raybox.io.formats.typed_labels import label

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

HEAD = "min_x,min_y,max_x,max_y,"
NUMBERS = [
    (["1.5", "2", "-3"], [1.5, 2.0, -3.0], "float64"),
    (["1.5", "", "2"], [1.5, np.nan, 2.0], "float64"),
    (["1e3", "-.5", "2."], [1e3, -0.5, 2.0], "float64"),
    (["1.5", "inf", "-inf", "nan"], [1.5, np.inf, -np.inf, np.nan], "float64"),
    (["0", "-7", "9223372036854775807"], [0, -7, 2**63 - 1], "int64"),
    (["3", "", "4"], [3, None, 4], "object"),
    (["9007199254740993", "0.5"], ["9007199254740993", "0.5"], "object"),
    (["9223372036854775808", "1"], ["9223372036854775808", "1"], "object"),
    (["007", "8"], ["007", "8"], "object"),
    (["1.5", "01.5"], ["1.5", "01.5"], "object"),
    (["-0", "1"], ["-0", "1"], "object"),
    (["+1", "2"], ["+1", "2"], "object"),
    (["1,5", "2"], ["1,5", "2"], "object"),
    (["0x10", "1"], ["0x10", "1"], "object"),
    (["1_000", "1"], ["1_000", "1"], "object"),
    (["inf", "nan"], ["inf", "nan"], "object"),
    ([" 1", "2"], [" 1", "2"], "object"),
    (["1e400", "1.5"], ["1e400", "1.5"], "object"),
    (["a", "", "b"], ["a", None, "b"], "object"),
    (["True", "False"], ["True", "False"], "object"),
    (["", ""], [None, None], "object"),
    (["٣", "4"], ["٣", "4"], "object"),
]


def table_of(name, texts):
    """Return a table of boxes with one more column."""
    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\r\n").writerows([[0, 0, 1, 1, text] for text in texts])
    return HEAD + name + "\n" + out.getvalue().replace("\r\n", "\n")


@pytest.mark.parametrize(("texts", "values", "dtype"), NUMBERS)
def test_columns_of_csv_are_numbers_only_if_all_cells_are(put, texts, values, dtype):
    found = rb.load(put("a.csv", table_of("note", texts))).labels["note"]
    assert found.dtype == dtype
    np.testing.assert_array_equal(found, np.array(values, found.dtype))
    assert [type(a) for a in found.tolist()] == [type(b) for b in values]


@pytest.mark.parametrize("texts", [texts for texts, _, _ in NUMBERS])
def test_ids_and_storeys_are_text(put, texts):
    boxes = rb.load(put("a.csv", table_of("storey", texts)))
    assert boxes.labels["storey"].tolist() == [text or None for text in texts]
    boxes = rb.load(put("a.csv", table_of("id", texts)))
    assert boxes.ids.tolist() == texts
    assert not boxes.labels


@given(st.lists(st.one_of(st.integers(), st.floats(), st.none()), min_size=1))
@settings(max_examples=300, deadline=None)
def test_numbers_that_python_writes_read_back(values):
    """The truth: each number is that of its text, or the column is the texts themselves."""
    texts = ["" if value is None else repr(value) for value in values]
    found = label("n", [np.array([*texts, None], object)[:-1]])
    assert found.dtype in (np.float64, np.int64, object)
    for value, text, got in zip(values, texts, found.tolist(), strict=True):
        if isinstance(got, str):
            assert got == text
        elif got is None or got != got:
            assert value is None or value != value
        else:
            assert got == value
            assert str(got) == str(value) or (isinstance(got, float) and abs(value) <= 2**53)


TYPES = {
    "int8": ([1, -2], [1, -2], "int64"),
    "uint64": ([1, 2**63], ["1", str(2**63)], "object"),
    "int64": ([1, None], [1, None], "object"),
    "float": ([1.5, None], [1.5, np.nan], "float64"),
    "bool": ([True, False], [True, False], "bool"),
    "string": (["a", None], ["a", None], "object"),
    "large_string": (["007", ""], ["007", ""], "object"),
    "date32": ([1, 2], ["1970-01-02", "1970-01-03"], "object"),
    "timestamp[ms]": ([0, None], ["1970-01-01 00:00:00.000", None], "object"),
}


@pytest.mark.parametrize("kind", TYPES)
def test_parquet_keeps_its_types(tmp_path, kind):
    values, wanted, dtype = TYPES[kind]
    names = {"float": "float32", "bool": "bool_"}
    made = pa.timestamp("ms") if "timestamp" in kind else getattr(pa, names.get(kind, kind))()
    bounds = {name: [0.0, 0.0] for name in HEAD.strip(",").split(",")}
    column = pa.array(values, made)
    storey = column if kind in ("int8", "string") else pa.array([3, 4])
    pq.write_table(pa.table({**bounds, "note": column, "storey": storey}), tmp_path / "a.parquet")
    labels = rb.load(tmp_path / "a.parquet").labels
    assert (labels["note"].dtype, str(labels["note"].tolist())) == (dtype, str(wanted))
    assert all(text is None or isinstance(text, str) for text in labels["storey"].tolist())


def test_dictionaries_decimals_and_types_without_labels(tmp_path):
    columns = {name: [0.0, 0.0] for name in HEAD.strip(",").split(",")}
    columns["floor"] = pa.array(["a", "b"]).dictionary_encode()
    columns["cost"] = pa.array([Decimal("1.5"), None])
    columns["tax"] = pa.array([Decimal("0.1"), None])
    columns["blob"] = pa.array([b"a", b"b"])
    columns["list"] = pa.array([[1], []])
    pq.write_table(pa.table(columns), tmp_path / "a.parquet")
    boxes = rb.load(tmp_path / "a.parquet")
    assert {name: str(values.tolist()) for name, values in boxes.labels.items()} == {
        "floor": "['a', 'b']",
        "cost": "[1.5, nan]",
        "tax": "['0.1', None]",
    }
    assert dict(boxes.skipped) == {"columns that are no labels": 2}


DAYS = {"day": np.array(["2026-01-01", "2026-01-02"], "M8[D]")}
OTHERS = {"matrix": np.eye(2), "three": np.zeros(3), "objects": np.array([None, 1]), **DAYS}
COLUMN_EACH = {name: np.full(2, float("max" in name)) for name in HEAD.strip(",").split(",")}
TYPED = {  # bounds, and arrays that are no labels
    "arrays.npz": (np.savez, {"lower": np.zeros((2, 2)), "upper": np.ones((2, 2))}, OTHERS),
    "columns.npz": (np.savez, COLUMN_EACH, DAYS),
    "compressed.npz": (np.savez_compressed, COLUMN_EACH, DAYS),
    "a.npy": (lambda path, **columns: rb.save(path, columns), COLUMN_EACH, {}),
}
LABELS = {
    "n": (np.array([1, 2], np.uint8), ("int64", [1, 2])),
    "w": (np.array([0.5, 2], np.float32), ("float64", [0.5, 2.0])),
    "yes": (np.array([True, False]), ("bool", [True, False])),
    "name": (np.array(["a", ""]), ("object", ["a", None])),
    "storey": (np.array([1, 2]), ("object", ["1", "2"])),
}


@pytest.mark.parametrize("name", TYPED)
def test_npz_and_structured_npy_keep_their_types(tmp_path, name):
    save, bounds, others = TYPED[name]
    columns = {label: column for label, (column, _) in LABELS.items()}
    save(tmp_path / name, **bounds, **columns, **others, id=np.array([7, 8]))
    boxes = rb.load(tmp_path / name)
    assert boxes.bounds.tolist() == [[0, 0], [1, 1]]
    assert boxes.ids.tolist() == ["7", "8"]
    assert dict(boxes.skipped) == ({"columns that are no labels": len(others)} if others else {})
    found = {label: (values.dtype.name, values.tolist()) for label, values in boxes.labels.items()}
    assert found == {label: wanted for label, (_, wanted) in LABELS.items()}


def test_names_that_repeat_and_text_that_is_not_utf_8(tmp_path):
    bounds = {name: [0.0] for name in HEAD.strip(",").split(",")}
    names = [*bounds, "n", "n"]
    table = pa.table([pa.array([0.0])] * 6, names=names)
    pq.write_table(table, tmp_path / "twice.parquet")
    with pytest.raises(rb.FileFormatError, match="has more than one column named 'n'; rename one of them"):
        rb.load(tmp_path / "twice.parquet")
    text = pa.Array.from_buffers(pa.string(), 1, [None, *pa.array([b"\xff"], pa.binary()).buffers()[1:]])
    for name, metadata in (("note", None), ("id", None), ("id", {"raybox.scene": "boxes"})):
        table = pa.table({**bounds, name: text}).replace_schema_metadata(metadata)
        pq.write_table(table, tmp_path / "latin.parquet")
        problem = f"column {name}: holds text that is not UTF-8; write it again as UTF-8"
        with pytest.raises(rb.FileFormatError, match=problem):
            rb.load(tmp_path / "latin.parquet")


def ids_from_the_rule(columns):
    """Return the ids of columns of text by the definition, written again."""
    for name in ("id", "uuid", "guid", "globalid", "global_id", "gml_id", "token"):
        for own, texts in columns.items():
            if own.lower() == name:
                return texts
    for own, texts in columns.items():
        if own.lower() != "storey" and "" not in texts and all(texts.count(t) == 1 for t in texts) and texts:
            return texts
    return None


COLUMNS = {
    "classes": {"class": ["car", "car", "bus"], "uuid": ["u", "v", "w"]},
    "classes alone": {"class": ["car", "car", "bus"]},
    "a class each": {"class": ["car", "van", "bus"], "note": ["a", "b", "c"]},
    "one is missing": {"name": ["a", "", "c"], "tag": ["x", "y", "z"]},
    "all are missing": {"name": ["", "", ""]},
    "a name twice": {"name": ["wall", "wall", "door"], "storey": ["1", "2", "3"]},
    "capitals": {"label": ["a", "b", "c"], "GlobalId": ["q", "q", ""]},
    "id first": {"GUID": ["g", "h", "i"], "Id": ["7", "007", "7"]},
    "two spellings": {"ID": ["1", "2", "3"], "id": ["4", "5", "6"]},
    "guids of digits": {"guid": ["1", "2e3", "007"], "name": ["a", "b", "c"]},
    "a name of the list in another": {"guids": ["x", "x", "x"], "my_id": ["k", "l", "m"]},
    "no rows": {"name": [], "tag": []},
    "no rows, ids": {"token": []},
}


@pytest.mark.parametrize("ending", ["csv", "parquet", "npy", "npz"])
@pytest.mark.parametrize("case", COLUMNS)
def test_ids_are_columns_of_that_name_or_of_different_texts(tmp_path, case, ending):
    columns = COLUMNS[case]
    rows = len(next(iter(columns.values())))
    bounds = {name: np.full(rows, float("max" in name)) for name in HEAD.strip(",").split(",")}
    table = bounds | {name: np.array(texts, str) for name, texts in columns.items()}
    path = tmp_path / f"a.{ending}"
    rb.save(path, table)
    boxes = rb.load(path)
    wanted = ids_from_the_rule(columns)
    assert boxes.ids is None if wanted is None else boxes.ids.tolist() == wanted
    is_id = [name for name in columns if name.lower() == "id"]
    assert set(boxes.labels) == set(columns) - {"id" if "id" in columns else (is_id or [""])[0]}
    for name in boxes.labels.keys() & {"uuid", "guid", "GUID", "GlobalId", "token", "storey"}:
        missing = "" if ending == "parquet" else None
        assert boxes.labels[name].tolist() == [text or missing for text in columns[name]]


def test_labels_of_a_table_without_rows(put, tmp_path):
    boxes = rb.load(put("a.csv", HEAD + "id,n\n"))
    assert (len(boxes), len(boxes.labels["n"])) == (0, 0)
