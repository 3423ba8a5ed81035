"""One open page: its scene, its mask, its upload; and the answers to its messages."""

import asyncio
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import PurePath
from typing import Any, final

import numpy as np

from raybox._version import __version__
from raybox.errors import InvalidInput, RayboxError
from raybox.geometry import Rays
from raybox.hits import AllHits
from raybox.validation import Bools
from raybox.viewer import messages
from raybox.viewer.content import PageContent, with_file
from raybox.viewer.frames import frame, hits_frame
from raybox.viewer.messages import MASK, PICTURE_PART, SELECTION, UPLOAD_PART
from raybox.viewer.stage import check_upload

MAX_UPLOADS = 4  # at a time, of all pages
MAX_PICTURE = 64 * 2**20  # bytes
SILENT_SECONDS = 30.0  # without a part of an upload
PICTURE_SECONDS = 120.0  # without a part of a picture: a browser without a GPU draws a large scene
TOTAL_SECONDS = 1800.0
_FRAGMENT = 2**18  # bytes
Task = asyncio.Task[None]
Picked = Callable[[PageContent, AllHits], None]
Selected = Callable[[PageContent, Bools], None]


@final
class Session:
    """The state of one page, apart from that of all others.

    connection: a `ServerConnection`; uploads: those that run, of all pages; picked, selected: called after
    what the user does, with the content that the page shows.
    """

    def __init__(
        self, connection: Any, content: PageContent, uploads: set[Task], picked: Picked, selected: Selected
    ) -> None:
        self.content = content
        self._connection, self._uploads, self._picked, self._selected = connection, uploads, picked, selected
        self._mask: Bools | None = None
        self._before = 0  # objects of the scene that was shown before
        self._mask_changed, self._drawing, self._showing = asyncio.Event(), asyncio.Lock(), asyncio.Lock()
        self._parts: dict[bytes, _Parts] = {}
        self._opening: Task | None = None

    async def run(self, server_name: str, view: messages.ViewFields) -> None:
        """Show the scene in a view, and answer messages until the page closes.

        server_name: the same as long as a server runs, so that a page that connects again can go on.
        """
        from websockets.exceptions import ConnectionClosed

        tables = asyncio.ensure_future(self._send_tables())
        try:
            with suppress(ConnectionClosed):
                begin = messages.Begin(kind="begin", session=server_name, version=__version__, view=view)
                await self.send(frame(begin))
                await self.show(self.content)
                async for received in self._connection:
                    await self._receive(received)
        finally:
            tables.cancel()
            self._end_upload()
            for parts in self._parts.values():
                parts.add(None)

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
                await self.send(frame(messages.Renumber(kind="renumber", runs=runs)))
            for one in content.frames:
                await self.send(one)

    async def change(self, content: PageContent, view: messages.ViewFields) -> None:
        """Change the view; content: what is shown, with other objects visible at the start."""
        self.content = content
        await self.send(frame(messages.ChangeView(kind="view", view=view)))

    async def picture(self, scale: float) -> bytes:
        """Return the picture that the page draws; raise `RayboxError` if there is none."""
        content = b""
        async with self._drawing:
            parts = self._parts[PICTURE_PART] = _Parts("picture", MAX_PICTURE, PICTURE_SECONDS)
            await self.send(frame(messages.DrawPicture(kind="picture", scale=scale)))
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
        await self.send(frame(messages.Failure(kind="error", text=text, seq=seq)))

    def _receive_bytes(self, kind: bytes, content: memoryview) -> None:
        if kind in (MASK, SELECTION):
            mask = self._objects(content)
            if mask is None:
                return
            if kind == SELECTION:
                self._selected(self.content, mask)
            else:
                self._mask = mask
                self._mask_changed.set()
        elif kind not in (UPLOAD_PART, PICTURE_PART):
            raise InvalidInput("a binary message must begin with 1, 2, 3 or 4; reload the page.")
        elif kind in self._parts:
            self._parts[kind].add(content)

    def _objects(self, bits: memoryview) -> Bools | None:
        """Return a mask of objects from a bit for each; None if it is of the scene that was shown before."""
        count = len(self.content.stage.visible)
        if len(bits) == (count + 7) // 8:
            return np.unpackbits(np.frombuffer(bits, np.uint8), count=count, bitorder="little").view(np.bool_)
        if len(bits) == (self._before + 7) // 8:
            return None
        rule = f"a mask must have a bit for each of {count:,} objects"
        raise InvalidInput(f"{rule}; got {len(bits):,} bytes.")

    async def _answer(self, request: messages.Request) -> None:
        """Send the answer to a message; that to an upload comes later, and one to a report never."""
        seq = request["seq"]
        if request["kind"] == "pick":
            await self._cast(_ray_of(request), seq)
        elif request["kind"] == "picked":
            hits = await asyncio.to_thread(self.content.stage.all, _ray_of(request), self._mask)
            self._picked(self.content, hits)
        elif request["kind"] == "ray":
            row, rays = request["row"], self.content.rays
            if rays is None or row >= len(rays):
                count = 0 if rays is None else len(rays)
                raise InvalidInput(f"row must be that of a ray; got {row} of {count:,}.")
            await self._cast(rays[row], seq, row)
        elif request["kind"] == "save":
            page = await asyncio.to_thread(self.content.saved, request["state"], self._mask)
            name = f"{PurePath(self.content.stage.name).stem or 'raybox'}.html"
            header = messages.FileHeader(kind="file", seq=seq, name=name)
            await self.send(frame(header, {"content": np.frombuffer(page, np.uint8)}))
        else:
            self._begin_upload(request["name"], request["size"], seq)

    async def _cast(self, ray: Rays, seq: int, row: int | None = None) -> None:
        stage = self.content.stage
        hits = await asyncio.to_thread(stage.all, ray, self._mask)
        await self.send(hits_frame(stage, ray, hits, seq=seq, row=row))

    async def _send_tables(self) -> None:
        """Cast all rays again after a change of the mask; of many changes at once, the last counts."""
        while await self._mask_changed.wait():
            self._mask_changed.clear()
            content = self.content
            *_, table = await asyncio.to_thread(content.frames_with, self._mask)
            if content.rays is not None and content is self.content and not self._mask_changed.is_set():
                await self.send(table)

    def _begin_upload(self, name: str, size: int, seq: int) -> None:
        """Begin an upload, in place of an earlier one; raise if it is refused."""
        self._end_upload()
        plain = check_upload(name, size)
        if len(self._uploads) >= MAX_UPLOADS:
            raise RayboxError("too many uploads at a time; wait until one ends")
        parts = self._parts[UPLOAD_PART] = _Parts(plain, size, SILENT_SECONDS)
        self._opening = asyncio.ensure_future(self._open(parts, seq))
        self._uploads.add(self._opening)
        self._opening.add_done_callback(self._uploads.discard)

    async def _open(self, parts: "_Parts", seq: int) -> None:
        """Show the scene of an upload, read while the page casts rays; an error leaves the scene as it is."""
        try:
            file = await parts.content()
            reading = f"reading {parts.name}"
            await self.send(frame(messages.Progress(kind="progress", text=reading, fraction=1.0)))
            content, text = await asyncio.to_thread(with_file, self.content, parts.name, file)
            await self.show(content, content.runs_that_stay(self.content) or None)
            await self.send(frame(messages.Uploaded(kind="state", seq=seq, text=text)))
        except Exception as error:
            await self._send_error(error, seq)

    def _end_upload(self) -> None:
        """End the upload, if there is one, and its reading."""
        self._parts.pop(UPLOAD_PART, None)
        if self._opening is not None:
            self._opening.cancel()
            self._uploads.discard(self._opening)


