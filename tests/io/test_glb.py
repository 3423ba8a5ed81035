"""GLB files through the trimesh that is installed: nothing outside of the file is read.

Run with the lowest and the newest trimesh (`.ci/legs`), so that it needs nothing else.
"""

import base64
import json
import struct

import numpy as np
import pytest

import raybox as rb
from raybox.viewer.open_file import stage_of_bytes

trimesh = pytest.importorskip("trimesh")
CORNERS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], "<f4")
BINARY = CORNERS.tobytes() + np.array([0, 1, 2, 0], "<u2").tobytes()
DATA = "data:application/octet-stream;base64,"


def glb(buffer=None, image=None, binary=BINARY) -> bytes:
    """Return a triangle moved by 10 along x; buffer, image: URIs."""
    content = {
        "asset": {"version": "2.0"},
        "scene": 0,
        "scenes": [{"nodes": [0]}],
        "nodes": [{"mesh": 0, "name": "moved", "translation": [10, 0, 0]}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}, "indices": 1}]}],
        "accessors": [
            {"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"},
            {"bufferView": 1, "componentType": 5123, "count": 3, "type": "SCALAR"},
        ],
        "bufferViews": [
            {"buffer": 0, "byteOffset": 0, "byteLength": 36},
            {"buffer": 0, "byteOffset": 36, "byteLength": 6},
        ],
        "buffers": [{"byteLength": len(BINARY)} | ({} if buffer is None else {"uri": buffer})],
    }
    content["accessors"][0] |= {"min": [0, 0, 0], "max": [1, 1, 0]}
    if image is not None:
        content["images"] = [{"uri": image}]
    text = json.dumps(content).encode()
    text += b" " * (-len(text) % 4)
    chunks = struct.pack("<II", len(text), 0x4E4F534A) + text
    if binary is not None:
        chunks += struct.pack("<II", len(binary), 0x004E4942) + binary
    return b"glTF" + struct.pack("<II", 2, 12 + len(chunks)) + chunks


def load(tmp_path, content):
    path = tmp_path / "one.glb"
    path.write_bytes(content)
    return rb.load(path)


@pytest.mark.parametrize(
    "content",
    [
        glb(),
        glb(DATA + base64.b64encode(BINARY).decode(), binary=None),
        glb(image="data:image/png;base64,AA=="),
    ],
    ids=["binary", "data", "image"],
)
def test_content_inside_of_the_file_is_read(tmp_path, content):
    mesh = load(tmp_path, content)
    np.testing.assert_array_equal(mesh.corners(), [CORNERS + np.array([10, 0, 0])])
    assert mesh.ids.tolist() == ["moved"]


URIS = [
    "secret.bin",
    "./secret.bin",
    "secret.bin?base64,",
    "",
    "%2e/secret.bin",
    "DATA:x",
    "file:///etc/passwd",
]


@pytest.mark.parametrize("uri", [*URIS, "https://example.org/a.bin", "\x1b[31msecret.bin"])
@pytest.mark.parametrize("kind", ["buffer", "image"])
def test_nothing_outside_of_the_file_is_read(tmp_path, uri, kind, monkeypatch):
    (tmp_path / "secret.bin").write_bytes(BINARY)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(trimesh, "load_scene", lambda *_, **__: pytest.fail("trimesh reads it"))
    content = glb(**{kind: uri})
    shown = repr(uri).replace("[", r"\[").replace("?", r"\?").replace("\\x", r"\\x")
    words = rf"one\.glb, {kind} 0: refers to another file, {shown}, which raybox does not read; export it as"
    with pytest.raises(rb.FileFormatError, match=words):
        load(tmp_path, content)
    with pytest.raises(rb.FileFormatError, match=rf"^up\.glb, {kind} 0: refers to another file"):
        stage_of_bytes("up.glb", content)


@pytest.mark.parametrize("uri", ["data:secret.bin", "data:,../secret.bin", "data:/etc/passwd"])
def test_trimesh_gets_no_folder(tmp_path, uri, monkeypatch):
    (tmp_path / "data:secret.bin").write_bytes(BINARY)
    monkeypatch.chdir(tmp_path)
    with pytest.raises(rb.FileFormatError, match=r"one\.glb: is not readable as binary glTF"):
        load(tmp_path, glb(uri, binary=None))
