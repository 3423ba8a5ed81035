"""The viewer's server: its address, the connections it accepts, its limits on uploads."""

import http.client
import socket
import sys
from contextlib import ExitStack
from types import SimpleNamespace

import pytest

import raybox as rb
from raybox.viewer import html as markup
from raybox.viewer import open_file, server
from waiting import wait_until

pytest.importorskip("viser")
import msgspec
from viser import _messages
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

ROW = rb.Boxes([[2, -1, -1], [5, -1, -1], [8, -1, -1]], [[3, 1, 1], [6, 1, 1], [9, 1, 1]])
SUBPROTOCOL = f"viser-v{__import__('viser').__version__}"
TABLE = b"id,min_x,min_y,min_z,max_x,max_y,max_z\nalone,0,0,0,1,1,1\n"


@pytest.fixture(scope="module")
def served():
    with rb.view(ROW, port=0) as viewer:
        yield viewer


@pytest.fixture
def viewer(served):
    served._server.scene.remove_by_name("/none")
    served._state.set_mode(False)
    served._show_message("")
    return served


def port_of(viewer) -> int:
    return viewer._server.get_port()


def get(viewer, path):
    line = http.client.HTTPConnection("127.0.0.1", port_of(viewer), timeout=60)
    line.putrequest("GET", path, skip_accept_encoding=True)
    line.endheaders()
    reply = line.getresponse()
    body = reply.read()
    line.close()
    return reply.status, body


# Address


def test_it_listens_on_this_machine_only(viewer):
    assert answers("127.0.0.1", port_of(viewer))
    assert not answers("127.0.0.2", port_of(viewer))
    assert viewer.url == f"http://127.0.0.1:{port_of(viewer)}"


def test_notebooks_show_the_page_in_a_frame(viewer):
    line = http.client.HTTPConnection("127.0.0.1", port_of(viewer), timeout=60)
    line.request("GET", "/")
    reply = line.getresponse()
    assert f'<iframe src="{viewer.url}"' in viewer._repr_html_()
    assert reply.status == 200
    assert reply.getheader("X-Frame-Options") is None
    assert "frame-ancestors" not in (reply.getheader("Content-Security-Policy") or "")
    line.close()
    assert markup.frame('http://x/"><b>').count("<b>") == 0


def answers(host, port) -> bool:
    """Return whether a server listens there; 127.0.0.2 is this machine, but not 127.0.0.1."""
    try:
        socket.create_connection((host, port), timeout=60).close()
    except OSError:
        return False
    return True


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all of 127.0.0.0/8 without set-up")
def test_another_address_if_requested():
    with rb.view(ROW, host="0.0.0.0", port=0) as viewer:
        assert answers("127.0.0.2", port_of(viewer))
        assert viewer.url.startswith("http://127.0.0.1:")


def test_a_taken_port_gives_the_next_one(viewer):
    with rb.view(ROW, port=port_of(viewer)) as other:
        assert port_of(other) > port_of(viewer)


@pytest.mark.parametrize(
    ("host", "port", "text_part"),
    [
        ("127.0.0.1", 65536, "port must be from 0 to 65535; got 65536"),
        ("127.0.0.1", -1, "port must be"),
        ("192.0.2.1", 8080, "cannot listen at 192.0.2.1"),
        ("no such host", 8080, "cannot listen at no such host"),
    ],
)
def test_an_unusable_address_is_an_error(host, port, text_part):
    with pytest.raises(rb.RayboxError, match=text_part):
        rb.view(ROW, host=host, port=port)


def test_it_stops():
    with rb.view(ROW, port=0) as other:
        number = port_of(other)
    wait_until(lambda: not answers("127.0.0.1", number), "the server has ended")


# Connections


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../../../etc/passwd",
        "/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        "/..%5c..%5c..%5cetc/passwd",
        "//etc/passwd",
        "/etc/passwd",
        "/pyproject.toml",
    ],
)
def test_no_file_of_the_machine_can_be_read(viewer, path):
    status, body = get(viewer, path)
    assert status == 404
    assert b"root:" not in body
    assert get(viewer, "/")[0] == 200


def receives_data(viewer, **headers) -> bool:
    """Return whether a socket with these headers receives any data."""
    address = f"ws://127.0.0.1:{port_of(viewer)}"
    with connect(address, subprotocols=[SUBPROTOCOL], max_size=None, compression=None, **headers) as line:
        try:
            return bool(line.recv(timeout=60))
        except ConnectionClosed:
            return False


