"""The page's server: its address, the connections it accepts, its limits on uploads.

viser has no public way to refuse a connection or an upload. The private names used here are those of the
versions that pyproject.toml allows, >=1.1,<1.2, and must be checked before a later one is allowed.
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
from raybox.viewer.open_file import MAX_BYTES, too_large

PORTS_TRIED = 100  # from the requested port on
MAX_UPLOADS = 4  # at a time


def serve(host: str, port: int) -> Any:
    """Start a viser server at one address that accepts only its own page."""
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
    """Stop the server, and suppress its message."""
    with contextlib.redirect_stdout(io.StringIO()):
        server.stop()


def url(host: str, port: int) -> str:
    """Return the address to open; for 0.0.0.0 and [::], the loopback address."""
    name = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host
    return f"http://{f'[{name}]' if ':' in name else name}:{port}"


def _free_port(host: str, port: int) -> int:
    """Return the requested port, or the next free one.

    Raises for an unusable address, which viser would retry without end.
    """
    if not 0 <= port <= 65535:
        raise InvalidInput(
            f"port must be from 0 to 65535; got {port}. The default is 8080; 0 takes any free port."
        )
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    problem = ""
    for number in range(port, min(port + PORTS_TRIED, 65536)):
        with socket.socket(family) as trial:
            trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((host, number))
                return int(trial.getsockname()[1])
            except OSError as error:
                problem = str(error.strerror or error)
    raise RayboxError(f"cannot listen at {host} from port {port} on: {problem}; pass another host or port")


def _close_tunnel(server: Any) -> None:
    """Remove viser's tunnel to the internet, which any page could request."""
    from viser import _messages

    for kind in (_messages.ShareUrlRequest, _messages.ShareUrlDisconnect):
        server._websock_server.unregister_handler(kind)


def _answer_own_page_only(server: Any, host: str) -> None:
    """Close connections from other sites' pages before any data is sent.

    Any page in the user's browser can open a socket to 127.0.0.1; the browser sends the page's origin.
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
        raise asyncio.CancelledError  # ends this connection's task before its messages are read

    sockets.on_client_connect(check)


def is_own_page(origin: str | None, host_header: str, host: str) -> bool:
    """Return whether a connection comes from the page served here, or from a program.

    A program sends no origin. Where only this machine can connect, the page must have been requested under a
    name of this machine: a foreign name that resolves to it is a DNS rebinding attack.
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
    """Refuse uploads that announce too much or send more than they announced.

    refuse: called with the reason.
    """
    from viser import _messages

    gui, sockets = server.gui, server._websock_server
    running = gui._current_file_upload_states

    def begin(client_id: Any, start: Any) -> None:
        if not 0 <= start.size_bytes <= MAX_BYTES or not 0 <= start.part_count <= max(start.size_bytes, 1):
            refuse(str(too_large(str(start.filename)[-80:], start.size_bytes)))
        elif len(running) >= MAX_UPLOADS:
            refuse("too many uploads at a time; wait until one ends")
        else:
            gui._handle_file_transfer_start(client_id, start)
            return
        # The acknowledgement of all bytes removes the page's progress bar.
        sockets.queue_message(
            _messages.FileTransferPartAck(
                start.source_component_uuid, start.transfer_uuid, start.size_bytes, start.size_bytes
            )
        )

    def append(client_id: Any, part: Any) -> None:
        state = running.get(part.transfer_uuid)
        if state is not None and state["transferred_bytes"] + len(part.content) > state["total_bytes"]:
            running.pop(part.transfer_uuid, None)
            refuse("an upload sent more bytes than it announced")
            return
        gui._handle_file_transfer_part(client_id, part)

    for kind, handler in ((_messages.FileTransferStartUpload, begin), (_messages.FileTransferPart, append)):
        sockets.unregister_handler(kind)
        sockets.register_handler(kind, handler)
