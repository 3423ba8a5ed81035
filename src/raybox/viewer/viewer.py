"""`view` and `Viewer`: a page that a server shows, and the same page as a file."""

from __future__ import annotations

import asyncio
import atexit
import os
import secrets
import time
from collections.abc import Callable, Coroutine, Iterable
from contextlib import suppress
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, final

from raybox.compiler.float_environment import guard_class, in_default_environment
from raybox.errors import InvalidInput, RayboxError
from raybox.geometry import Rays
from raybox.hits import AllHits
from raybox.validation import ArrayInput, MaskInput
from raybox.viewer import open_file
from raybox.viewer.content import PageContent, built_page, make_content
from raybox.viewer.door import Door, checked_names
from raybox.viewer.frames import frame, hits_frame
from raybox.viewer.open_file import ViewInput
from raybox.viewer.server import PageServer, address_of
from raybox.viewer.session import Session, Task

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection

_SEND_SECONDS = 5.0
PageWork = Callable[[Session], Coroutine[None, None, None]]


@final
@guard_class("url", "stage", "wait", "stop")
class Viewer:
    """A served page that shows a scene and casts the rays of clicks; made by `view`.

    Each page that is open has its own state: what is hidden there, or uploaded, is so there alone.
    """

    def __init__(self, content: PageContent, host: str, port: int, allowed_hosts: Iterable[str] = ()) -> None:
        self._content, self._host = content, host
        self._name = secrets.token_hex(8)
        self._sessions: list[Session] = []
        self._uploads: set[Task] = set()
        self._last: AllHits | None = None
        door = Door(host, checked_names(allowed_hosts), built_page())
        self._server = PageServer(door, port, self._serve, most_objects=len(content.stage.visible))
        atexit.register(self.stop)

    @property
    def url(self) -> str:
        """The address to open in a browser."""
        return address_of(self._host, self._server.port)

    @property
    def answer(self) -> AllHits | None:
        """All hits of the ray of the last click of any page; None without one."""
        return self._last

    def click(self, origin: ArrayInput, direction: ArrayInput) -> AllHits:
        """Return all hits of a ray in scene coordinates, and show them on all open pages, as of a click.

        Hits are those of `Scene.all`, with ids and labels; ``by_object()`` gives a row for each object.
        """
        ray = Rays(origin, direction)
        if ray.shape or ray.ndim_space != 3:
            found = f"got rays of shape {ray.shape}, D={ray.ndim_space}"
            raise InvalidInput(f"a click must be one ray in 3D; {found}")
        content, hits = self._content, self._content.stage.all(ray)
        self._set_last(hits)
        answer = hits_frame(content.stage, ray, hits, seq=0)
        self._server.call(self._with_all(lambda page: page.send(answer), content))
        return hits

    def open(self, name: str, content: bytes) -> None:
        """Replace the scene of all open pages by that of a file's bytes; an error changes nothing."""
        self._content, self._last = make_content(open_file.stage_of_bytes(name, content)), None
        self._server.call(self._with_all(lambda page: page.show(self._content)))

    def html(self) -> str:
        """Return the page with its scene as one HTML file, which needs no server."""
        return self._content.saved().decode()

    def save_html(self, path: str | os.PathLike[str]) -> None:
        """Write `html` to a file."""
        Path(path).write_bytes(self._content.saved())

    def save_png(self, path: str | os.PathLike[str]) -> None:
        """Write the picture that the page opened last shows, with its legend and scale."""
        if not self._sessions:
            raise RayboxError(f"no browser has the page open to draw the picture; open {self.url}")
        Path(path).write_bytes(self._server.call(self._sessions[-1].picture()))

    def wait(self) -> None:
        """Serve until Ctrl-C."""
        while True:
            time.sleep(3600)

    def stop(self) -> None:
        """Stop the server; open pages say so."""
        atexit.unregister(self.stop)
        end = frame("end", text="the server has stopped; start it again to go on")
        with suppress(RayboxError):  # it has stopped before
            self._server.call(self._with_all(lambda page: page.send(end)))
        self._server.stop()

    def _repr_html_(self) -> str:
        """Return the page in a frame, as a notebook shows it."""
        safe = escape(self.url, quote=True)
        return (
            f'<iframe src="{safe}" title="raybox" width="100%" height="560" style="border: 0"></iframe>'
            f'<p><a href="{safe}" target="_blank" rel="noopener">{safe}</a></p>'
        )

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    async def _serve(self, connection: ServerConnection) -> None:
        session = Session(connection, self._content, self._uploads, self._set_last)
        self._sessions.append(session)
        try:
            await session.run(self._name)
        finally:
            self._sessions.remove(session)

    def _set_last(self, hits: AllHits) -> None:
        self._last = hits

    async def _with_all(self, work: PageWork, content: PageContent | None = None) -> None:
        """Await work with all open pages, or those that show some content; slow ones do not matter."""
        pages = [page for page in self._sessions if content is None or page.content is content]
        tasks = [asyncio.ensure_future(work(page)) for page in pages]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=_SEND_SECONDS)
            for task in late:
                task.cancel()


@in_default_environment
def view(  # noqa: PLR0913
    scene: ViewInput,
    rays: Rays | None = None,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    boxes: bool = False,
    all_objects: bool = False,
    where: MaskInput = None,
    points: bool = False,
    credit: str = "",
    allowed_hosts: Iterable[str] = (),
) -> Viewer:
    """Show a scene in the browser, where a click casts a ray through its pixel.

    Picking is exact, on the float64 numbers of the scene; only the drawing is in float32.

    Parameters
    ----------
    scene : path, Boxes, Grid, Mesh, Planes, Instances, Scene, or a list of paths and geometries
        A path is read like `load`, with the file's ids and labels. Of a `Grid`, visible cells are drawn, or
        its outline.
    rays : Rays, optional
        Listed with their nearest hits; an even sample of 20,000 is drawn.
    host : str
        Address to serve at. Only this machine can reach the default; others can reach "0.0.0.0".
    port : int
        If it is in use, the next free one; 0 for any. `Viewer.url` contains it.
    boxes : bool
        Show one box of each object of a file, in place of its triangles.
    all_objects : bool
        Of IFC files: show spaces and openings at the start. They are read in any case.
    where : array_like of bool, or str, optional
        Show and hit only these rows at the start, as for `Scene.nearest`; numbers are those of the whole
        scene. The page can show the others.
    points : bool
        Draw t = 1 of each ray as a point: the rays of a scan, as `load` makes them with ``origin``.
    credit : str
        Where the scene comes from, shown on the page.
    allowed_hosts : list of str
        Host names, besides IP addresses and localhost, under which browsers may request the page.

    Returns
    -------
    Viewer
        Serves on its own threads until `stop` or the end of the program. A notebook shows the page.

    Raises
    ------
    RayboxError
        If websockets is not installed, or the server cannot listen at the address.
    FileFormatError
        As for `load`.

    Examples
    --------
    >>> import raybox as rb
    >>> boxes = rb.Boxes([[2, -1, -1], [5, -1, -1]], [[3, 1, 1], [6, 1, 1]])
    >>> with rb.view(boxes, port=0) as viewer:
    ...     viewer.click([0, 0, 0], [1, 0, 0]).t
    array([2., 5.])
    """
    stage = open_file.stage_of(scene, boxes=boxes, all_objects=all_objects, where=where, credit=credit)
    return Viewer(make_content(stage, rays, is_scan=points), host, port, allowed_hosts)