def test_only_its_own_page_receives_data(viewer):
    own = f"127.0.0.1:{port_of(viewer)}"
    assert receives_data(viewer, origin=f"http://{own}")
    assert receives_data(viewer)  # a program, not a page
    for stranger in ("https://example.com", f"http://{own}.example.com", "null", "http://127.0.0.1:1"):
        assert not receives_data(viewer, origin=stranger)
    assert receives_data(viewer, origin=f"http://{own}"), "the server must still run"


def test_a_foreign_name_of_this_machine_is_refused():
    assert server.is_own_page("http://localhost:9", "localhost:9", "127.0.0.1")
    assert server.is_own_page("http://[::1]:9", "[::1]:9", "127.0.0.1")
    assert not server.is_own_page("http://evil.example:9", "evil.example:9", "127.0.0.1")
    assert not server.is_own_page(None, "evil.example:9", "localhost")
    assert not server.is_own_page("http://10.0.0.9:9", "10.0.0.9:9", "127.0.0.1")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.9"])
def test_where_others_can_connect_names_must_be_allowed(host):
    for name in ("10.0.0.9", "[fe80::9]", "localhost", "127.0.0.1"):
        assert server.is_own_page(f"http://{name}:9", f"{name}:9", host)
        assert server.is_own_page(None, f"{name}:9", host)
    for name in ("evil.example", "10.0.0.9.evil.example", "", "0x7f000001"):
        assert not server.is_own_page(f"http://{name}:9", f"{name}:9", host)
        assert not server.is_own_page(None, f"{name}:9", host)
    names = frozenset({"lab.example"})
    assert server.is_own_page("http://Lab.Example:9", "Lab.Example:9", host, names)
    assert not server.is_own_page("http://evil.example:9", "lab.example:9", host, names)
    assert not server.is_own_page("http://evil.example:9", "evil.example:9", host, names)
    assert server.is_own_page("http://lab.example:9", "lab.example:9", "lab.example")


@pytest.mark.parametrize("allowed", [(), ["lab.example"]])
def test_a_rebinding_handshake_is_refused_where_others_can_connect(allowed):
    with rb.view(ROW, host="0.0.0.0", port=0, allowed_hosts=allowed) as viewer:
        for name, accepted in (("evil.example", False), ("lab.example", bool(allowed)), ("127.0.0.1", True)):
            own = f"{name}:{port_of(viewer)}"
            assert handshake(viewer, own) == accepted


def handshake(viewer, own) -> bool:
    """Return whether a page that was requested under a name receives any data."""
    headers = [
        *("GET / HTTP/1.1", f"Host: {own}", f"Origin: http://{own}", "Upgrade: websocket"),
        *("Connection: Upgrade", "Sec-WebSocket-Version: 13", "Sec-WebSocket-Key: MDEyMzQ1Njc4OWFiY2RlZg=="),
        *(f"Sec-WebSocket-Protocol: {SUBPROTOCOL}", "", ""),
    ]
    with socket.create_connection(("127.0.0.1", port_of(viewer)), timeout=60) as line:
        line.sendall("\r\n".join(headers).encode())
        stream = line.makefile("rb")
        assert stream.readline().startswith(b"HTTP/1.1 101")
        while stream.readline().strip():
            pass
        return stream.read(1)[0] & 15 != 8  # 8: the connection is closed


@pytest.mark.parametrize("allowed", ["lab.example", [""], [3]])
def test_allowed_hosts_are_names(allowed):
    with pytest.raises(rb.InvalidInput, match="allowed_hosts must be a list of host names"):
        rb.view(ROW, port=0, allowed_hosts=allowed)


def test_no_page_can_open_a_tunnel(viewer):
    handled = viewer._server._websock_server._incoming_handlers
    assert _messages.FileTransferStartUpload in handled
    assert not {_messages.ShareUrlRequest, _messages.ShareUrlDisconnect} & set(handled)


# Uploads


def upload(viewer, name, content):
    """Call the upload button's handlers, as viser does."""
    file = SimpleNamespace(name=name, content=content)
    for act in viewer._upload._impl.update_cb:
        act(SimpleNamespace(target=SimpleNamespace(value=file), client=None))


def test_a_file_from_the_page_is_shown_and_a_bad_one_is_a_message(viewer):
    upload(viewer, "one.csv", TABLE)
    assert (viewer.stage.name, viewer.stage.ids) == ("one.csv", ["alone"])
    assert "one.csv" in viewer._summary.content
    for name, content in (("bad.csv", b"\xff\xfe"), ("x.exe", b"MZ"), ("cut.npz", b"PK\3\4"), ("e.ifc", b"")):
        upload(viewer, name, content)
        assert name in viewer._message.content
        assert viewer.stage.name == "one.csv"
    assert viewer.click([0.5, 0.5, 5], [0, 0, -1]).contacts[0].id == "alone"
    viewer.open("row.csv", TABLE)
    assert viewer._drawn.batched_positions.shape == (1, 3)


