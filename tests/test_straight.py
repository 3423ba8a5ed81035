"""Columns read straight from a file's pages: what Arrow reads of it, bit for bit, or left to Arrow."""

import os
from contextlib import suppress

import numpy as np
import pytest

from raybox.errors import FileFormatError
from raybox.files.common import Want
from raybox.stream import straight, tables
from raybox.stream.chunks import Place, Rooms, read

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

NAMES = [f"{vector}_{axis}" for vector in ("origin", "direction") for axis in "xyz"]
PLAIN = {"compression": "none", "use_dictionary": False}


def numbers(count: int) -> dict[str, np.ndarray]:
    """Give columns of any bits but for NaN's many, with zeros of both signs, denormals and infinities."""
    rng = np.random.default_rng(count)
    columns = {name: rng.integers(0, 2**64, count, np.uint64).view(np.float64) for name in NAMES}
    for column in columns.values():
        column[np.isnan(column)] = np.nan
        column[rng.integers(0, count, 5)] = [0.0, -0.0, np.inf, -np.inf, 5e-324]
    return columns


def table(columns, nullable=True):
    fields = [pa.field(name, pa.float64(), nullable) for name in columns]
    return pa.table(list(columns.values()), schema=pa.schema(fields))


def found_in(path, group=0):
    """Look for the columns of a row group."""
    with path.open("rb", buffering=0) as file:
        return straight.columns(file, parquet.read_metadata(path), group, NAMES)


def read_from(path, size=1000):
    """Read every row group straight, or say which is for Arrow."""
    groups = parquet.read_metadata(path).num_row_groups
    read: list = [[] for _ in NAMES]
    with path.open("rb", buffering=0) as file:
        for group in range(groups):
            for some in straight.batches(file, found_in(path, group), 0, size, path):
                assert 0 < len(some[0]) <= size
                for column, values in zip(read, some, strict=True):
                    column.append(values.copy())
    return [np.concatenate(column) for column in read]


WAYS = {
    "pages of 20,000": {},
    "version 2": {"data_page_version": "2.0"},
    "small pages": {"data_page_size": 1000, "write_batch_size": 10},
    "small pages, version 2": {"data_page_size": 1000, "write_batch_size": 10, "data_page_version": "2.0"},
    "several groups": {"row_group_size": 7001},
    "no statistics": {"write_statistics": False},
    "checksums": {"write_page_checksum": True},
    "indexed": {"write_page_index": True},
}


@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("way", WAYS)
def test_plain_numbers_are_read_bit_for_bit(tmp_path, way, nullable):
    path, columns = tmp_path / "rays.parquet", numbers(30_011)
    parquet.write_table(table(columns, nullable), path, **PLAIN, **WAYS[way])
    assert len(found_in(path)[0].rows) > (2 if "small" in way else 1)
    for size in (1 << 15, 999):
        for name, values in zip(NAMES, read_from(path, size), strict=True):
            np.testing.assert_array_equal(values.view(np.uint64), columns[name].view(np.uint64))


@pytest.mark.parametrize("count", [1, 7, 8, 9, 63, 64, 65])
def test_few_rows_are_read_or_left_to_arrow(tmp_path, count):
    """Fewer than eight numbers that are there may be told one by one."""
    path, columns = tmp_path / "rays.parquet", {name: np.arange(count) + 0.5 for name in NAMES}
    for nullable in (True, False):
        parquet.write_table(table(columns, nullable), path, **PLAIN)
        assert found_in(path) or (nullable and count < 8)
        if found_in(path):
            assert read_from(path)[0].tolist() == columns[NAMES[0]].tolist()


