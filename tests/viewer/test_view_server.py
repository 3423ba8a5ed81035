"""The viewer's server: its address, its end, and sockets that say nothing."""

import signal
import socket
import subprocess
import sys
from contextlib import ExitStack

import pytest

import raybox as rb
from processes import output_of
from raybox.viewer import server
from view_client import Client, handshake, port_of
from view_scenes import random_boxes
from waiting import wait_until

pytest.importorskip("websockets")
from websockets.exceptions import ConnectionClosed

ROW = rb.Boxes([[2, -1, -1], [5, -1, -1], [8, -1, -1]], [[3, 1, 1], [6, 1, 1], [9, 1, 1]])


@pytest.fixture(scope="module")
def viewer():
    with rb.view(ROW, port=0) as shown:
        yield shown


def answers(host, port) -> bool:
    """Return whether a server listens there; 127.0.0.2 is this machine, but not 127.0.0.1."""
    try:
        socket.create_connection((host, port), timeout=60).close()
    except OSError:
        return False
    return True


# Address


def test_it_listens_on_this_machine_only(viewer):
    assert answers("127.0.0.1", port_of(viewer))
    assert not answers("127.0.0.2", port_of(viewer))
    assert viewer.url == f"http://127.0.0.1:{port_of(viewer)}"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux has all of 127.0.0.0/8 without set-up")
def test_another_address_if_requested():
    with rb.view(ROW, host="0.0.0.0", port=0) as viewer:
        assert answers("127.0.0.2", port_of(viewer))
        assert viewer.url.startswith("http://127.0.0.1:")


def test_a_taken_port_gives_the_next_one(viewer):
    with rb.view(ROW, port=port_of(viewer)) as other:
        assert port_of(other) > port_of(viewer)


def test_answers_are_sent_at_once():
    """Not after 40 ms, when the other side has confirmed what came before (Nagle's algorithm)."""
    with rb.view(ROW, port=0) as viewer, Client(viewer):
        (session,) = viewer._sessions
        sending = session._connection.transport.get_extra_info("socket")
        assert sending.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


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


def test_addresses_to_open():
    assert server.address_of("0.0.0.0", 80) == server.address_of("::", 80) == "http://127.0.0.1:80"
    assert server.address_of("::1", 80) == "http://[::1]:80"


def test_the_name_view_is_a_function_and_costs_no_import():
    code = (
        "import raybox.viewer.stage, raybox as rb, sys; print(callable(rb.view), 'websockets' in sys.modules)"
    )
    assert output_of("-c", code).split() == ["True", "False"]


def test_without_websockets_the_command_to_install_it_is_given(monkeypatch):
    monkeypatch.setattr("raybox.viewer.server.find_spec", lambda name: None)
    with pytest.raises(rb.RayboxError, match=r'pip install "raybox\[view\]"'):
        rb.view(ROW, port=0)


# Its end


def assert_says_goodbye(page):
    assert "the server has stopped" in page.receive("end").header["text"]
    with pytest.raises(ConnectionClosed):
        page.receive()


def test_it_stops_and_pages_say_so():
    with rb.view(ROW, port=0) as viewer, Client(viewer) as page, Client(viewer) as other:
        viewer.stop()
        assert_says_goodbye(page)
        assert_says_goodbye(other)
        assert not answers("127.0.0.1", port_of(viewer))
        viewer.stop()
        with pytest.raises(rb.RayboxError, match="the server has stopped"):
            viewer.click([0, 0, 0], [1, 0, 0])


PROGRAM = """
import raybox as rb
viewer = rb.view(rb.Boxes([0, 0, 0], [1, 1, 1]), port=0)
print(viewer.url, flush=True)
input()
"""


@pytest.mark.parametrize("is_killed", [False, True])
def test_a_program_that_ends_says_so_and_one_that_is_killed_closes_its_sockets(is_killed):
    if is_killed and sys.platform == "win32":
        pytest.skip("Windows has no SIGKILL")
    command = [sys.executable, "-c", PROGRAM]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        viewer = type("Elsewhere", (), {"url": process.stdout.readline().strip()})
        with Client(viewer) as page:
            if is_killed:
                process.send_signal(signal.SIGKILL)
                with pytest.raises(ConnectionClosed):
                    page.receive()
            else:
                process.communicate("\n", timeout=300)
                assert_says_goodbye(page)
        assert (process.wait(300) == 0) is not is_killed


def test_a_page_connects_again_to_the_same_server(viewer):
    with Client(viewer) as page:
        name = page.begin.header["session"]
    with Client(viewer) as page:
        assert page.begin.header["session"] == name
    with rb.view(ROW, port=0) as other, Client(other) as page:
        assert page.begin.header["session"] != name


# Sockets that say nothing


def test_300_silent_sockets_are_harmless():
    """Half of them say nothing at all, half read nothing of a scene that no buffer holds."""
    with rb.view(random_boxes().stage, port=0) as viewer, ExitStack() as stack:
        for k in range(300):
            line = stack.enter_context(socket.create_connection(("127.0.0.1", port_of(viewer)), timeout=300))
            if k % 2:
                line.sendall(handshake("127.0.0.1"))
        wait_until(lambda: len(viewer._sessions) == 150, "all that can be are pages")
        with Client(viewer) as page:
            found = page.pick([84800, 447500, 500], [1, 0.5, 0])
            assert found.kind == "hits"
        assert viewer.click([84800, 447500, 500], [1, 0.5, 0]).index.size == found.header["total"]


def test_a_mask_of_many_objects_is_no_large_message(monkeypatch):
    boxes = rb.Grid.uniform([0, 0, 0], 1, (20, 20, 20)).boxes()
    monkeypatch.setattr(server, "MAX_MESSAGE", 500)
    with rb.view(boxes, port=0) as viewer, Client(viewer) as page:
        page.set_mask([True] * len(boxes))  # of 1,000 bytes
        assert page.pick([0.5, 0.5, -1], [0, 0, 1]).header["total"] == 20