def test_a_handler_that_breaks_is_a_message(viewer, monkeypatch):
    monkeypatch.setattr(open_file, "stage_of_bytes", lambda *_: 1 / 0)
    upload(viewer, "one.csv", TABLE)
    assert "that did not work: ZeroDivisionError" in viewer._message.content
    assert get(viewer, "/")[0] == 200


def start(viewer, size, parts=1, name="big.csv"):
    kind = _messages.FileTransferStartUpload
    message = kind(viewer._upload._impl.uuid, f"transfer {size} {parts}", name, "text/csv", parts, size)
    (handler,) = viewer._server._websock_server._incoming_handlers[kind]
    handler(0, message)
    return message.transfer_uuid


def test_a_large_upload_is_refused_before_it_is_sent(viewer):
    running = viewer._server.gui._current_file_upload_states
    start(viewer, open_file.MAX_BYTES + 1)
    assert not running
    assert "256 MiB" in viewer._message.content
    start(viewer, 10, parts=1000)
    start(viewer, -1)
    assert not running


def test_an_upload_may_not_send_more_than_it_announced(viewer):
    running = viewer._server.gui._current_file_upload_states
    number = start(viewer, 10, parts=2)
    assert number in running
    part = _messages.FileTransferPart(viewer._upload._impl.uuid, number, 0, b"0" * 11)
    (handler,) = viewer._server._websock_server._incoming_handlers[_messages.FileTransferPart]
    handler(0, part)
    assert not running
    assert "more bytes than it announced" in viewer._message.content
    for k in range(server.MAX_UPLOADS + 1):
        start(viewer, 10 + k)
    assert len(running) == server.MAX_UPLOADS
    running.clear()


def send_upload(viewer, line, number, sent, content=TABLE):
    """Announce an upload of two parts, and send the first so many."""
    uuid, half = viewer._upload._impl.uuid, len(content) // 2
    kind = _messages.FileTransferStartUpload
    messages = [kind(uuid, f"upload {number}", f"{number}.csv", "text/csv", 2, len(content))]
    parts = content[:half], content[half:]
    messages += [_messages.FileTransferPart(uuid, f"upload {number}", k, parts[k]) for k in range(sent)]
    for message in messages:
        line.send(msgspec.msgpack.encode(message.as_serializable_dict()))


def received(viewer):
    """Return the name and the content of the last upload; handlers run for pages that show the scene."""
    file = viewer._upload.value
    return file.name, file.content


@pytest.mark.parametrize("limit", ["seconds", "total"])
def test_uploads_of_silent_sockets_do_not_block_others(viewer, limit):
    """The time limit is 0 here, once all four are silent: nothing waits for a clock."""
    running = viewer._server.gui._current_file_upload_states
    address, names = f"ws://127.0.0.1:{port_of(viewer)}", [str(k) for k in range(server.MAX_UPLOADS)]
    with ExitStack() as stack:
        lines = [
            stack.enter_context(connect(address, subprotocols=[SUBPROTOCOL], max_size=None, compression=None))
            for _ in (*names, "last")
        ]
        for k, name in enumerate(names):
            send_upload(viewer, lines[k], name, sent=k % 2)
        wait_until(lambda: sum(len(one["parts"]) for one in list(running.values())) == 2, "four are silent")
        assert len(running) == server.MAX_UPLOADS
        send_upload(viewer, lines[-1], "refused", sent=2)
        wait_until(lambda: "too many uploads at a time" in viewer._message.content, "the fifth is refused")
        assert len(running) == server.MAX_UPLOADS
        try:
            server.bound_uploads(viewer._server, viewer._show_message, **{limit: 0.0})
            send_upload(viewer, lines[-1], "last", sent=0)
            wait_until(lambda: list(running) == ["upload last"], "those that are silent have ended")
        finally:
            server.bound_uploads(viewer._server, viewer._show_message)
        send_upload(viewer, lines[-1], "last", sent=2)
        wait_until(lambda: received(viewer) == ("last.csv", TABLE), "the next one is complete")
        part = _messages.FileTransferPart(viewer._upload._impl.uuid, "upload 0", 0, b"late")
        lines[0].send(msgspec.msgpack.encode(part.as_serializable_dict()))
        send_upload(viewer, lines[-1], "after", sent=2)
        wait_until(lambda: received(viewer) == ("after.csv", TABLE), "late parts change nothing")
    assert not running
