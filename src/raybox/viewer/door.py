"""The requests that the server answers: its own page, under allowed names of hosts."""

import base64
import hashlib
import ipaddress
import re
from collections.abc import Collection, Iterable
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from raybox.errors import InvalidInput

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection
    from websockets.http11 import Request, Response

_SCRIPT = re.compile(rb"<script\b[^>]*>(.*?)</script>", re.DOTALL | re.IGNORECASE)
_FRAMED_BY = "; frame-ancestors 'self' http://127.0.0.1:* http://localhost:*"  # notebooks of this machine


class Door(NamedTuple):
    """What of requests is let in: the address served at, more names of hosts, and the page."""

    host: str
    names: frozenset[str]
    page: bytes

    def process(self, _: "ServerConnection", request: "Request") -> "Response | None":
        """Return the answer to a request; None for a socket of the page, which is let in."""
        path, headers = request.path.partition("?")[0], request.headers
        hosts, origins = headers.get_all("Host"), headers.get_all("Origin")
        if len(hosts) != 1 or len(origins) > 1:
            return _response(
                HTTPStatus.BAD_REQUEST, b"a request must have one Host, and one Origin at most\n"
            )
        if not is_own_page(next(iter(origins), None), hosts[0], self.host, self.names):
            refusal = b"only raybox's own page may connect, under an allowed host name\n"
            return _response(HTTPStatus.FORBIDDEN, refusal)
        if getattr(request, "method", "GET") != "GET":  # websockets refuses others itself before version 17
            return _response(HTTPStatus.METHOD_NOT_ALLOWED, b"there is only GET\n")
        if path == "/socket":
            return None
        if path != "/":
            return _response(HTTPStatus.NOT_FOUND, b"there is only /\n")
        return _response(HTTPStatus.OK, self.page, content_policy(self.page, "'self'") + _FRAMED_BY)


def checked_names(allowed_hosts: Iterable[str]) -> frozenset[str]:
    """Return names of hosts in lower case; refuse anything else."""
    if isinstance(allowed_hosts, str) or not all(isinstance(name, str) and name for name in allowed_hosts):
        raise InvalidInput(f"allowed_hosts must be a list of host names; got {allowed_hosts!r}.")
    return frozenset(name.lower() for name in allowed_hosts)


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
        name = ""
    if name and (name == host.lower() or name in names or _is_loopback(name)):
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


def _response(status: HTTPStatus, body: bytes, policy: str = "default-src 'none'") -> "Response":
    from websockets.datastructures import Headers
    from websockets.http11 import Response

    kind = "text/html" if status is HTTPStatus.OK else "text/plain"
    headers = Headers(
        {
            "Content-Type": f"{kind}; charset=utf-8",
            "Content-Length": str(len(body)),
            "Content-Security-Policy": policy,
            "X-Content-Type-Options": "nosniff",
            "Referrer-Policy": "no-referrer",
            "Cache-Control": "no-store",
            "Connection": "close",
        }
    )
    return Response(status.value, status.phrase, headers, body)


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host.lower() == "localhost" or (address is not None and address.is_loopback)


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Return the IP address that a text is; None for names."""
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
