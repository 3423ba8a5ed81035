"""A page without a browser: a socket to the server of a viewer, whose frames are decoded."""

import json
import struct
from typing import Any, NamedTuple

import numpy as np
from websockets.sync.client import connect

from waiting import SECONDS


class Frame(NamedTuple):
    """A frame of the server: its kind, its header and its arrays."""

    kind: str
    header: dict[str, Any]
    arrays: dict[str, np.ndarray]


def decoded(content: bytes) -> Frame:
    """Return a frame; check that arrays lie at multiples of 8, end to end, and fill it."""
    (size,) = struct.unpack_from("<I", content)
    assert (4 + size) % 8 == 0
    header = json.loads(content[4 : 4 + size])
    arrays, end = {}, 4 + size
    for name, dtype, shape, offset in header.pop("arrays"):
        assert 4 + size + offset == end, "arrays follow each other"
        values = np.frombuffer(content, f"<{dtype}", int(np.prod(shape)), 4 + size + offset)
        arrays[name], end = values.reshape(shape), end + values.nbytes + -values.nbytes % 8
    assert end == len(content)
    return Frame(header.pop("kind"), header, arrays)


def handshake(host: str, *more: str) -> bytes:
    """Return a request to open a socket, as a page that was requested under a name sends it."""
    lines = ["GET /socket HTTP/1.1", f"Host: {host}", "Upgrade: websocket", "Connection: Upgrade"]
    lines += ["Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg==", *more, "", ""]
    return "\r\n".join(lines).encode()


def port_of(viewer) -> int:
    """Return the port of a viewer's server."""
    return int(viewer.url.rpartition(":")[2])


class Client:
    """An open page: it has read its scene, and sends messages as a page does."""

    def __init__(self, viewer, **headers):
        address = f"{viewer.url.replace('http', 'ws')}/socket"
        self.line = connect(address, max_size=None, compression=None, open_timeout=SECONDS, **headers)
        self.begin = self.receive()
        self.scene_frames = self.receive_scene()
        self.seq = 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.line.close()

    @property
    def scene(self) -> Frame:
        return self.scene_frames[0]

    def receive(self, *kinds) -> Frame:
        """Return the next frame, of these kinds if any are given."""
        frame = decoded(self.line.recv(timeout=SECONDS))
        assert not kinds or frame.kind in kinds, frame.header
        return frame

    def receive_scene(self) -> list[Frame]:
        """Return a scene and the frames that belong to it."""
        scene = self.receive("scene")
        return [scene, *(self.receive(kind) for kind in scene.header["follow"])]

    def send(self, kind, **fields) -> int:
        """Send a message; return its number."""
        self.seq += 1
        self.line.send(json.dumps({"kind": kind, "seq": self.seq, **fields}))
        return self.seq

    def request(self, kind, **fields) -> Frame:
        """Send a message; return the answer."""
        seq = self.send(kind, **fields)
        frame = self.receive()
        assert frame.header["seq"] == seq, frame.header
        return frame

    def pick(self, origin, direction, t_min=0.0, t_max=None) -> Frame:
        """Cast a ray; return its hits."""
        fields = {"t_min": t_min, "t_max": t_max}
        return self.request("pick", origin=list(origin), direction=list(direction), **fields)

    def set_mask(self, mask) -> None:
        """Send which objects rays may hit."""
        self.line.send(b"\1" + np.packbits(mask, bitorder="little").tobytes())

    def upload(self, name, content, parts=2, sent=None) -> int:
        """Announce a file, and send its first parts (None: all, and the end); return the message's number."""
        seq = self.send("upload", name=name, size=len(content))
        step = -(-len(content) // parts) or 1
        for start in list(range(0, len(content), step))[:sent]:
            self.line.send(b"\2" + content[start : start + step])
        if sent is None:
            self.line.send(b"\2")
        return seq
