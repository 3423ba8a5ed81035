"""Files compressed by gzip are read as their content is; bombs, cut and damaged ones are refused."""

import gzip
import io
import tracemalloc
from functools import partial

import numpy as np
import pytest

import raybox as rb
from file_samples import samples
from raybox.io.formats import announced, contents, open_files, read
from refusals import refused

packed = partial(gzip.compress, mtime=0)  # names of tests are made of it: the same in each process
OBJ = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"


def test_compressed_ifc(put):
    pytest.importorskip("ifcopenshell")
    content, options = samples()["one.ifc"]
    assert len(rb.load(put("one.ifc.gz", packed(content)), **options)) == 12


def test_names_and_counts_are_those_of_the_content(put):
    path = put("house.obj.gz", packed(OBJ))
    assert rb.load(path).ids.tolist() == ["house"]
    assert (announced(path).rows, len(contents(path).geometry)) == (0, 1)
    assert "No such file" in refused(path.with_name("nowhere.obj.gz"))
    two = packed(OBJ[:20]) + packed(OBJ[20:])  # as of `cat a.gz b.gz`
    assert len(rb.load(put("two.obj.gz", two))) == 1
    assert len(rb.load(put("padded.obj.gz", packed(OBJ) + bytes(100)))) == 1


@pytest.mark.parametrize(
    ("name", "content", "expected"),
    [
        ("a.obj.gz", OBJ, "is not compressed by gzip; rename it to end in .obj"),
        ("a.obj", packed(OBJ), "is compressed by gzip, not Wavefront OBJ; decompress it (gunzip)"),
        ("a.obj.gz", packed(OBJ)[:-9], "the file ends too early"),
        ("a.obj.gz", packed(OBJ)[:5], "the file ends too early"),
        ("a.obj.gz", packed(OBJ)[:-8] + bytes(8), "its gzip data are damaged"),
        ("a.obj.gz", packed(OBJ) + b"tail", "its gzip data are damaged"),
        ("a.obj.gz", packed(OBJ)[:10] + b"\xff" * 20, "its gzip data are damaged"),
        ("a.obj.gz", b"", "is empty"),
        ("a.obj.gz", packed(b""), "is empty"),
        ("a.obj.gz", packed(b"<!DOCTYPE html><p>"), "is a web page, not Wavefront OBJ"),
        ("a.obj.gz", packed(packed(OBJ)), "is compressed by gzip, not Wavefront OBJ"),
        ("a.obj.gz", packed(OBJ + b"call b.obj\n"), "line 5: 'call b.obj' reads another file"),
        ("a.gz", packed(OBJ), "unsupported file extension '.gz'; decompress it (gunzip)"),
        ("a.tar.gz", packed(OBJ), "unsupported file extension '.gz'; extract it first"),
        ("a.gltf.gz", packed(b"{}"), "unsupported file extension '.gz'; decompress it (gunzip)"),
        ("a.fbx.gz", packed(OBJ), "export it as .glb from Blender"),
    ],
)  # fmt: skip
def test_errors_name_the_compressed_file(put, name, content, expected):
    assert expected in refused(put(name, content))


def test_a_bomb_is_refused_before_it_fills_memory_or_the_disk(put, tmp_path, monkeypatch):
    monkeypatch.setattr(open_files, "_SMALL", 1 << 22)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))
    (tmp_path / "temporary").mkdir()
    line, packed = b"v 0 0 0\n" * 4096, io.BytesIO()
    with gzip.GzipFile(fileobj=packed, mode="wb") as file:
        for _ in range(3000):
            file.write(line)
    assert len(packed.getvalue()) * open_files._GROWTH < 3000 * len(line)
    path, sizes = put("bomb.obj.gz", packed.getvalue()), []
    unpack = open_files._unpack

    def measured(path, copy):
        try:
            unpack(path, copy)
        finally:
            sizes.append(copy.tell())

    monkeypatch.setattr(open_files, "_unpack", measured)
    tracemalloc.start()
    text = refused(path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    most = max(open_files._SMALL, len(packed.getvalue()) * open_files._GROWTH)
    assert f"is larger than {most:,} bytes once decompressed, 200 times its size" in text
    assert sizes[0] <= most + (1 << 20)
    assert peak < 8e6
    assert not list((tmp_path / "temporary").iterdir())


def test_text_that_compresses_well_is_no_bomb(put):
    rows = b"0,0,0,1,1,1\n" * 300_000
    content = packed(b"min_x,min_y,min_z,max_x,max_y,max_z\n" + rows)
    assert len(content) * open_files._GROWTH < len(rows)
    assert len(rb.load(put("a.csv.gz", content))) == 300_000


def test_rays_are_cast_from_a_compressed_file(put, tmp_path):
    scene, rays = rb.Scene(rb.Boxes([1, -1, -1], [2, 1, 1])), rb.Rays([0, 0, 0], [[1, 0, 0], [0, 1, 0]])
    rb.save(tmp_path / "rays.csv", rays)
    path = put("rays.csv.gz", packed((tmp_path / "rays.csv").read_bytes()))
    rb.stream.cast(scene, path, tmp_path / "hits.npz", workers=1)
    assert np.load(tmp_path / "hits.npz")["t"].tolist() == [1, np.inf]
    assert read(path).geometry.equals(rays)