def wrong(columns):
    """Give what is for Arrow: why, a table, how it is written."""
    missing = table(columns).set_column(0, NAMES[0], pa.array([None, *columns[NAMES[0]][1:]], pa.float64()))
    rounded = table(columns).set_column(2, NAMES[2], pa.array(columns[NAMES[2]].astype(np.float32)))
    listed = table(columns).set_column(1, NAMES[1], pa.array([[x] for x in columns[NAMES[1]]]))
    yield "compressed", table(columns), PLAIN | {"compression": "snappy"}
    yield "dictionary", table(columns), PLAIN | {"use_dictionary": True}
    yield "split", table(columns), PLAIN | {"use_byte_stream_split": True}
    yield "missing", missing, PLAIN
    yield "missing, version 2", missing, PLAIN | {"data_page_version": "2.0"}
    yield "float32", rounded, PLAIN
    yield "lists", listed, PLAIN
    yield "no column", table(columns).drop_columns([NAMES[3]]), PLAIN
    yield "no rows", table(columns).slice(0, 0), PLAIN


def test_everything_else_is_left_to_arrow(tmp_path):
    path = tmp_path / "rays.parquet"
    with np.errstate(all="ignore"):
        for why, rows, how in wrong(numbers(500)):
            parquet.write_table(rows, path, **how)
            if why == "no rows":
                with parquet.ParquetWriter(path, rows.schema, **how) as writer:
                    writer.write_table(rows)
                    writer.write_table(table(numbers(500)))
            assert found_in(path) is None, why


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_heads_in_which_any_bit_is_wrong(tmp_path, version):
    """Refused, or harmless: Arrow then reads what was there, too, if anything."""
    path, columns = tmp_path / "rays.parquet", {name: np.arange(40) + 0.5 for name in NAMES}
    parquet.write_table(table(columns), path, **PLAIN, data_page_version=version)
    good, sound = found_in(path), path.read_bytes()
    start = parquet.read_metadata(path).row_group(0).column(0).data_page_offset
    refused = harmless = 0
    for bit in range(8 * (good[0].places[0] - start)):
        damaged = bytearray(sound)
        damaged[start + bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        found = found_in(path)
        refused, harmless = refused + (found is None), harmless + (found == good)
        if found is not None:
            assert found == good
            with suppress(OSError):  # Arrow is stricter with statistics
                read = parquet.read_table(path, columns=NAMES[:1]).column(0)
                assert read.to_pylist() == columns[NAMES[0]].tolist()
    assert refused > 100
    assert harmless > 100  # of statistics


@pytest.mark.parametrize("version", ["1.0", "2.0"])
def test_a_wrong_bit_in_a_head_like_the_one_before(tmp_path, version):
    """Every head is looked at, though most begin with what the one before begins with."""
    path, columns = tmp_path / "rays.parquet", {name: np.arange(120) + 0.5 for name in NAMES}
    small = PLAIN | {"write_statistics": False, "data_page_size": 320, "write_batch_size": 40}
    parquet.write_table(table(columns), path, **small, data_page_version=version)
    good, sound = found_in(path), path.read_bytes()
    assert good[0].rows == [0, 40, 80, 120]
    first, second, third = good[0].places
    heads = [sound[end + 8 * 40 : begin] for end, begin in ((first, second), (second, third))]
    assert heads[0] == heads[1]
    refused = 0
    for bit in range(8 * len(heads[0])):
        damaged = bytearray(sound)
        damaged[first + 8 * 40 + bit // 8] ^= 1 << bit % 8
        path.write_bytes(damaged)
        found = found_in(path)
        assert found in (None, good)
        refused += found is None
        if found is not None:
            with suppress(OSError):
                read = parquet.read_table(path, columns=NAMES[:1]).column(0)
                assert read.to_pylist() == columns[NAMES[0]].tolist()
    assert refused > 100


@pytest.mark.parametrize("size", [39, 40, 41, 119, 120, 121])
def test_batches_end_with_pages_that_fit(tmp_path, size):
    path, columns = tmp_path / "rays.parquet", {name: np.arange(300) + 0.5 for name in NAMES}
    parquet.write_table(table(columns), path, **PLAIN, data_page_size=320, write_batch_size=40)
    ends, first = [], 0
    while first < 300:  # from the definition: one row more after the other
        whole = [row for row in range(first + 1, min(first + size, 300) + 1) if row % 40 == 0 or row == 300]
        first = max(whole, default=min(first + size, 300))
        ends.append(first)
    with path.open("rb", buffering=0) as file:
        found = found_in(path)
        assert found[0].rows == [*range(0, 300, 40), 300]
        batches = [some[0].copy() for some in straight.batches(file, found, 0, size, path)]
    assert np.cumsum([len(batch) for batch in batches]).tolist() == ends
    assert np.concatenate(batches).tolist() == columns[NAMES[0]].tolist()


@pytest.mark.parametrize("keep", [4, 20, 60, 70, 300])
def test_a_head_that_is_cut_off_is_refused(tmp_path, keep):
    path = tmp_path / "rays.parquet"
    parquet.write_table(table(numbers(40)), path, **PLAIN)
    metadata = parquet.read_metadata(path)
    with path.open("r+b") as file:
        file.truncate(metadata.row_group(0).column(0).data_page_offset + keep)
        file.seek(0)
        assert straight.columns(file, metadata, 0, NAMES) is None


def test_a_file_that_becomes_shorter_is_refused(tmp_path):
    path = tmp_path / "rays.parquet"
    parquet.write_table(table(numbers(5000)), path, **PLAIN)
    with path.open("r+b", buffering=0) as file:
        found = straight.columns(file, parquet.read_metadata(path), 0, NAMES)
        file.truncate(found[-1].places[-1] + 8 * 3000)
        some = straight.batches(file, found, 0, 1000, path)
        assert [len(next(some)[0]) for _ in range(3)] == [1000] * 3
        with pytest.raises(FileFormatError, match="has become shorter while it was read"):
            next(some)


def test_chunks_are_the_same_either_way(tmp_path, monkeypatch):
    """Row groups straight, by Arrow, and in turns: numbers, and the sum that a resumed cast compares."""
    path, columns = tmp_path / "rays.parquet", {name: np.random.default_rng(1).random(9000) for name in NAMES}
    parquet.write_table(table(columns), path, **PLAIN, row_group_size=3500)
    real, read_as = straight.columns, {}
    for by_arrow in ({0, 1, 2}, {1}, set()):
        asked = []

        def columns_of(file, metadata, group, names, by_arrow=by_arrow, asked=asked):
            asked.append(group)
            return None if group in by_arrow else real(file, metadata, group, names)

        monkeypatch.setattr(straight, "columns", columns_of)
        read_as[len(by_arrow)] = list(read(tables.parquet(path, Want("rays")), 1000, Place(), Rooms()))
        assert asked == [0, 1, 2]
    for chunks in read_as.values():
        assert [chunk.after for chunk in chunks] == [chunk.after for chunk in read_as[3]]
        for axis, name in enumerate(NAMES[:3]):
            found = np.concatenate([chunk.rays.origins[:, axis] for chunk in chunks])
            np.testing.assert_array_equal(found, columns[name])
        place = chunks[4].after
        for begun in (place, place._replace(row=place.first)):
            again = next(read(tables.parquet(path, Want("rays")), 1000, begun, Rooms()))
            np.testing.assert_array_equal(again.rays.directions, read_as[3][5].rays.directions)


def test_columns_are_asked_for_ahead_and_no_others(tmp_path, monkeypatch):
    if not hasattr(os, "posix_fadvise"):
        pytest.skip("this system reads nothing ahead")
    path, columns = tmp_path / "rays.parquet", {name: np.random.default_rng(2).random(3000) for name in NAMES}
    more = table(columns | {"other": columns[NAMES[0]]})
    parquet.write_table(more, path, **PLAIN | {"use_dictionary": [NAMES[5]]}, row_group_size=1000)
    asked = []
    monkeypatch.setattr(os, "posix_fadvise", lambda _, start, size, __: asked.append((start, size)))
    assert len(list(read(tables.parquet(path, Want("rays")), 3000, Place(), Rooms()))) == 1
    metadata = parquet.read_metadata(path)
    every = [metadata.row_group(group).column(k) for group in range(3) for k in range(7)]
    places = [(c.dictionary_page_offset or c.data_page_offset, c.total_compressed_size) for c in every]
    assert asked == [place for place, c in zip(places, every, strict=True) if c.path_in_schema != "other"]