@final
class _Parts:
    """What a page sends in parts, up to an empty one; on disk until all have arrived.

    silent: seconds without a part after which it ends.
    """

    def __init__(self, name: str, most: int, silent: float) -> None:
        self.name, self._most, self._silent = name, most, silent
        self._arrived: asyncio.Queue[memoryview | None] = asyncio.Queue()
        self._has_ended = False

    def add(self, part: memoryview | None) -> None:
        """Add a part, or None for an end without those that are missing; late ones are ignored."""
        if not self._has_ended:
            self._arrived.put_nowait(part)

    async def content(self) -> bytes:
        """Return all bytes; raise `RayboxError` if they are too many, or arrive too late or never."""
        try:
            async with asyncio.timeout(TOTAL_SECONDS):
                with tempfile.TemporaryFile() as file:  # without a name
                    while part := await asyncio.wait_for(self._arrived.get(), self._silent):
                        if file.tell() + len(part) > self._most:
                            raise RayboxError(f"{self.name}: sent more bytes than announced; start it again")
                        file.write(part)
                    file.seek(0)
                    content = file.read()
        except TimeoutError as error:
            raise RayboxError(f"{self.name}: was silent or slow for too long; start it again") from error
        finally:
            self._has_ended = True
        if part is None:
            raise RayboxError(f"{self.name}: the page has closed; open it again")
        return content


def _ray_of(request: messages.PickRay) -> Rays:
    """Return the ray of a message, whose infinite ends are None."""
    t_min, t_max = request["t_min"], request["t_max"]
    t_min, t_max = -np.inf if t_min is None else t_min, np.inf if t_max is None else t_max
    return Rays(request["origin"], request["direction"], t_min=t_min, t_max=t_max)
