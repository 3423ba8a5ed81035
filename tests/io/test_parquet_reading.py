"""Rays in Parquet, however encoded: every bit is read, or the file is refused."""

import numpy as np
import pytest

from raybox.casting.readers import open_ray_file
from raybox.errors import FileFormatError
from raybox.io.formats import parquet as parquet_format
from raybox.io.formats.common import ReadOptions

pa = pytest.importorskip("pyarrow")
parquet = pytest.importorskip("pyarrow.parquet")

NAMES = [f"{vector}_{axis}" for vector in ("origin", "direction") for axis in "xyz"]
PLAIN = {"compression": "none", "use_dictionary": False}


def numbers(count: int) -> dict[str, np.ndarray]:
    """Return columns of any bits but for NaN's many, with zeros of both signs, denormals and infinities."""
    rng = np.random.default_rng(count)
    columns = {name: rng.integers(0, 2**64, count, np.uint64).view(np.float64) for name in NAMES}
    for column in columns.values():
        column[np.isnan(column)] = np.nan
        column[rng.integers(0, count, 5)] = [0.0, -0.0, np.inf, -np.inf, 5e-324]
    return columns


def table(columns, nullable=True):
    fields = [pa.field(name, pa.float64(), nullable) for name in columns]
    return pa.table(list(columns.values()), schema=pa.schema(fields))


def read_from(path, row=0, offset=0):
    """Return the columns of a file from a row group on, and the row of each block."""
    read: list = [[] for _ in NAMES]
    starts = []
    for block in open_ray_file(path, ReadOptions("rays")).blocks(row, offset, ()):
        starts.append(block.row)
        for column, values in zip(read, [block.columns[name] for name in NAMES], strict=True):
            assert len(values) == block.rows
            column.append(np.array(values))
    return [np.concatenate(column) for column in read], starts


WAYS = {
    "plain": {},
    "version 2": {"data_page_version": "2.0"},
    "small pages": {"data_page_size": 1000, "write_batch_size": 10},
    "small pages, version 2": {"data_page_size": 1000, "write_batch_size": 10, "data_page_version": "2.0"},
    "several groups": {"row_group_size": 7001},
    "no statistics": {"write_statistics": False},
    "checksums": {"write_page_checksum": True},
    "indexed": {"write_page_index": True},
    "compressed": {"compression": "snappy"},
    "dictionary": {"use_dictionary": True},
    "byte stream split": {"use_byte_stream_split": True},
}


@pytest.mark.core
@pytest.mark.parametrize("nullable", [True, False])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("batch", [999, 1 << 17])
def test_numbers_are_read_bit_for_bit(tmp_path, monkeypatch, way, nullable, batch):
    monkeypatch.setattr(parquet_format, "BATCH_ROWS", batch)
    path, columns = tmp_path / "rays.parquet", numbers(30_011)
    parquet.write_table(table(columns, nullable), path, **PLAIN | WAYS[way])
    found, starts = read_from(path)
    for name, values in zip(NAMES, found, strict=True):
        np.testing.assert_array_equal(values.view(np.uint64), columns[name].view(np.uint64))
    assert len(starts) >= 30_011 // batch


def test_other_types_columns_and_empty_groups(tmp_path):
    path, columns = tmp_path / "rays.parquet", {name: np.arange(500) + 0.5 for name in NAMES}
    rows = table(columns).set_column(2, NAMES[2], pa.array(columns[NAMES[2]].astype(np.float32)))
    rows = rows.append_column("other", pa.array(["text"] * 500))
    with parquet.ParquetWriter(path, rows.schema) as writer:
        writer.write_table(rows.slice(0, 0))
        writer.write_table(rows)
    for values in read_from(path)[0]:
        assert values.tolist() == columns[NAMES[0]].tolist()


@pytest.mark.parametrize("keep", [4, 20, 60, 70, 300])
def test_a_file_that_becomes_shorter_is_refused(tmp_path, keep):
    path = tmp_path / "rays.parquet"
    parquet.write_table(table(numbers(40)), path, **PLAIN)
    source = open_ray_file(path, ReadOptions("rays"))
    with path.open("r+b") as file:
        file.truncate(parquet.read_metadata(path).row_group(0).column(0).data_page_offset + keep)
    with pytest.raises(FileFormatError, match=r"row group 0: cannot be read|cannot be read"):
        list(source.blocks(0, 0, ()))
