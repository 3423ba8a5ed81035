"""One open page: its scene, its mask, its upload; and the answers to its messages."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple, final

import numpy as np

from raybox._version import __version__
from raybox.errors import InvalidInput, RayboxError
from raybox.geometry import Rays
from raybox.hits import AllHits
from raybox.validation import Bools
from raybox.viewer import messages
from raybox.viewer.content import PageContent, with_file
from raybox.viewer.frames import hits_frame, message
from raybox.viewer.layers import runs_that_stay
from raybox.viewer.messages import (
    PICTURE_PART,
    UPLOAD_PART,
    Begin,
    ChangeView,
    DrawPicture,
    Failure,
    FileHeader,
    PickRay,
    Progress,
    Renumber,
    Request,
    Uploaded,
    ViewFields,
)
from raybox.viewer.open_file import check_upload
from raybox.viewer.uploads import MAX_PICTURE, MAX_UPLOADS, PICTURE_SECONDS, SILENT_SECONDS, Parts

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection

Task = asyncio.Task[None]


class Listener(NamedTuple):
    """Functions that hear of what users do on pages, with the content that their page shows."""

    picked: Callable[[PageContent, AllHits], None]
    selected: Callable[[PageContent, Bools], None]


_FRAGMENT = 2**18  # bytes


@final
class Session:
    """The state of one page, apart from that of all others.

    uploads: those that run, of all pages.
    """

    def __init__(
        self, connection: "ServerConnection", content: PageContent, uploads: set[Task], listener: Listener
    ) -> None:
        self.content = content
        self._connection, self._uploads, self._listener = connection, uploads, listener
        self._mask: Bools | None = None
        self._before = 0  # objects of the scene that was shown before
        self._mask_changed, self._drawing, self._showing = asyncio.Event(), asyncio.Lock(), asyncio.Lock()
        self._parts: dict[bytes, Parts] = {}
        self._opening: Task | None = None

    async def run(self, server_name: str, view: ViewFields) -> None:
        """Show the scene in a view, and answer messages until the page closes.

        server_name: the same as long as a server runs, so that a page that connects again can go on.
        """
        from websockets.exceptions import ConnectionClosed

        tables = asyncio.ensure_future(self._send_tables())
        try:
            with suppress(ConnectionClosed):
                begin = Begin(kind="begin", session=server_name, version=__version__, view=view)
                await self.send(message(begin))
                await self.show(self.content)
                async for received in self._connection:
                    await self._receive(received)
        finally:
            tables.cancel()
            self._end_upload()
            for parts in self._parts.values():
                parts.fail()

    async def send(self, content: bytes) -> None:
        """Send a frame in parts, as fast as the page reads them; nothing once the page is closed."""
        from websockets.exceptions import ConnectionClosed

        view = memoryview(content)
        parts = (view[start : start + _FRAGMENT] for start in range(0, len(view), _FRAGMENT))
        with suppress(ConnectionClosed):
            await self._connection.send(parts)

    async def show(self, content: PageContent, runs: list[tuple[int, int, int]] | None = None) -> None:
        """Replace the scene of this page; runs of objects that stay, as in "renumber", keep the view."""
        self._before = len(self.content.stage.visible)
        self.content, self._mask = content, None
        async with self._showing:  # one scene after another
            if runs is not None:
                await self.send(message(Renumber(kind="renumber", runs=runs)))
            for one in content.all_frames:
                await self.send(one)

    async def change(self, content: PageContent, view: ViewFields) -> None:
        """Change the view; content: what is shown, with other objects visible at the start."""
        self.content = content
        await self.send(message(ChangeView(kind="view", view=view)))

    async def picture(self, scale: float) -> bytes:
        """Return the picture that the page draws; raise `RayboxError` if there is none."""
        content = b""
        async with self._drawing:
            parts = self._parts[PICTURE_PART] = Parts("picture", MAX_PICTURE, PICTURE_SECONDS)
            await self.send(message(DrawPicture(kind="picture", scale=scale)))
            with suppress(RayboxError):
                content = await parts.content()
        if not content:
            raise RayboxError("the page has drawn no picture; reload it, or pass a smaller scale")
        return content

    async def _receive(self, received: str | bytes) -> None:
        """Answer one message; an error is an answer too."""
        seq = None
        try:
            if isinstance(received, bytes):
                self._receive_bytes(received[:1], memoryview(received)[1:])
                return
            request = messages.parse(received)
            seq = request["seq"]
            await self._answer(request)
        except Exception as error:
            await self._send_error(error, seq)

    async def _send_error(self, error: Exception, seq: int | None) -> None:
        text = str(error) if isinstance(error, RayboxError) else f"that did not work: {type(error).__name__}"
        await self.send(message(Failure(kind="error", text=text, seq=seq)))

    def _receive_bytes(self, kind: bytes, content: memoryview) -> None:
        is_of_before = len(content) == (self._before + 7) // 8 != (len(self.content.stage.visible) + 7) // 8
        if kind in (messages.MASK, messages.SELECTION) and is_of_before:
            return  # sent before the page had this scene
        if kind == messages.MASK:
            self._mask = self._objects(content)
            self._mask_changed.set()
        elif kind == messages.SELECTION:
            self._listener.selected(self.content, self._objects(content))
        elif kind not in (UPLOAD_PART, PICTURE_PART):
            raise InvalidInput("a binary message must begin with 1, 2, 3 or 4; reload the page.")
        elif kind in self._parts:
            self._parts[kind].add(content)

    async def _answer(self, request: Request) -> None:
        """Send the answer to a message; that to an upload comes later, and one to a report never."""
        seq = request["seq"]
        if request["kind"] == "pick":
            await self._cast(_ray_of(request), seq)
        elif request["kind"] == "picked":
            hits = await asyncio.to_thread(self.content.stage.all, _ray_of(request), self._mask)
            self._listener.picked(self.content, hits)
        elif request["kind"] == "ray":
            await self._cast_row(request["row"], seq)
        elif request["kind"] == "save":
            page = await asyncio.to_thread(self.content.saved, request["state"], self._mask)
            header = FileHeader(
                kind="file", seq=seq, name=f"{PurePath(self.content.stage.name).stem or 'raybox'}.html"
            )
            await self.send(message(header, {"content": np.frombuffer(page, np.uint8)}))
        else:
            self._begin_upload(request["name"], request["size"], seq)

    async def _cast(self, ray: Rays, seq: int, row: int | None = None) -> None:
        stage, mask = self.content.stage, self._mask
        hits = await asyncio.to_thread(stage.all, ray, mask)
        await self.send(hits_frame(stage, ray, hits, seq=seq, row=row))

    async def _cast_row(self, row: int, seq: int) -> None:
        rays = self.content.rays
        count = 0 if rays is None else len(rays)
        if rays is None or row >= count:
            raise InvalidInput(f"row must be that of a ray; got {row} of {count:,}.")
        await self._cast(rays[row], seq, row)

    def _objects(self, bits: memoryview) -> Bools:
        """Return a mask of objects from a bit for each."""
        count = len(self.content.stage.visible)
        if len(bits) != (count + 7) // 8:
            rule = f"a mask must have a bit for each of {count:,} objects"
            raise InvalidInput(f"{rule}; got {len(bits):,} bytes.")
        return np.unpackbits(np.frombuffer(bits, np.uint8), count=count, bitorder="little").astype(np.bool_)

    async def _send_tables(self) -> None:
        """Cast all rays again after a change of the mask; of many changes at once, the last counts."""
        while await self._mask_changed.wait():
            self._mask_changed.clear()
            content = self.content
            table = await asyncio.to_thread(content.table_of, self._mask)
            if table is not None and content is self.content and not self._mask_changed.is_set():
                await self.send(table)

    def _begin_upload(self, name: str, size: int, seq: int) -> None:
        """Begin an upload, in place of an earlier one; raise if it is refused."""
        self._end_upload()
        plain = check_upload(name, size)
        if len(self._uploads) >= MAX_UPLOADS:
            raise RayboxError("too many uploads at a time; wait until one ends")
        parts = self._parts[UPLOAD_PART] = Parts(plain, size, SILENT_SECONDS)
        self._opening = asyncio.ensure_future(self._open(parts, seq))
        self._uploads.add(self._opening)
        self._opening.add_done_callback(self._uploads.discard)

    async def _open(self, parts: Parts, seq: int) -> None:
        """Show the scene of an upload, read while the page casts rays; an error leaves the scene as it is."""
        try:
            file = await parts.content()
            await self.send(message(Progress(kind="progress", text=f"reading {parts.name}", fraction=1.0)))
            content, text = await asyncio.to_thread(with_file, self.content, parts.name, file)
            await self.show(content, runs_that_stay(self.content.layers, content.layers) or None)
            await self.send(message(Uploaded(kind="state", seq=seq, text=text)))
        except Exception as error:
            await self._send_error(error, seq)

    def _end_upload(self) -> None:
        """End the upload, if there is one, and its reading."""
        self._parts.pop(UPLOAD_PART, None)
        if self._opening is not None:
            self._opening.cancel()
            self._uploads.discard(self._opening)


def _ray_of(request: PickRay) -> Rays:
    """Return the ray of a message, whose infinite ends are None."""
    t_min, t_max = request["t_min"], request["t_max"]
    t_min, t_max = -np.inf if t_min is None else t_min, np.inf if t_max is None else t_max
    return Rays(request["origin"], request["direction"], t_min=t_min, t_max=t_max)
