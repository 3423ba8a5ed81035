"""Rows with missing and wrong numbers: boxes are left out and counted, rays stay as misses, else an error."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import raybox as rb
from raybox.io.formats import csv_table
from refusals import refused

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

NAMES = ("min_x", "min_y", "max_x", "max_y")
RAYS = ("origin_x", "origin_y", "direction_x", "direction_y")
MISSING, CROSSED = "rows with missing numbers", "rows whose upper bound is below the lower one"


def put_rows(path, names, rows, notes):
    """Write rows of numbers, None where one is missing, and notes, in the format of the extension."""
    filled = [[np.nan if number is None else number for number in row] for row in rows]
    columns = {name: np.array([row[k] for row in filled], float) for k, name in enumerate(names)}
    if path.suffix == ".parquet":
        nulls = {name: pa.array([row[k] for row in rows], pa.float64()) for k, name in enumerate(names)}
        pq.write_table(pa.table(nulls | {"note": notes}), path, row_group_size=3)
    elif path.suffix == ".npz":
        first, second = ("lower", "upper") if names == NAMES else ("origins", "directions")
        table = np.array(filled, float).reshape(-1, 4)
        np.savez(path, **{first: table[:, :2], second: table[:, 2:], "note": np.array(notes, "U9")})
    elif path.suffix == ".npy":
        table = np.empty(len(rows), [*((name, "f8") for name in names), ("note", "U9")])
        for name, values in (columns | {"note": notes}).items():
            table[name] = values
        np.save(path, table)
    else:
        mark = {".csv": ",", ".tsv": "\t"}[path.suffix]
        cells = [["" if number is None else repr(float(number)) for number in row] for row in rows]
        lines = [[*names, "note"], *([*row, note] for row, note in zip(cells, notes, strict=True))]
        path.write_text("".join(mark.join(line) + "\n" for line in lines))
    return path


ENDINGS = ["csv", "tsv", "parquet", "npy", "npz"]
CELL = st.sampled_from([None, np.nan, 0.0, 1.0, 2.5, -3.0, np.inf])


@pytest.mark.filterwarnings("ignore::raybox.errors.SkippedWarning")
@pytest.mark.parametrize("ending", ENDINGS)
@given(st.lists(st.tuples(CELL, CELL, CELL, CELL), min_size=1, max_size=12), st.sampled_from([30, 1 << 21]))
@settings(max_examples=40, deadline=None)
def test_boxes_with_bad_rows_are_left_out_and_counted(tmp_path_factory, ending, rows, block):
    path, notes = tmp_path_factory.mktemp("skip") / f"a.{ending}", [f"n{k}" for k in range(len(rows))]
    put_rows(path, NAMES, rows, notes)
    numbers = np.array(rows, float)
    missing = np.isnan(numbers).any(axis=1)
    crossed = ~missing & (numbers[:, :2] > numbers[:, 2:]).any(axis=1)
    good = ~missing & ~crossed
    counts = +Counter({MISSING: int(missing.sum()), CROSSED: int(crossed.sum())})
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_table, "BLOCK_BYTES", block)
        boxes = rb.load(path, kind="scene", invalid="skip")
        if counts:
            assert "read with invalid='skip'" in refused(path, kind="scene")
        else:
            assert boxes.equals(rb.load(path, kind="scene"))
    np.testing.assert_array_equal(np.hstack([boxes.lower, boxes.upper]), numbers[good])
    assert dict(boxes.skipped) == counts
    assert boxes.labels["note"].tolist() == np.array(notes)[good].tolist()


@pytest.mark.parametrize("ending", ENDINGS)
@given(st.lists(st.tuples(CELL, CELL, CELL, CELL), min_size=1, max_size=12), st.sampled_from([30, 1 << 21]))
@settings(max_examples=30, deadline=None)
def test_rays_with_bad_rows_stay_as_misses(tmp_path_factory, ending, rows, block):
    """Also those of casts, block by block."""
    folder = tmp_path_factory.mktemp("miss")
    path = put_rows(folder / f"a.{ending}", RAYS, rows, ["n"] * len(rows))
    numbers = np.array(rows, float)
    wanted = rb.Rays(numbers[:, :2], numbers[:, 2:], invalid="miss")
    scene = rb.Scene(rb.Boxes([[-1, -1]], [[1, 1]]))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(csv_table, "BLOCK_BYTES", block)
        assert rb.load(path, kind="rays", invalid="miss").equals(wanted)
        rb.stream.cast(scene, path, folder / "out.npy", invalid="miss", chunk=3)
        if not np.isfinite(numbers).all():
            with pytest.raises(rb.FileFormatError, match="read with invalid='miss'"):
                rb.load(path, kind="rays")
    np.testing.assert_array_equal(np.load(folder / "out.npy")["t"], scene.nearest(wanted).t)


def test_rays_are_not_left_out(tmp_path, put):
    path = put_rows(tmp_path / "a.csv", RAYS, [[0, 0, 1, 1]], ["n"])
    scene, skipping = rb.Scene(rb.Boxes([[0, 0]], [[1, 1]])), 'invalid="skip" leaves out boxes, and rays keep'
    for words, call in (
        (skipping, lambda: rb.load(path, invalid="skip", kind="rays")),
        (skipping, lambda: rb.load(path, invalid="skip", origin=(0, 0))),
        ('use invalid="miss"', lambda: rb.stream.cast(scene, path, tmp_path / "out.csv", invalid="skip")),
        ('invalid must be "raise", "miss" or "skip"; got', lambda: rb.load(path, invalid="drop")),
    ):
        with pytest.raises(rb.InvalidInput, match=words):
            call()
    words = "holds rays, of which none are left out; read them with invalid='miss'"
    assert words in refused(path, invalid="skip")
    words = "a number is missing; correct the row, or read with invalid='miss'"
    assert words in refused(put("b.csv", "x,y\n1,\n"), origin=(0, 0))


def test_what_is_no_number_is_an_error_in_any_case(put):
    head = "min_x,min_y,max_x,max_y\n"
    for row in ("x,0,1,1", "0,0,1", ",0,1,1e", "9007199254740993,,1,1", '"1,5",,1,1'):
        path = put("a.csv", f"{head},0,1,1\n{row}\n")
        assert "line 3" in refused(path, invalid="skip")
    for row in (" ,0,1,1", '"",0,1,1', ',"0",1,1'):
        boxes = rb.load(put("a.csv", f"{head}{row}\n0,0,1,1\n"), invalid="skip")
        assert (len(boxes), dict(boxes.skipped)) == (1, {MISSING: 1})


def test_a_null_struct_among_boxes(tmp_path):
    bounds = {"xmin": 0.0, "ymin": 0.0, "xmax": 1.0, "ymax": 1.0}
    rows = [bounds, None, bounds | {"xmax": None}, bounds | {"xmax": -1.0}, bounds]
    pq.write_table(pa.table({"id": list("abcde"), "bbox": rows}), tmp_path / "a.parquet", row_group_size=2)
    boxes = rb.load(tmp_path / "a.parquet", invalid="skip")
    assert (boxes.ids.tolist(), dict(boxes.skipped)) == (["a", "e"], {MISSING: 2, CROSSED: 1})


def test_boxes_that_were_saved_and_edited(tmp_path):
    """The metadata of `save` stay, so ids and labels are those of the rows that are left."""
    labels = {"n": [1, None, 3], "name": ["u", "v", None]}
    rb.save(tmp_path / "a.parquet", rb.Boxes([[0, 0]] * 3, [[1, 1]] * 3, ids=["a", "b", "c"], labels=labels))
    table = pq.read_table(tmp_path / "a.parquet")
    at = table.schema.get_field_index("max_x")
    table = table.set_column(at, "max_x", pa.array([1.0, None, 1.0]))
    pq.write_table(table.replace_schema_metadata(table.schema.metadata), tmp_path / "a.parquet")
    assert "a value is missing" in refused(tmp_path / "a.parquet")
    boxes = rb.load(tmp_path / "a.parquet", invalid="skip")
    assert (boxes.ids.tolist(), dict(boxes.skipped)) == (["a", "c"], {MISSING: 1})
    assert {name: values.tolist() for name, values in boxes.labels.items()} == {
        "n": [1, 3],
        "name": ["u", None],
    }


def test_boxes_with_centre_size_and_yaw(put):
    head = "center_x,center_y,center_z,size_x,size_y,size_z"
    rows = ["0,0,0,1,1,1", ",0,0,1,1,1", "0,0,0,1,-1,1", "0,0,0,1,inf,1", "0,0,0,0,1,1", "inf,0,0,1,1,1"]
    text = "\n".join([head, *rows, ""])
    boxes = rb.load(put("a.csv", text), invalid="skip")
    infinite, below = "rows with missing or infinite numbers", "rows with sizes below zero"
    assert (len(boxes), dict(boxes.skipped)) == (3, {infinite: 2, below: 1})
    turned = "\n".join([f"{head},yaw", *(f"{row},{yaw}" for row, yaw in zip(rows, "000000", strict=True))])
    copies = rb.load(put("b.csv", f"{turned}\n0,0,0,1,1,1,90\n"), invalid="skip")
    above, beyond = "rows with sizes that are not above zero", "rows with a yaw beyond two turns"
    assert (type(copies), len(copies)) == (rb.Instances, 1)
    assert dict(copies.skipped) == {infinite: 3, above: 2, beyond: 1}


@pytest.mark.parametrize("shape", [(3, 2), (2, 3, 2), (0, 2)])
def test_arrays_of_other_shapes(tmp_path, shape):
    """Without a row for each box, the error is that of the shape."""
    np.savez(tmp_path / "a.npz", lower=np.zeros(shape), upper=np.zeros((shape[0] // 2, *shape[1:])))
    if shape[0]:
        assert "shape" in refused(tmp_path / "a.npz", invalid="skip")
    else:
        assert len(rb.load(tmp_path / "a.npz", invalid="skip")) == 0
    np.savez(tmp_path / "b.npz", lower=[0.0, np.nan, 1.0], upper=[1.0, 1.0, 1.0])
    assert "upper" not in refused(tmp_path / "b.npz", invalid="skip")
