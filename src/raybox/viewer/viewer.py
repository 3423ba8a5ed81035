"""`view` and `Viewer`: a page that a server shows, and the same page as a file."""

from __future__ import annotations

import asyncio
import atexit
import os
import secrets
import time
import traceback
import warnings
from collections.abc import Callable, Collection, Coroutine
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, TypeVar, cast, final

import numpy as np

from raybox.compiler.float_environment import guard_class, in_default_environment
from raybox.errors import InvalidInput, RayboxError
from raybox.geometry import Rays
from raybox.hits import AllHits
from raybox.validation import ArrayInput, Bools, Ints, MaskInput
from raybox.viewer.content import LayerInput, Layers, PageContent, built_page, layer_of, linked, make_content
from raybox.viewer.frames import frame, hits_frame
from raybox.viewer.messages import ByLabel, ByOther, Camera, End, Up, Vector, ViewFields
from raybox.viewer.server import PageServer, address_of
from raybox.viewer.session import Session, Task
from raybox.viewer.stage import Stage, ViewInput, make_stage, stage_of_bytes

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection

_SEND_SECONDS = 5.0
_LASTING = "camera", "colour", "selection"  # of a view, for pages that open later
PageWork = Callable[[Session], Coroutine[None, None, None]]
Picked = TypeVar("Picked", bound=Callable[[AllHits], object])


