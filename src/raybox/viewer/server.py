"""The page's server: where it listens, whom it answers, how much it takes.

viser offers no public way to refuse a connection or an upload. What is private here holds for the versions
that pyproject.toml allows, >=1.1,<1.2, and has to be read again before the next.
"""

import asyncio
import contextlib
import io
import ipaddress
import socket
from collections.abc import Callable
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from raybox.errors import InvalidInput, RayboxError
from raybox.viewer.open_file import LARGEST, too_large

TRIES = 100  # ports, from the one that was asked for
UPLOADS = 4  # at a time


def serve(host: str, port: int) -> Any:
    """Start a viser server that listens at one address and answers its own page only."""
    if find_spec("viser") is None:
        raise RayboxError('the viewer needs viser, which is not installed; run: pip install "raybox[view]"')
    import viser

    with contextlib.redirect_stdout(io.StringIO()):  # its banner
        server = viser.ViserServer(host=host, port=_free_port(host, port), label="raybox", verbose=False)
    _close_tunnel(server)
    _answer_own_page_only(server, host)
    server.gui.configure_theme(show_logo=False, show_share_button=False)
    server.gui.main_panel.dock_right()  # beside the picture, not over it
    return server


def stop(server: Any) -> None:
    """Stop the server, without its farewell."""
    with contextlib.redirect_stdout(io.StringIO()):
        server.stop()


def url(host: str, port: int) -> str:
    """Give the address to open: for a server that listens everywhere, this machine's own."""
    name = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host
    return f"http://{f'[{name}]' if ':' in name else name}:{port}"


def _free_port(host: str, port: int) -> int:
    """Find the port asked for, or the next free one; viser would try a wrong address for ever."""
    if not 0 <= port <= 65535:
        raise InvalidInput(f"port must be from 0 to 65535; got {port}. 8080 is usual, 0 takes any free one.")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    problem = ""
    for number in range(port, min(port + TRIES, 65536)):
        with socket.socket(family) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((host, number))
                return int(trial.getsockname()[1])
            except OSError as error:
                problem = str(error.strerror or error)
    raise RayboxError(f"cannot listen at {host} from port {port} on: {problem}; give another host or port")


def _close_tunnel(server: Any) -> None:
    """Take away viser's way to the outside, which any page could ask for."""
    from viser import _messages

    for kind in (_messages.ShareUrlRequest, _messages.ShareUrlDisconnect):
        server._websock_server.unregister_handler(kind)


def _answer_own_page_only(server: Any, host: str) -> None:
    """Turn connections from other sites' pages away before a word is said.

    Any page in the user's browser can open a socket to 127.0.0.1; the browser tells the page's origin.
    """
    sockets = server._websock_server

    async def check(connection: Any) -> None:
        number = connection.client_id
        line = sockets._live_connections[number]
        if is_own_page(line.request.headers.get("Origin"), line.request.headers.get("Host", ""), host):
            return
        await line.close(1008, "only raybox's own page may connect")
        sockets._client_state_from_id.pop(number, None)
        sockets._live_connections.pop(number, None)
        raise asyncio.CancelledError  # ends this connection's task; nothing it has sent is read

    sockets.on_client_connect(check)


def is_own_page(origin: str | None, host_header: str, host: str) -> bool:
    """Tell whether a connection comes from the page served here, or from no page at all (a program).

    Where only this machine can connect, the page must have been asked for under a name of this machine: a
    foreign name that leads here is the trick of DNS rebinding.
    """
    if origin is not None and urlsplit(origin).netloc.lower() != host_header.lower():
        return False
    if not _is_loopback(host):
        return True
    name = urlsplit(f"//{host_header}").hostname or ""
    return name == host.lower() or _is_loopback(name)


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def bound_uploads(server: Any, refuse: Callable[[str], None]) -> None:
    """Take no upload that announces too much, and no more bytes than are announced."""
    from viser import _messages

    gui, sockets = server.gui, server._websock_server
    running = gui._current_file_upload_states

    def begin(client_id: Any, start: Any) -> None:
        if not 0 <= start.size_bytes <= LARGEST or not 0 <= start.part_count <= max(start.size_bytes, 1):
            refuse(str(too_large(str(start.filename)[-80:], start.size_bytes)))
        elif len(running) >= UPLOADS:
            refuse("too many uploads at a time; wait for one to end")
        else:
            gui._handle_file_transfer_start(client_id, start)
            return
        # Told that all of it came, the page takes its progress bar away.
        sockets.queue_message(
            _messages.FileTransferPartAck(
                start.source_component_uuid, start.transfer_uuid, start.size_bytes, start.size_bytes
            )
        )

    def go_on(client_id: Any, part: Any) -> None:
        state = running.get(part.transfer_uuid)
        if state is not None and state["transferred_bytes"] + len(part.content) > state["total_bytes"]:
            running.pop(part.transfer_uuid, None)
            refuse("an upload sent more than it announced")
            return
        gui._handle_file_transfer_part(client_id, part)

    for kind, handler in ((_messages.FileTransferStartUpload, begin), (_messages.FileTransferPart, go_on)):
        sockets.unregister_handler(kind)
        sockets.register_handler(kind, handler)
