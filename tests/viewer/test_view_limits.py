"""Limits on scenes of the viewer are checked by headers, before anything is unpacked."""

import contextlib
import io
import json
import struct
import tracemalloc
import zipfile

import numpy as np
import pytest

import raybox as rb
from file_samples import samples, vox, vox_chunk
from raybox.io.formats import announced
from raybox.viewer import stage as stages

COUNTED = [
    name for name in samples() if not name.endswith((".ifc", ".json", ".jsonl")) and "mixed" not in name
]


def zeros_npz(rows):
    """Return an archive of so many boxes of zeros, compressed to a thousandth of their size."""
    header = io.BytesIO()
    np.lib.format.write_array_header_1_0(header, {"descr": "<f8", "fortran_order": False, "shape": (rows, 3)})
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name in ("lower.npy", "upper.npy"):
            with archive.open(name, "w") as file:
                file.write(header.getvalue())
                block = bytes(24 * 10**5)
                for _ in range(rows // 10**5):
                    file.write(block)
    return out.getvalue()


def peak_of(name, content, text):
    """Return the peak memory while a file is refused."""
    tracemalloc.start()
    try:
        with pytest.raises(rb.RayboxError, match=text):
            stages.stage_of_bytes(name, content)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_many_boxes_in_a_small_archive_are_refused_before_they_are_unpacked():
    content = zeros_npz(6_000_000)
    assert len(content) < 2 * 10**6
    assert peak_of("a.npz", content, "a.npz: 6,000,000 rows exceed the limit of 5,000,000") < 10**7


def test_bytes_of_an_archive_count_too(monkeypatch):
    """Long ids make few rows large."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        ids = np.zeros(10, "U1000000")
        for name, array in (("lower", np.zeros((10, 3))), ("upper", np.zeros((10, 3))), ("id", ids)):
            with archive.open(f"{name}.npy", "w") as file:
                np.save(file, array)
    monkeypatch.setattr(stages, "MAX_UNPACKED", 10**7)
    text = "a.npz: 38 MiB once unpacked exceed the limit of"
    assert peak_of("a.npz", out.getvalue(), text) < 10**7


@pytest.mark.parametrize("name", COUNTED)
def test_each_format_announces_its_rows(tmp_path, name):
    content, how = samples()[name]
    (tmp_path / name).write_bytes(content)
    assert announced(tmp_path / name).rows == len(rb.load(tmp_path / name, **how))


@pytest.mark.parametrize("name", COUNTED)
def test_a_file_of_too_many_rows_is_not_read(tmp_path, name, monkeypatch):
    (tmp_path / name).write_bytes(samples()[name][0])
    monkeypatch.setattr(stages, "MAX_ROWS", 1)
    monkeypatch.setattr(stages, "read", lambda *_, **__: pytest.fail("the file is read"))
    with pytest.raises(rb.RayboxError, match="rows exceed the limit of 1 for a page"):
        stages.make_stage(tmp_path / name)


@pytest.mark.parametrize("name", COUNTED)
def test_damaged_headers_are_refused_as_the_file_is_or_announce_no_less(tmp_path, name):
    content, how = samples()[name]
    for size in (0, 1, 7, 20, 60, len(content) // 2):
        for tail in (b"", b"\xff" * 40):
            (tmp_path / name).write_bytes(content[:size] + tail)
            with contextlib.suppress(rb.FileFormatError):
                rows = announced(tmp_path / name).rows
                assert rows >= len(rb.load(tmp_path / name, **how))


def test_shapes_that_show_one_voxel_model_many_times(tmp_path):
    """Groups of ten, three deep, are 1000 places of a model of two voxels."""
    shape = vox_chunk(b"nSHP", struct.pack("<iiiii", 3, 0, 1, 0, 0))
    groups = [vox_chunk(b"nGRP", struct.pack("<iii10i", name, 0, 10, *[name + 1] * 10)) for name in range(3)]
    (tmp_path / "a.vox").write_bytes(vox([(0, 0, 0), (3, 4, 5)], scene=b"".join(groups) + shape))
    assert announced(tmp_path / "a.vox").rows == 2000


def test_nodes_that_show_one_mesh_many_times(tmp_path):
    document = {
        "accessors": [{"count": 4}, {"count": 12}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
        "nodes": [{"mesh": 0}] * 1000,
    }
    text = json.dumps(document).encode()
    (tmp_path / "a.glb").write_bytes(
        b"glTF" + struct.pack("<4I", 2, 20 + len(text), len(text), 0x4E4F534A) + text
    )
    assert announced(tmp_path / "a.glb").rows == 4000
