"""The server of a page: one thread with an event loop, and a session for each page that is open."""

import asyncio
import logging
import socket
import threading
from collections.abc import Awaitable, Callable, Coroutine
from functools import partial
from importlib.util import find_spec
from typing import TYPE_CHECKING, Final, TypeVar, final

from raybox.errors import InvalidInput, RayboxError
from raybox.viewer.door import Door
from raybox.viewer.messages import MAX_MESSAGE

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection

PORTS_TRIED = 100  # from the requested port on
PING_SECONDS = 20.0
SILENT_SECONDS = 120.0  # without an answer to a ping, after which a socket is closed: a page may be drawing
_CLOSE_SECONDS = 2.0

_LOGGER = logging.getLogger("raybox.view")
_LOGGER.addHandler(logging.NullHandler())  # refused connections print nothing
T = TypeVar("T")
Serve = Callable[["ServerConnection"], Awaitable[None]]


@final
class PageServer:
    """Serves one page, and a session to each of its sockets, until `stop`."""

    def __init__(self, door: Door, port: int, serve: Serve, *, most_objects: int = 0) -> None:
        if find_spec("websockets") is None:
            missing = "the viewer needs websockets, which is not installed"
            raise RayboxError(f'{missing}; run: pip install "raybox[view]"')
        self._socket = _listening(door.host, port)
        self.port: Final[int] = self._socket.getsockname()[1]
        self._door, self._serve = door, serve
        self._most = max(MAX_MESSAGE, most_objects // 8 + 1) + 1
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
            process_request=self._door.process,
            max_size=self._most,
            compression=None,  # so that limits hold for what arrives
            server_header=None,
            logger=_LOGGER,
            ping_interval=PING_SECONDS,
            ping_timeout=SILENT_SECONDS,
            close_timeout=_CLOSE_SECONDS,
        ):
            self._ready.set()
            await self._end.wait()


def address_of(host: str, port: int) -> str:
    """Return the address to open; for 0.0.0.0 and [::], the loopback address."""
    name = "127.0.0.1" if host in ("0.0.0.0", "::", "") else host
    return f"http://{f'[{name}]' if ':' in name else name}:{port}"


def _listening(host: str, port: int) -> socket.socket:
    """Return a socket that is bound to the requested port, or to the next free one.

    It states its protocol: without it, asyncio delays small messages by 40 ms.
    """
    if not 0 <= port <= 65535:
        raise InvalidInput(
            f"port must be from 0 to 65535; got {port}. The default is 8080; 0 takes any free port."
        )
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
