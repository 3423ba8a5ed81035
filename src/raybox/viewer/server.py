"""The server of a page: which requests it answers, and a thread with a session for each open page."""

import asyncio
import base64
import hashlib
import ipaddress
import logging
import re
import socket
import threading
from collections.abc import Awaitable, Callable, Collection, Coroutine
from functools import partial
from http import HTTPStatus
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, TypeVar, final
from urllib.parse import urlsplit

from raybox.errors import InvalidInput, RayboxError
from raybox.viewer.messages import MAX_MESSAGE

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection
    from websockets.http11 import Request, Response

PORTS_TRIED = 100  # from the requested port on
PING_SECONDS = 20.0
SILENT_SECONDS = 120.0  # without an answer to a ping, after which a socket is closed: a page may be drawing
_CLOSE_SECONDS = 2.0
_SCRIPT = re.compile(rb"<script\b[^>]*>(.*?)</script>", re.DOTALL | re.IGNORECASE)
# Notebooks of this machine; only VS Code itself, no site, has pages of its schemes.
_SELF = "'self'"
_FRAMED_BY = "frame-ancestors 'self' http://127.0.0.1:* http://localhost:* vscode-webview: vscode-file:"

_LOGGER = logging.getLogger("raybox.view")
_LOGGER.addHandler(logging.NullHandler())  # refused connections print nothing
T = TypeVar("T")
Serve = Callable[["ServerConnection"], Awaitable[None]]


def is_own_page(origin: str | None, host_header: str, host: str, names: Collection[str] = ()) -> bool:
    """Return whether a connection comes from the page served here, or from a program.

    A program sends no origin. The page must have been requested under an IP address, the name served at, or
    an allowed one: any other name may be of a foreign site that resolves to this machine (DNS rebinding).
    Where only this machine can connect, the address must be a loopback address.
    """
    if origin is not None and origin.partition("://")[2].lower() != host_header.lower():
        return False
    try:
        name = (urlsplit(f"//{host_header}").hostname or "").lower()
    except ValueError:
        return False
    if name and (name in names or name == host.lower() or _is_loopback(name)):
        return True
    return _address(name) is not None and not _is_loopback(host)


def content_policy(page: bytes, connect: str) -> str:
    """Return the policy of a page (CSP): its own scripts by their hashes, and connections to `connect`."""
    hashes = (base64.b64encode(hashlib.sha256(text).digest()).decode() for text in _SCRIPT.findall(page))
    allowed = " ".join(f"'sha256-{one}'" for one in hashes) or "'none'"
    return (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:; "
        f"connect-src {connect}; worker-src blob:; base-uri 'none'; form-action 'none'"
    )


def _response(status: HTTPStatus, text: str | bytes, policy: str = "default-src 'none'") -> "Response":
    """Return a page, of bytes, or a line of text."""
    from websockets.datastructures import Headers
    from websockets.http11 import Response

    kind, body = ("plain", f"{text}\n".encode()) if isinstance(text, str) else ("html", text)
    headers = {
        "Content-Type": f"text/{kind}; charset=utf-8",
        "Content-Length": str(len(body)),
        "Content-Security-Policy": policy,
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Cache-Control": "no-store",
        "Connection": "close",
    }
    return Response(status.value, status.phrase, Headers(headers), body)


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the IP address that a text is; None for names."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


@final
class PageServer:
    """Serves a page at an address, and under more names of hosts, and a session to each of its sockets.

    message_limit: bytes of the largest message of a page.
    """

    def __init__(
        self, page: bytes, host: str, port: int, names: Collection[str], serve: Serve, message_limit: int
    ) -> None:
        if find_spec("websockets") is None:
            missing = "the viewer needs websockets, which is not installed"
            raise RayboxError(f'{missing}; run: pip install "raybox[view]"')
        if isinstance(names, str) or not all(isinstance(name, str) and name for name in names):
            raise InvalidInput(f"allowed_hosts must be a list of host names; got {names!r}.")
        self._page, self._host, self._serve = page, host, serve
        self._names = frozenset(name.lower() for name in names)
        self._limit = max(MAX_MESSAGE, message_limit)
        self._socket = _listening(host, port)
        self.port: Final[int] = self._socket.getsockname()[1]
        self._ready = threading.Event()
        run = partial(asyncio.run, self._main())
        self._thread = threading.Thread(target=run, name="raybox-view", daemon=True)
        self._thread.start()
        self._ready.wait()

    def call(self, work: Coroutine[None, None, T]) -> T:
        """Return the result of a coroutine that runs on the server's loop."""
        if not self._thread.is_alive():
            work.close()
            raise RayboxError("the server has stopped; call raybox.view again")
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    def stop(self) -> None:
        """Close all sockets; again does nothing."""
        if self._thread.is_alive():
            self._loop.call_soon_threadsafe(self._end.set)
            self._thread.join()

    async def _main(self) -> None:
        from websockets.asyncio.server import serve

        self._loop, self._end = asyncio.get_running_loop(), asyncio.Event()
        async with serve(
            self._serve,
            sock=self._socket,
            process_request=self._answer,
            max_size=self._limit,
            compression=None,  # so that limits hold for what arrives
            server_header=None,
            logger=_LOGGER,
            ping_interval=PING_SECONDS,
            ping_timeout=SILENT_SECONDS,
            close_timeout=_CLOSE_SECONDS,
        ):
            self._ready.set()
            await self._end.wait()

    def _answer(self, _: "ServerConnection", request: "Request") -> "Response | None":
        """Return the answer to a request; None for a socket of the page, which is let in."""
        path, headers = request.path.partition("?")[0], request.headers
        hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
        if len(hosts) != 1 or len(origins) > 1:
            return _response(HTTPStatus.BAD_REQUEST, "a request must have one Host, and one Origin at most")
        if not is_own_page(next(iter(origins), None), hosts[0], self._host, self._names):
            refusal = "only raybox's own page may connect, under an allowed host name"
            return _response(HTTPStatus.FORBIDDEN, refusal)
        if getattr(request, "method", "GET") != "GET":  # websockets refuses others itself before version 17
            return _response(HTTPStatus.METHOD_NOT_ALLOWED, "there is only GET")
        if path == "/socket":
            return None
        if path != "/":
            return _response(HTTPStatus.NOT_FOUND, "there is only /")
        policy = f"{content_policy(self._page, _SELF)}; {_FRAMED_BY}"
        return _response(HTTPStatus.OK, self._page, policy)


def address_of(host: str, port: int) -> str:
    """Return the address to open; for 0.0.0.0 and [::], the loopback address."""
    name = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host
    return f"http://{f'[{name}]' if ':' in name else name}:{port}"


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to the requested port, or to the next free one.

    It states its protocol: without it, asyncio delays small messages by 40 ms.
    """
    if not 0 <= port <= 65535:
        rule = "port must be from 0 to 65535"
        raise InvalidInput(f"{rule}; got {port}. The default is 8080; 0 takes any free port.")
    problem, is_v6 = "", ":" in host
    family, dual = (socket.AF_INET6 if is_v6 else socket.AF_INET), is_v6 and socket.has_dualstack_ipv6()
    for number in range(port, min(port + PORTS_TRIED, 65536)):
        try:
            bound = socket.create_server((host, number), family=family, dualstack_ipv6=dual)
        except OSError as error:
            problem = str(error.strerror or error)
        else:
            return socket.socket(bound.family, bound.type, socket.IPPROTO_TCP, bound.detach())
    raise RayboxError(f"cannot listen at {host} from port {port} on: {problem}; pass another host or port")
