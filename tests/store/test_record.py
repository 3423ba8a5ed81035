"""Records: what was written comes back, and every damage is an error."""

import io
import json
import random
from pathlib import Path

import pytest

from raybox.errors import FileFormatError
from raybox.store import checksum, record
from raybox.store.record import BrokenRecord, RecordKind

pytestmark = pytest.mark.core

VALUE = {"names": ["a", "ü", "\u2028"], "number": 2.5, "nothing": None, "large": 1 << 80}
KIND = RecordKind("test thing", 3, dict, "make the test again")
DATA = bytes(range(256)) * 40


def problem(data, kind=KIND):
    with pytest.raises(BrokenRecord) as caught:
        record.decode(kind, data)
    return str(caught.value)


def test_a_value_comes_back():
    data = record.encode(KIND, VALUE)
    assert record.decode(KIND, data) == (VALUE, checksum.of_bytes(data))
    assert json.loads(data)["value"] == VALUE
    assert data.count(b"\n") == 1


def test_another_kind_version_or_value():
    data = record.encode(KIND, VALUE)
    wrong = RecordKind("test thing", 3, lambda value: value["x"])
    assert problem(data, RecordKind("other", 3, dict)) == "is the record of a test thing, not of a other"
    assert problem(data, RecordKind("test thing", 4, dict)) == "was written by another version of raybox"
    assert problem(data, wrong) == "is no test thing of raybox"


def test_every_damage_of_a_record_is_found():
    data = record.encode(KIND, VALUE)
    for place in range(len(data)):
        for changed in (data[:place], data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]):
            assert "raybox" in problem(changed) or "checksum differs" in problem(changed)
    assert problem(data + b"\n") == problem(b"") == "is damaged, or is no record of raybox"


def test_what_json_cannot_read_is_damage():
    """With a fitting checksum."""
    for text in (b"{", b"[" * 100_000, b"1" * 10_000, b"\xff"):
        found = record._checksum(b"test thing", b"3", text).encode()
        head = b'{"raybox": "test thing", "version": 3, "checksum": "%s", "value": ' % found
        assert problem(head + text + b"}\n") == "is no test thing of raybox"


def test_a_file_that_is_no_record(tmp_path):
    path = tmp_path / "thing.json"
    path.write_bytes(record.encode(KIND, VALUE))
    with path.open("rb") as file:
        assert record.read(KIND, path, file).value == VALUE
    path.write_bytes(b"other")
    with pytest.raises(FileFormatError) as caught, path.open("rb") as file:
        record.read(KIND, path, file)
    assert str(caught.value) == f"{path}: is damaged, or is no record of raybox; make the test again"


def with_trailer(data=DATA, value=VALUE):
    file = io.BytesIO()
    file.write(data)
    record.append_trailer(KIND, value, file, checksum.of_bytes(data))
    return file.getvalue()


@pytest.mark.parametrize("data", [b"", DATA])
def test_a_trailer_comes_back(data):
    file = io.BytesIO(with_trailer(data))
    for check in (False, True):
        found = record.read_trailer(KIND, file, check=check)
        assert found == (VALUE, len(data), checksum.of_bytes(data))
        assert file.tell() == 0
    assert file.read(len(data)) == data


def test_every_damage_of_a_file_with_a_trailer_is_found():
    whole, generator = with_trailer(), random.Random(1)
    short = len(whole) - len(DATA)
    places = [*range(len(DATA), len(whole)), *(generator.randrange(len(DATA)) for _ in range(200))]
    assert short < 400
    for place in places:
        damaged = whole[:place] + bytes([whole[place] ^ 1 << generator.randrange(8)]) + whole[place + 1 :]
        for data in (damaged, whole[:place], whole[:place] + whole[place + 1 :], whole + whole[place:]):
            with pytest.raises(BrokenRecord):
                record.read_trailer(KIND, io.BytesIO(data), check=True)


def test_without_a_check_the_length_is_compared():
    for data in (b"x" + with_trailer(), with_trailer()[1:]):
        with pytest.raises(BrokenRecord, match="bytes in place of 10,240"):
            record.read_trailer(KIND, io.BytesIO(data), check=False)


def test_a_length_out_of_bounds_reads_nothing(tmp_path):
    class Bounded(io.BytesIO):
        def read(self, size=-1):
            assert 0 <= size <= 16
            return super().read(size)

    for tail in (b"ffffffff raybox\n", b"00000050 raybox\n", b""):
        with pytest.raises(BrokenRecord, match="no trailer: it was cut"):
            record.read_trailer(KIND, Bounded(b"x" * 40 + tail), check=True)


def test_a_record_that_is_too_long_is_damage(tmp_path, monkeypatch):
    monkeypatch.setattr(record, "_MAX_BYTES", 100)
    assert len(record.encode(KIND, VALUE)) > 100
    with pytest.raises(FileFormatError, match="is damaged"):
        record.read(KIND, Path("thing"), io.BytesIO(record.encode(KIND, VALUE)))
    with pytest.raises(BrokenRecord, match="no trailer"):
        record.read_trailer(KIND, io.BytesIO(with_trailer()), check=True)
