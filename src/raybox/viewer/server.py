"""The page's server: its address, the connections it accepts, its limits on uploads.

viser has no public way to refuse a connection or an upload. The private names used here are those of the
versions that pyproject.toml allows, >=1.1,<1.2, and must be checked before a later one is allowed.
"""

import asyncio
import contextlib
import ipaddress
import os
import socket
import time
from collections.abc import Callable, Collection, Iterable, Iterator
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from raybox.errors import InvalidInput, RayboxError
from raybox.viewer.open_file import MAX_BYTES, too_large

if TYPE_CHECKING:
    import viser
    import viser._messages
    import viser.infra

PORTS_TRIED = 100  # from the requested port on
MAX_UPLOADS = 4  # at a time
UPLOAD_SECONDS = 30.0  # without a part of an upload, after which another may take its turn
UPLOAD_TOTAL = 1800.0  # seconds from the start of an upload, after which another may


def serve(host: str, port: int, allowed_hosts: Iterable[str] = ()) -> "viser.ViserServer":
    """Start a viser server at one address that accepts only its own page.

    allowed_hosts: names, besides IP addresses and localhost, under which the page may be requested.
    """
    if isinstance(allowed_hosts, str) or not all(isinstance(name, str) and name for name in allowed_hosts):
        raise InvalidInput(f"allowed_hosts must be a list of host names; got {allowed_hosts!r}.")
    if find_spec("viser") is None:
        raise RayboxError('the viewer needs viser, which is not installed; run: pip install "raybox[view]"')
    import viser

    with _silent_viser():
        server = viser.ViserServer(host=host, port=_free_port(host, port), label="raybox", verbose=False)
    _close_tunnel(server)
    _answer_own_page_only(server, host, frozenset(name.lower() for name in allowed_hosts))
    server.gui.configure_theme(show_logo=False, show_share_button=False)
    server.gui.main_panel.dock_right()  # beside the picture, not over it
    return server


def stop(server: "viser.ViserServer") -> None:
    """Stop the server, and suppress its message."""
    with _silent_viser():
        server.stop()


@contextlib.contextmanager
def _silent_viser() -> Iterator[None]:
    """Suppress what viser prints by rich, on a terminal or below a notebook's cell."""
    import rich

    console = rich.get_console()
    before, console.quiet = console.quiet, True
    try:
        yield
    finally:
        console.quiet = before


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
            if os.name == "posix":  # elsewhere, two servers could then listen at one port
                trial.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                trial.bind((host, number))
                return int(trial.getsockname()[1])
            except OSError as error:
                problem = str(error.strerror or error)
    raise RayboxError(f"cannot listen at {host} from port {port} on: {problem}; pass another host or port")


def _close_tunnel(server: "viser.ViserServer") -> None:
    """Remove viser's tunnel to the internet, which any page could request."""
    from viser import _messages

    for kind in (_messages.ShareUrlRequest, _messages.ShareUrlDisconnect):
        server._websock_server.unregister_handler(kind)


def _answer_own_page_only(server: "viser.ViserServer", host: str, names: Collection[str]) -> None:
    """Close connections from other sites' pages before any data is sent.

    Any page in the user's browser can open a socket to 127.0.0.1; the browser sends the page's origin.
    """
    sockets = server._websock_server

    async def check(connection: "viser.infra.ClientConnection") -> None:
        number = connection.client_id
        line = sockets._live_connections[number]
        headers = line.request.headers
        if is_own_page(headers.get("Origin"), headers.get("Host", ""), host, names):
            return
        await line.close(1008, "only raybox's own page may connect, under an allowed host name")
        sockets._client_state_from_id.pop(number, None)
        sockets._live_connections.pop(number, None)
        raise asyncio.CancelledError  # ends this connection's task before its messages are read

    sockets.on_client_connect(check)


