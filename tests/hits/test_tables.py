"""Hits as dicts, tables of Arrow, frames of pandas, and HTML: values by hand, names as in files."""

import re

import numpy as np
import pytest

import raybox as rb
from raybox.queries.every import QUERIES

BOXES = rb.Boxes([[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [7, 1, 1]])
SCENE = rb.Scene(BOXES)
RAYS = rb.Rays([[[0, 0, 0], [0, 9, 0]], [[4, 0, 0], [6, 0, 0.5]]], [2, 0, 0])
HITS, ALL_HITS = SCENE.nearest(RAYS), SCENE.all(RAYS)
NAN, INF = np.nan, np.inf
NEAREST = {"ray": [0, 1, 2, 3], "index": [0, -1, 1, 1], "t": [1, INF, 0.5, 0]}
NEAREST |= {"x": [2, NAN, 5, 6], "y": [0, NAN, 0, 0], "z": [0, NAN, 0, 0.5]}
EVERY = {"ray": [0, 0, 2, 3], "index": [0, 1, 1, 1], "t": [1, 2.5, 0.5, 0], "t_enter": [1, 2.5, 0.5, -0.5]}
EVERY |= {"t_exit": [1.5, 3.5, 1.5, 0.5], "length": [1, 2, 2, 1]}
CONTENTS = pytest.mark.parametrize(
    ("hits", "want", "query"), [(HITS, NEAREST, "nearest"), (ALL_HITS, EVERY, "all")], ids=["nearest", "all"]
)


def assert_columns(columns, want):
    assert list(columns) == list(want)
    for name, values in want.items():
        np.testing.assert_array_equal(np.asarray(columns[name]), values, err_msg=name)


@CONTENTS
def test_columns_are_those_of_files(hits, want, query):
    columns = hits.to_dict()
    assert_columns(columns, want)
    assert {name: values.dtype for name, values in columns.items()} == QUERIES[query].columns.dtypes(3, None)
    assert not any(values.flags.writeable for values in columns.values())


@CONTENTS
def test_arrow_and_pandas(hits, want, query, tmp_path):
    pytest.importorskip("pandas")
    parquet = pytest.importorskip("pyarrow.parquet")
    frame, table = hits.to_pandas(), hits.to_arrow()
    assert_columns(frame, want)
    assert_columns(table.to_pandas(), want)
    rb.save(tmp_path / "hits.parquet", hits)
    assert table.equals(parquet.read_table(tmp_path / "hits.parquet"))
    assert [table[name].null_count for name in want] == [int(name in "xyz") for name in want]


@pytest.mark.parametrize("hits", [HITS, HITS[0], HITS[0, 0], ALL_HITS, ALL_HITS[:0], ALL_HITS.by_object()])
def test_a_stream_of_arrow_is_the_table_of_hits(hits):
    arrow = pytest.importorskip("pyarrow")
    table = hits.to_arrow()
    assert arrow.table(hits).equals(table)
    assert arrow.RecordBatchReader.from_stream(hits).read_all().equals(table)
    wanted = arrow.schema([field.with_type(arrow.float64()) for field in table.schema])
    found = arrow.RecordBatchReader.from_stream(hits, schema=wanted).read_all()
    assert found.equals(table.cast(wanted))


def test_numbers_of_rays_and_of_several_geometries():
    first = SCENE.first(RAYS, 2)
    assert first.to_dict()["ray"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert first[1].to_dict()["index"].tolist() == [1, -1, 1, -1]
    assert first[1].to_dict()["ray"].tolist() == [2, 2, 3, 3]
    assert rb.intersect(RAYS[..., None], BOXES).to_dict()["ray"].tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert ALL_HITS[1].to_dict()["ray"].tolist() == [0, 1]
    copies = rb.Instances(BOXES, [np.eye(4)])
    columns = rb.Scene([rb.Planes([1, 0, 0], 1), copies]).all(RAYS[0]).to_dict()
    assert list(columns)[:4] == ["ray", "index", "geometry", "primitive"]
    assert columns["geometry"].tolist() == [0, 1, 1, 0]
    assert columns["index"].tolist() == [0, 0, 0, 0]
    assert columns["primitive"].tolist() == [0, 0, 1, 0]


NONE_OR_ONE = [HITS[0, 0], HITS[:0], SCENE.all(RAYS[0, 0]), ALL_HITS[:0], ALL_HITS[[], :1]]


@pytest.mark.parametrize("hits", NONE_OR_ONE)
def test_tables_of_one_ray_or_none(hits):
    columns = hits.to_dict()
    assert len({len(values) for values in columns.values()}) == 1
    assert hits._repr_html_().count("<tr>") == 1 + len(columns["t"])


def test_html_shows_the_first_rows_and_counts_the_rest():
    html = HITS._repr_html_()
    assert "Hits(shape=(2, 2), 3 hit)" in html
    assert re.findall("<th>(.*?)</th>", html) == list(NEAREST)
    assert re.findall("<td>(.*?)</td>", html)[6:12] == ["1", "-1", "inf", "nan", "nan", "nan"]
    assert "more rows" not in html
    many = rb.Rays(np.zeros((50, 40, 3)), [1, 0, 0])
    for hits, more in ((SCENE.nearest(many), "1,992 more rows"), (SCENE.all(many), "3,992 more rows")):
        html = hits._repr_html_()
        assert html.count("<tr>") == 9
        assert more in html
        cells = re.findall("<td>(.*?)</td>", html)
        assert cells[:3] == ["0", "0", "2"]
    assert "<" not in re.sub("</?(div|p|table|tr|th|td)>", "", html)


@pytest.mark.parametrize(
    ("method", "needed", "extra"),
    [
        ("to_arrow", "to_arrow needs pyarrow", "arrow"),
        ("__arrow_c_stream__", "a stream of Arrow needs pyarrow", "arrow"),
        ("to_pandas", "to_pandas needs pandas", "pandas"),
    ],
)
def test_a_missing_package_is_named(method, needed, extra, monkeypatch):
    monkeypatch.setattr("raybox.hits.tables.find_spec", lambda name: None)
    for hits in (HITS, ALL_HITS):
        with pytest.raises(rb.RayboxError, match=rf"{needed}, .*pip install 'raybox\[{extra}\]'"):
            getattr(hits, method)()
