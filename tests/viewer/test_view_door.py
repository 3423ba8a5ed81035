"""The viewer's door: which connections are let in, and what they can read."""

import base64
import contextlib
import hashlib
import http.client
import re
import socket

import pytest

import raybox as rb
from raybox.viewer import server
from view_client import Client, decoded, handshake, port_of

pytest.importorskip("websockets")
from websockets.exceptions import ConnectionClosed, InvalidStatus

ROW = rb.Boxes([[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [6, 1, 1]])


@pytest.fixture(scope="module")
def viewer():
    with rb.view(ROW, port=0) as shown:
        yield shown


def get(viewer, path, method="GET", **headers):
    """Return status, headers and body of a request."""
    line = http.client.HTTPConnection("127.0.0.1", port_of(viewer), timeout=300)
    line.putrequest(method, path, skip_host="Host" in headers, skip_accept_encoding=True)
    for name, value in headers.items():
        line.putheader(name, value)
    line.endheaders()
    reply = line.getresponse()
    body = reply.read()
    line.close()
    return reply.status, reply.headers, body


def is_let_in(viewer, **headers) -> bool:
    try:
        with Client(viewer, **headers) as page:
            return page.scene.kind == "scene"
    except InvalidStatus as error:
        return error.response.status_code != 403


# Requests


def test_the_page_is_served_with_a_strict_policy(viewer):
    status, headers, body = get(viewer, "/")
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["X-Frame-Options"] is None  # it would also exclude notebooks at other ports
    policy = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    pages = ["http://127.0.0.1:*", "http://localhost:*", "vscode-webview:", "vscode-file:"]
    assert policy["frame-ancestors"].split() == ["'self'", *pages]
    assert policy["default-src"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert policy["connect-src"] == "'self'"
    scripts = re.findall(rb"<script[^>]*>(.*?)</script>", body, re.DOTALL)
    hashes = [f"'sha256-{base64.b64encode(hashlib.sha256(one).digest()).decode()}'" for one in scripts]
    assert policy["script-src"].split() == (hashes or ["'none'"])
    assert get(viewer, "/?token=1")[2] == body


@pytest.mark.parametrize(
    "path",
    [
        "/../../../../../../etc/passwd",
        "/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/%2e%2e/etc/passwd",
        *("/..%5c..%5c..%5cetc/passwd", "//etc/passwd", "/etc/passwd", "/pyproject.toml"),
        *("/page.html", "/socket/", "http://127.0.0.1/"),
    ],
)
def test_nothing_but_the_page_can_be_read(viewer, path):
    status, _, body = get(viewer, path)
    assert status == 404
    assert b"root:" not in body
    assert get(viewer, "/")[0] == 200


def test_the_socket_is_for_sockets(viewer):
    assert get(viewer, "/socket")[0] == 426


@pytest.mark.parametrize("request_", [b"POST / HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n", b"\0\1\2\3\r\n\r\n"])
def test_other_requests_end_without_an_answer_of_the_page(viewer, request_):
    with socket.create_connection(("127.0.0.1", port_of(viewer)), timeout=300) as line:
        line.sendall(request_)
        assert b" 200 " not in line.makefile("rb").read()
    assert get(viewer, "/")[0] == 200


@pytest.mark.parametrize(
    "names",
    [["Host: 127.0.0.1", "Host: 127.0.0.1"], ["Host: 127.0.0.1", "host: evil.example"], []],
    ids=["the same", "another", "none"],
)
@pytest.mark.parametrize("path", ["/", "/socket"])
def test_a_request_has_one_host(viewer, path, names):
    assert raw_status(viewer, path, *names) == 400
    assert get(viewer, "/")[0] == 200


def test_a_request_has_one_origin_at_most(viewer):
    own = f"127.0.0.1:{port_of(viewer)}"
    origin = f"Origin: http://{own}"
    assert raw_status(viewer, "/", f"Host: {own}", origin) == 200
    assert raw_status(viewer, "/", f"Host: {own}", origin, origin) == 400


def raw_status(viewer, path, *headers) -> int:
    """Return the status of a request with exactly these headers."""
    with socket.create_connection(("127.0.0.1", port_of(viewer)), timeout=300) as line:
        line.sendall("\r\n".join([f"GET {path} HTTP/1.1", *headers, "", ""]).encode())
        return int(line.makefile("rb").readline().split()[1])


def test_long_headers_are_refused(viewer):
    try:
        status = get(viewer, "/", Cookie="x" * 100_000)[0]
    except (ConnectionError, http.client.HTTPException):
        status = 0
    assert status != 200
    assert get(viewer, "/")[0] == 200


def test_a_message_of_two_megabytes_ends_its_socket(viewer):
    with Client(viewer) as page:
        with contextlib.suppress(ConnectionClosed):
            page.line.send(b"\2" + bytes(2 * 2**20))
        with pytest.raises(ConnectionClosed):
            page.receive()
    with Client(viewer) as page:
        assert len(page.pick([0, 0, 0], [1, 0, 0]).arrays["t"]) == 2


def test_nothing_is_compressed(viewer):
    """Limits hold for what arrives: an offer to compress is not taken."""
    offer = handshake(f"127.0.0.1:{port_of(viewer)}", "Sec-WebSocket-Extensions: permessage-deflate")
    with socket.create_connection(("127.0.0.1", port_of(viewer)), timeout=300) as line:
        line.sendall(offer)
        stream = line.makefile("rb")
        assert stream.readline().startswith(b"HTTP/1.1 101")
        reply = [text.strip().lower() for text in iter(stream.readline, b"\r\n")]
    assert not [text for text in reply if text.startswith(b"sec-websocket-extensions")]


# Origins and names of hosts


def test_only_its_own_page_receives_data(viewer):
    own = f"127.0.0.1:{port_of(viewer)}"
    assert is_let_in(viewer, origin=f"http://{own}")
    assert is_let_in(viewer)  # a program, not a page
    for stranger in ("https://example.com", f"http://{own}.example.com", "null", "http://127.0.0.1:1"):
        assert not is_let_in(viewer, origin=stranger)
    assert is_let_in(viewer, origin=f"http://{own}"), "the server must still run"


def test_pages_under_a_foreign_name_are_refused(viewer):
    for name, status in (("evil.example", 403), ("127.0.0.1", 200), ("localhost", 200), ("[::1", 403)):
        assert get(viewer, "/", Host=f"{name}:{port_of(viewer)}")[0] == status
    assert get(viewer, "/", Origin="https://example.com")[0] == 403


def is_own(name, host, names=(), origin=None) -> bool:
    """Return whether a page, requested under a name, and one with an origin of it are let in."""
    found = [
        server.is_own_page(one, f"{name}:9", host, names) for one in (origin or f"http://{name}:9", None)
    ]
    assert origin or found[0] == found[1]
    return found[0]


def test_a_foreign_name_of_this_machine_is_refused():
    assert [is_own(name, "127.0.0.1") for name in ("localhost", "[::1]")] == [True, True]
    assert not is_own("10.0.0.9", "127.0.0.1")
    assert not is_own("evil.example", "127.0.0.1")
    assert not is_own("evil.example", "localhost")


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.9", ""])
def test_where_others_can_connect_names_must_be_allowed(host):
    names = frozenset({"lab.example"})
    assert all(is_own(name, host) for name in ("10.0.0.9", "[fe80::9]", "localhost", "127.0.0.1"))
    assert not any(is_own(name, host) for name in ("evil.example", "10.0.0.9.evil.example", "", "0x7f000001"))
    assert is_own("Lab.Example", host, names)
    assert not is_own("lab.example", host, names, "http://evil.example:9")
    assert not is_own("evil.example", host, names)
    assert is_own("lab.example", "lab.example")


@pytest.mark.parametrize("allowed", [(), ["lab.example"]])
def test_a_rebinding_page_is_refused_where_others_can_connect(allowed):
    with rb.view(ROW, host="0.0.0.0", port=0, allowed_hosts=allowed) as viewer:
        for name, status in (
            ("evil.example", 403),
            ("lab.example", 200 if allowed else 403),
            ("127.0.0.1", 200),
        ):
            own = f"{name}:{port_of(viewer)}"
            assert get(viewer, "/", Host=own)[0] == status
            assert receives_data(viewer, own) == (status == 200)


def receives_data(viewer, own) -> bool:
    """Return whether a page that was requested under a name receives any data."""
    with socket.create_connection(("127.0.0.1", port_of(viewer)), timeout=300) as line:
        line.sendall(handshake(own, f"Origin: http://{own}"))
        return line.makefile("rb").readline().startswith(b"HTTP/1.1 101")


@pytest.mark.parametrize("allowed", ["lab.example", [""], [3]])
def test_allowed_hosts_are_names(allowed):
    with pytest.raises(rb.InvalidInput, match="allowed_hosts must be a list of host names"):
        rb.view(ROW, port=0, allowed_hosts=allowed)


def test_the_first_frames_are_those_of_a_page(viewer):
    with Client(viewer) as page:
        assert sorted(page.begin.header) == ["session", "version", "view"]
        assert page.begin.header["version"] == rb.__version__
    assert decoded(viewer._content.frames[0]).header == page.scene.header