@final
@guard_class("url", "selection", "answer", "save_png", "on_pick", "wait", "stop")
class Viewer:
    """A served page that shows a scene and casts the rays of clicks; made by `view`.

    What it shows has names: that of the file or "scene", "rays", "points", and those of `add`. Each page that
    is open has its own state: what users hide there, or upload, is so there alone.
    """

    def __init__(
        self,
        content: PageContent,
        host: str,
        port: int,
        allowed_hosts: Collection[str] = (),
        *,
        live: bool = False,
    ) -> None:
        self._content, self._host, self._live = content, host, live
        self._name = secrets.token_hex(8)
        self._view: ViewFields = {}
        self._selection: dict[str, Ints] = {}
        self._last: AllHits | None = None
        self._sessions: list[Session] = []
        self._uploads: set[Task] = set()
        self._callbacks: list[Callable[[AllHits], object]] = []
        self._calls = ThreadPoolExecutor(1, "raybox-view-callbacks")
        self._lock = RLock()
        mask_size = len(content.stage.visible) // 8 + 2  # bytes
        self._server = PageServer(built_page(), host, port, allowed_hosts, self._serve, mask_size)
        atexit.register(self.stop)

    @property
    def url(self) -> str:
        """The address to open in a browser."""
        return address_of(self._host, self._server.port)

    @property
    def selection(self) -> dict[str, Ints]:
        """Objects selected last, by `select` or on a page: int64 numbers within each geometry, by name."""
        return dict(self._selection)

    def add(self, name: str, content: LayerInput, *, color: str | None = None) -> None:
        """Show a geometry, a file, rays, or the points of hits, in place of what has this name.

        color: "#rrggbb", or None for the page's. The label "layer" has the names of several geometries.
        """
        with self._lock:
            self._show({**self._content.layers, name: layer_of(content, color)})

    def remove(self, name: str) -> None:
        """Remove what has a name; the last geometry cannot be removed."""
        with self._lock:
            self._content.layer(name)
            self._show({key: one for key, one in self._content.layers.items() if key != name})

    def hide(self, name: str, objects: MaskInput = None) -> None:
        """Hide what has a name, or some objects of a geometry, on open pages and in those to come.

        objects: numbers within the geometry, a mask, or an expression of labels.
        """
        self._set_visible(name, objects, on=False)

    def show(self, name: str, objects: MaskInput = None) -> None:
        """Show what `hide` hides."""
        self._set_visible(name, objects, on=True)

    def select(self, name: str | None = None, objects: MaskInput = None) -> None:
        """Select objects of a geometry, as of `hide`; without a name, none."""
        with self._lock:
            content = self._content
            own = np.zeros(0, np.int64) if name is None else content.geometry(name).chosen(objects)
            self._selection = {} if name is None else {name: own}
            first = 0 if name is None else content.objects[name].start
            self._change({"selection": (own + first).tolist()})

    def color_by(self, label: str | None) -> None:
        """Colour objects by a label, by "height", or by the "colors" of files; for None, all alike."""
        stage = self._content.stage
        others: dict[str | None, ByOther] = {None: {"by": "plain"}, "height": {"by": "height"}}
        others |= {"colors": {"by": "file"}} if stage.has_colors else {}
        if label not in stage.labels and label not in others:
            names = ", ".join([*stage.labels, *filter(None, others)])
            raise InvalidInput(f"there is no label {label!r}; there are: {names}.")
        own: ByLabel = {"by": "label", "label": str(label)}
        self._change({"colour": own if label in stage.labels else others[label]})

    def camera(self, eye: ArrayInput, target: ArrayInput, *, up: Up | None = None, fov: float = 45.0) -> None:
        """Look from a point at another, both (3,); fov is vertical, in degrees; up: None is the file's."""
        ends = np.array([eye, target], np.float64)
        distance = float(np.linalg.norm(ends[1] - ends[0])) if ends.shape == (2, 3) else np.nan
        if not (0 < distance < np.inf and 0 < fov < 180 and up in (None, "x", "y", "z")):
            rule = 'eye and target must be two points in 3D, fov within 0 and 180 degrees, up "x", "y" or "z"'
            raise InvalidInput(f"{rule}; got {eye!r}, {target!r}, {fov!r}, {up!r}.")
        first, last = cast("list[Vector]", ends.tolist())
        height, axis = float(2 * distance * np.tan(np.radians(fov) / 2)), up or self._content.stage.up
        look = Camera(eye=first, target=last, up=axis, orthographic=False, height=height, fov=float(fov))
        self._change({"camera": look})

    def on_pick(self, callback: Picked) -> Picked:
        """Call a function with all hits of each ray that a user picks with; return the function.

        Calls follow one another on a thread of their own, after `selection` has changed; exceptions are
        printed.
        """
        self._callbacks.append(callback)
        return callback

    def click(self, origin: ArrayInput, direction: ArrayInput) -> AllHits:
        """Return all hits of a ray in scene coordinates, and show them on all open pages, as of a click.

        Hits are those of `Scene.all`, with ids and labels; ``by_object()`` gives a row for each object.
        """
        ray = Rays(origin, direction)
        if ray.shape or ray.ndim_space != 3:
            found = f"got rays of shape {ray.shape}, D={ray.ndim_space}"
            raise InvalidInput(f"a click must be one ray in 3D; {found}")
        content = self._content
        self._last = hits = content.stage.all(ray)
        first = content.stage.objects_of(hits)[:1]
        self._selected(content, np.isin(np.arange(len(content.stage.visible)), first))
        answer = hits_frame(content.stage, ray, hits, seq=0)
        self._server.call(self._with_all(lambda page: page.send(answer), content))
        return hits

    def open(self, name: str, content: bytes) -> None:
        """Replace the scene of all open pages by that of a file's bytes; an error changes nothing."""
        made = make_content(stage_of_bytes(name, content))
        with self._lock:
            self._content, self._selection, self._view, self._last = made, {}, {}, None
            self._server.call(self._with_all(lambda page: page.show(made)))

    def html(self) -> str:
        """Return the page with its scene as one HTML file, which needs no server."""
        return self._content.saved(self._view or None).decode()

    def save_html(self, path: str | os.PathLike[str]) -> None:
        """Write `html` to a file."""
        Path(path).write_bytes(self.html().encode())

    def screenshot(self, path: str | os.PathLike[str] | None = None, *, scale: float = 2.0) -> bytes:
        """Return the picture of the page opened last, as PNG, and write it to a file if a path is given.

        It has the legend and the scale bar. scale: pixels for one of the page, along each axis, from 1 to 4.
        """
        if not 1 <= scale <= 4:
            raise InvalidInput(f"scale must be from 1 to 4; got {scale!r}.")
        if not self._sessions:
            raise RayboxError(f"no browser has the page open to draw the picture; open {self.url}")
        picture = self._server.call(self._sessions[-1].picture(float(scale)))
        if path is not None:
            Path(path).write_bytes(picture)
        return picture

    def save_png(self, path: str | os.PathLike[str]) -> None:
        """Write `screenshot` to a file: this older name is deprecated."""
        warnings.warn("Viewer.save_png is now Viewer.screenshot", DeprecationWarning, stacklevel=2)
        self.screenshot(path)

    @property
    def answer(self) -> AllHits | None:
        """The hits of the ray cast last: deprecated; `click` returns them, and `on_pick` passes them."""
        text = "Viewer.answer is now what Viewer.click returns and Viewer.on_pick passes"
        warnings.warn(text, DeprecationWarning, stacklevel=2)
        return self._last

    def wait(self) -> None:
        """Serve until Ctrl-C."""
        while True:
            time.sleep(3600)

    def stop(self) -> None:
        """Stop the server; open pages say so."""
        atexit.unregister(self.stop)
        self._calls.shutdown(wait=False, cancel_futures=True)
        end = End(kind="end", text="the server has stopped; start it again to go on")
        with suppress(RayboxError):  # it has stopped before
            self._server.call(self._with_all(lambda page: page.send(frame(end))))
        self._server.stop()

    def _repr_html_(self) -> str:
        """Return what a notebook shows: the page itself, or with `live` the served one."""
        return linked(self.url) if self._live else self._content.embedded(self._view or None, self.url)

    def __enter__(self) -> Viewer:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def _set_visible(self, name: str, objects: MaskInput, on: bool) -> None:
        with self._lock:
            old, layer = self._content, self._content.layer(name)
            if objects is None and not isinstance(layer.content, Stage):
                self._show({**old.layers, name: layer._replace(is_visible=on)})
                return
            layers, ranges = old.with_visible(name, objects, on)
            self._content = old.with_layers(layers)
            self._change({"show": ranges} if on else {"hide": ranges}, old)

    def _show(self, layers: Layers) -> None:
        """Show layers on all open pages, whose view stays."""
        old = self._content
        self._content = new = old.with_layers(layers)
        runs, names = new.runs_that_stay(old), new.staying(old)
        self._selection = {name: own for name, own in self._selection.items() if name in names}
        self._view.pop("selection", None)
        self._server.call(self._with_all(lambda page: page.show(new, runs), old))

    def _change(self, view: ViewFields, shown: PageContent | None = None) -> None:
        """Change the view of pages that show some content, and of those that open later."""
        content = self._content
        self._view |= cast("ViewFields", {key: view[key] for key in _LASTING if key in view})  # type: ignore[literal-required]
        self._server.call(self._with_all(lambda page: page.change(content, view), shown or content))

    async def _serve(self, connection: ServerConnection) -> None:
        session = Session(connection, self._content, self._uploads, self._picked, self._selected)
        self._sessions.append(session)
        try:
            await session.run(self._name, self._view)
        finally:
            self._sessions.remove(session)

    def _selected(self, content: PageContent, mask: Bools) -> None:
        if content is self._content:
            named = content.objects.items()
            own = {name: np.flatnonzero(mask[some.start : some.stop]) for name, some in named}
            self._selection = {name: numbers for name, numbers in own.items() if numbers.size}

    def _picked(self, content: PageContent, hits: AllHits) -> None:
        if content is self._content:
            self._last = hits
            for callback in self._callbacks:
                self._calls.submit(_call, callback, hits)

    async def _with_all(self, work: PageWork, content: PageContent | None = None) -> None:
        """Await work with all open pages, or those that show some content; slow ones do not matter."""
        pages = [page for page in self._sessions if content is None or page.content is content]
        tasks = [asyncio.ensure_future(work(page)) for page in pages]
        if tasks:
            _, late = await asyncio.wait(tasks, timeout=_SEND_SECONDS)
            for task in late:
                task.cancel()


def _call(callback: Callable[[AllHits], object], hits: AllHits) -> None:
    try:
        callback(hits)
    except Exception:
        traceback.print_exc()


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
    allowed_hosts: Collection[str] = (),
    live: bool = False,
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
    live : bool
        A notebook shows the served page, which methods of `Viewer` change; its browser must run on the same
        machine. False: it shows a page of its own, as it is when the cell ends; of a large scene, a picture
        and a link.

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
    hides = False if all_objects else None
    stage = make_stage(scene, boxes=boxes, where=where, hides_spaces=hides, credit=credit)
    return Viewer(make_content(stage, rays, is_scan=points), host, port, allowed_hosts, live=live)
