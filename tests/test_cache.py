"""Compiled code on disk: several processes at once, other versions, damaged files, full disks."""

import pickle

import pytest

from raybox.kernels.cache import Shelf

ONE, OTHER = ("float64", "avx512"), ("float32", "avx512")


@pytest.fixture
def shelf(tmp_path):
    """Give what opens the files of a function as a process of its own would."""
    return lambda stamp="new", base="module.walk-12": Shelf(tmp_path, base, stamp)


def test_what_is_kept_is_given_back(shelf):
    shelf().save(ONE, {"code": b"1"})
    assert shelf().load(ONE) == {"code": b"1"}
    assert shelf().load(OTHER) is None
    assert shelf(base="module.walk-13").load(ONE) is None


def test_processes_that_save_at_once_keep_out_of_each_others_way(shelf, monkeypatch):
    """The second saves in the midst of the first one's saving, wherever that is."""
    dumped = pickle.dumps

    def dump(value):
        monkeypatch.setattr(pickle, "dumps", dumped)
        shelf().save(OTHER, "other")
        assert shelf().load(ONE) is None
        return dumped(value)

    monkeypatch.setattr(pickle, "dumps", dump)
    shelf().save(ONE, "one")
    assert (shelf().load(ONE), shelf().load(OTHER)) == ("one", "other")


def test_code_of_other_versions_is_not_given_and_is_replaced(shelf, tmp_path):
    shelf("old").save(ONE, "old")
    assert shelf().load(ONE) is None
    shelf().save(ONE, "new")
    assert (shelf().load(ONE), shelf("old").load(ONE)) == ("new", None)
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("size", [0, 10, -1])
def test_damaged_files_are_compiled_anew(shelf, tmp_path, size):
    shelf().save(ONE, list(range(100)))
    (path,) = tmp_path.iterdir()
    path.write_bytes(path.read_bytes()[:size])
    assert shelf().load(ONE) is None


def test_two_keys_of_one_name_are_told_apart(shelf, tmp_path):
    shelf().save(ONE, "one")
    (path,) = tmp_path.iterdir()
    path.rename(shelf()._path(OTHER))
    assert shelf().load(OTHER) is None


def test_what_cannot_be_written_is_left_out(shelf, tmp_path):
    shelf()._path(ONE).mkdir()
    shelf().save(ONE, "one")
    assert shelf().load(ONE) is None
    assert [path.name for path in tmp_path.iterdir()] == [shelf()._path(ONE).name]


def test_flush_forgets_a_function_and_no_other(shelf):
    for base in ("module.walk-12", "module.walk-1"):
        shelf(base=base).save(ONE, base)
    shelf(base="module.walk-1").flush()
    assert shelf(base="module.walk-1").load(ONE) is None
    assert shelf().load(ONE) == "module.walk-12"
