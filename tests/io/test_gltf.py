"""glTF as JSON: its buffers are in files of its folder, and nothing outside of it is read."""

import io
import json
import os
import struct

import numpy as np
import pytest

import raybox as rb
from file_samples import CASES
from raybox.io.formats import announced
from refusals import refused

CORNERS = [[0, 0, 0], [1, 0, 0], [0, 1, 0]]


def separate(tmp_path, uri="tri.bin", **more):
    """Write one triangle as JSON next to its buffer; return the path."""
    document = json.loads((CASES / "sep_gltf" / "tri.gltf").read_text())
    document["buffers"][0] |= {"uri": uri} | more
    path = tmp_path / "in" / "one.gltf"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document))
    return path


BUFFER = (CASES / "sep_gltf" / "tri.bin").read_bytes()


NAMES = {"tri.bin": "tri.bin", "a%20b.bin": "a b.bin", "s%C3%BCd.bin": "süd.bin", "./tri.bin": "tri.bin"}
NAMES |= {"deep/er/a.bin": "deep/er/a.bin", "tri.bin?x=1": "tri.bin?x=1"}


@pytest.mark.parametrize(("uri", "name"), NAMES.items())
def test_a_buffer_in_the_folder_is_read(tmp_path, uri, name, monkeypatch):
    path = separate(tmp_path, uri)
    (path.parent / name).parent.mkdir(parents=True, exist_ok=True)
    (path.parent / name).write_bytes(BUFFER)
    assert rb.load(path).triangles.tolist() == [CORNERS]
    monkeypatch.chdir(path.parent)
    assert rb.load("one.gltf").ids.tolist() == ["node 0"]
    assert announced(path).rows == 1


NAMED = r"""../tri.bin in/../../tri.bin %2e%2e/tri.bin ..%2Ftri.bin ..\tri.bin /etc/passwd {}/tri.bin
file:///etc/passwd file:tri.bin http://example.org/tri.bin //host/tri.bin C:tri.bin a%00b . / deep/
deep/../inside.bin link.bin linked/tri.bin loop pipe missing.bin"""
OUTSIDE = [*NAMED.split(), "", "x" * 5000, "\ud800.bin"]


@pytest.mark.parametrize("uri", OUTSIDE)
def test_nothing_outside_of_the_folder_is_read(tmp_path, uri):
    (tmp_path / "tri.bin").write_bytes(BUFFER)
    path = separate(tmp_path, uri.format(tmp_path))
    folder = path.parent
    (folder / "deep").mkdir()
    (folder / "inside.bin").write_bytes(BUFFER)
    for name, target in (("link.bin", tmp_path / "tri.bin"), ("linked", tmp_path), ("loop", folder / "loop")):
        (folder / name).symlink_to(target)
    os.mkfifo(folder / "pipe")
    assert "which is no file in its folder; put that file next to it" in refused(path)


def test_links_inside_of_the_folder_and_to_the_file_are_followed(tmp_path):
    path = separate(tmp_path, "link.bin")
    (path.parent / "real.bin").write_bytes(BUFFER)
    (path.parent / "link.bin").symlink_to("real.bin")
    (tmp_path / "folder").symlink_to(path.parent)
    assert len(rb.load(path)) == len(rb.load(tmp_path / "folder" / "one.gltf")) == 1


def test_buffers_that_are_too_short_or_long(tmp_path):
    path = separate(tmp_path)
    (path.parent / "tri.bin").write_bytes(BUFFER[:40])
    assert "buffer 0: announces 44 bytes, 40 are there" in refused(path)
    (path.parent / "tri.bin").write_bytes(BUFFER + b"more")
    assert len(rb.load(path)) == 1
    path = separate(tmp_path, byteLength=10**12)
    assert "buffer 0: announces 1000000000000 bytes, 48 are there" in refused(path)


def test_a_base_of_zeros_may_be_as_long_as_the_buffers_of_its_folder(tmp_path):
    binary, count = struct.pack("<3H2x", 0, 1, 2) + np.array(CORNERS, "<f4").tobytes(), 3000
    views = [{"buffer": 0, "byteLength": 6}, {"buffer": 0, "byteOffset": 8, "byteLength": 36}]
    sparse = {"count": 3, "indices": {"bufferView": 0, "componentType": 5123}, "values": {"bufferView": 1}}
    (tmp_path / "a.bin").write_bytes(binary + bytes(12 * count))
    document = {
        "asset": {"version": "2.0"},
        "nodes": [{"mesh": 0}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "accessors": [{"componentType": 5126, "count": count, "type": "VEC3", "sparse": sparse}],
        "bufferViews": views,
        "buffers": [{"byteLength": len(binary), "uri": "a.bin"}],
    }
    (tmp_path / "a.gltf").write_text(json.dumps(document))
    assert rb.load(tmp_path / "a.gltf").triangles[0].tolist() == CORNERS


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_gltf_in_other_encodings_and_from_open_files(tmp_path, encoding):
    text = (CASES / "sep_gltf" / "embed.gltf").read_text()
    (tmp_path / "a.gltf").write_bytes(text.encode(encoding) + (b"\0" if encoding == "utf-8" else b""))
    assert len(rb.load(tmp_path / "a.gltf")) == 1
    assert len(rb.load(io.BytesIO(text.encode(encoding)), format="gltf")) == 1
    with pytest.raises(rb.FileFormatError, match=r"^file, buffer 0: refers to 'tri.bin', which is no file"):
        rb.load(io.BytesIO((CASES / "sep_gltf" / "tri.gltf").read_bytes()), format="gltf")


VERSIONS = {  # what the file states as its asset, and the version that is refused
    '"version": "2.1"': None,
    '"version": "2.1", "minVersion": "2.0"': None,
    '"version": "2.0", "new": [1]': None,
    '"version": "1.0"': "1.0",
    '"version": "3.0"': "3.0",
    '"version": "2.1", "minVersion": "2.1"': "2.1",
}


@pytest.mark.parametrize("asset", VERSIONS)
def test_versions(put, asset):
    """A later version that needs no more than 2.0 is read, with what it adds."""
    text = (CASES / "sep_gltf" / "embed.gltf").read_text()
    assert '"version": "2.0"' in text
    path, found = put("a.gltf", text.replace('"version": "2.0"', asset)), VERSIONS[asset]
    if found is None:
        assert len(rb.load(path)) == 1
    else:
        assert f": is glTF '{found}', raybox reads 2.0; export" in refused(path)


def test_json_that_is_no_gltf_is_no_empty_mesh(put):
    text = refused(put("a.gltf", '{"type": "CityJSON", "vertices": []}'))
    assert "has no asset, as every glTF; rename CityJSON to end in" in text