def is_own_page(origin: str | None, host_header: str, host: str, names: Collection[str] = ()) -> bool:
    """Return whether a connection comes from the page served here, or from a program.

    A program sends no origin. The page must have been requested under an IP address, the name served at, or
    an allowed one: any other name may be of a foreign site that resolves to this machine (DNS rebinding).
    Where only this machine can connect, the address must be a loopback address.
    """
    if origin is not None and urlsplit(origin).netloc.lower() != host_header.lower():
        return False
    name = (urlsplit(f"//{host_header}").hostname or "").lower()
    if name == host.lower() or name in names or _is_loopback(name):
        return True
    return _is_address(name) and not _is_loopback(host)


def _is_loopback(host: str) -> bool:
    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


class _GuiOfClient:
    """A GUI whose acknowledgements of an upload go to one page.

    viser stores them for all pages: one opened later would wait for the rest of an upload that has ended.
    """

    def __init__(self, server: "viser.ViserServer", client_id: int) -> None:
        self._gui, self._clients, self._client_id = server.gui, server._connected_clients, client_id
        self._websock_interface = self

    def __getattr__(self, name: str) -> Any:
        return getattr(self._gui, name)

    def queue_message(self, message: "viser.infra.Message") -> None:
        """Send a message to the page, if it is still open."""
        client = self._clients.get(self._client_id)
        if client is not None:
            client._websock_connection.queue_message(message)

    def handle(self, handler: str, message: "viser.infra.Message") -> None:
        """Call a handler of viser's class with this GUI."""
        getattr(type(self._gui), handler)(self, self._client_id, message)


def bound_uploads(
    server: "viser.ViserServer",
    refuse: Callable[[str], None],
    seconds: float = UPLOAD_SECONDS,
    total: float = UPLOAD_TOTAL,
) -> None:
    """Refuse uploads that announce too much or send more than they announced.

    refuse: called with the reason. Uploads that have sent no part for some seconds, or take longer than
    `total`, end when the next begins: a page whose socket is silent blocks none.
    """
    from viser import _messages

    running = server.gui._current_file_upload_states

    def drop_late() -> None:
        now = time.monotonic()
        for number, state in list(running.items()):
            if now >= min(state["last_part"] + seconds, state["started"] + total):
                running.pop(number, None)
                page = _GuiOfClient(server, state["client_id"])
                acknowledge_all(page, state["message"], state["total_bytes"])

    def acknowledge_all(page: _GuiOfClient, message: "viser.infra.Message", size: int) -> None:
        """Remove the page's progress bar, and enable its button."""
        uuids = message.source_component_uuid, message.transfer_uuid
        page.queue_message(_messages.FileTransferPartAck(*uuids, size, size))

    def begin(client_id: int, start: "viser._messages.FileTransferStartUpload") -> None:
        page = _GuiOfClient(server, client_id)
        drop_late()
        if not 0 <= start.size_bytes <= MAX_BYTES or not 0 <= start.part_count <= max(start.size_bytes, 1):
            refuse(str(too_large(str(start.filename)[-80:], start.size_bytes)))
        elif len(running) >= MAX_UPLOADS:
            refuse(f"too many uploads at a time; wait until one ends, or is silent for {seconds:g} seconds")
        else:
            page.handle("_handle_file_transfer_start", start)
            if (state := running.get(start.transfer_uuid)) is not None:
                now = time.monotonic()
                state.update(message=start, started=now, last_part=now)
            return
        acknowledge_all(page, start, start.size_bytes)

    def append(client_id: int, part: "viser._messages.FileTransferPart") -> None:
        page, state = _GuiOfClient(server, client_id), running.get(part.transfer_uuid)
        if state is not None and state["transferred_bytes"] + len(part.content) > state["total_bytes"]:
            running.pop(part.transfer_uuid, None)
            refuse("an upload sent more bytes than it announced")
            acknowledge_all(page, part, state["total_bytes"])
            return
        if state is not None:
            state["last_part"] = time.monotonic()
        page.handle("_handle_file_transfer_part", part)

    for kind, handler in ((_messages.FileTransferStartUpload, begin), (_messages.FileTransferPart, append)):
        server._websock_server.unregister_handler(kind)
        server._websock_server.register_handler(kind, handler)
