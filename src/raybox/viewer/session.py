"""One open page: its scene, its mask, its upload; and the answers to its messages."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, final

import numpy as np

from raybox._version import __version__
from raybox.errors import InvalidInput, RayboxError
from raybox.geometry import Rays
from raybox.hits import AllHits
from raybox.validation import Bools
from raybox.viewer import messages
from raybox.viewer.content import PageContent, make_content
from raybox.viewer.frames import frame, hits_frame
from raybox.viewer.messages import PICTURE_PART, UPLOAD_PART, Message
from raybox.viewer.open_file import check_upload, stage_of_bytes
from raybox.viewer.uploads import MAX_PICTURE, MAX_UPLOADS, PICTURE_SECONDS, SILENT_SECONDS, Parts

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection

Task = asyncio.Task[None]
Answered = Callable[[AllHits], None]
_FRAGMENT = 2**18  # bytes


@final
class Session:
    """The state of one page, apart from that of all others.

    uploads: those that run, of all pages. answered: called with the hits of each ray that the page casts.
    """

    def __init__(
        self, connection: "ServerConnection", content: PageContent, uploads: set[Task], answered: Answered
    ) -> None:
        self.content = content
        self._connection, self._uploads, self._answered = connection, uploads, answered
        self._mask: Bools | None = None
        self._mask_changed, self._drawing = asyncio.Event(), asyncio.Lock()
        self._parts: dict[bytes, Parts] = {}
        self._opening: Task | None = None

    async def run(self, server_name: str) -> None:
        """Show the scene, and answer messages until the page closes.

        server_name: the same as long as a server runs, so that a page that connects again can go on.
        """
        from websockets.exceptions import ConnectionClosed

        tables = asyncio.ensure_future(self._send_tables())
        try:
            with suppress(ConnectionClosed):
                await self.send(frame("begin", session=server_name, version=__version__))
                await self.show(self.content)
                async for message in self._connection:
                    await self._receive(message)
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

    async def show(self, content: PageContent) -> None:
        """Replace the scene of this page."""
        self.content, self._mask = content, None
        for one in content.all_frames:
            await self.send(one)

    async def picture(self) -> bytes:
        """Return the picture that the page draws; raise `RayboxError` if there is none."""
        content = b""
        async with self._drawing:
            parts = self._parts[PICTURE_PART] = Parts("picture", MAX_PICTURE, PICTURE_SECONDS)
            await self.send(frame("picture"))
            with suppress(RayboxError):
                content = await parts.content()
        if not content:
            raise RayboxError("the page has drawn no picture; reload it and try again")
        return content

    async def _receive(self, message: str | bytes) -> None:
        """Answer one message; an error is an answer too."""
        seq = None
        try:
            if isinstance(message, bytes):
                self._receive_bytes(message[:1], memoryview(message)[1:])
                return
            request = messages.parse(message)
            seq = request.seq
            await self._answer(request)
        except Exception as error:
            await self._send_error(error, seq)

    async def _send_error(self, error: Exception, seq: int | None) -> None:
        text = str(error) if isinstance(error, RayboxError) else f"that did not work: {type(error).__name__}"
        await self.send(frame("error", text=text, **({} if seq is None else {"seq": seq})))

    def _receive_bytes(self, kind: bytes, content: memoryview) -> None:
        if kind == messages.MASK:
            self._set_mask(content)
        elif kind not in (UPLOAD_PART, PICTURE_PART):
            raise InvalidInput("a binary message must begin with 1, 2 or 3; reload the page.")
        elif kind in self._parts:
            self._parts[kind].add(content)

    async def _answer(self, request: Message) -> None:
        """Send the answer to a message; that to an upload comes later."""
        seq, fields = request.seq, request.fields
        match request.kind:
            case "pick":
                t_min, t_max = fields["t_min"], fields["t_max"]  # None is an infinite end
                t_min, t_max = -np.inf if t_min is None else t_min, np.inf if t_max is None else t_max
                await self._cast(Rays(fields["origin"], fields["direction"], t_min=t_min, t_max=t_max), seq)
            case "ray":
                await self._cast_row(fields["row"], seq)
            case "save":
                page = await asyncio.to_thread(self.content.saved, fields["state"], self._mask)
                name = f"{PurePath(self.content.stage.name).stem or 'raybox'}.html"
                await self.send(frame("file", {"content": np.frombuffer(page, np.uint8)}, seq=seq, name=name))
            case _:
                self._begin_upload(fields["name"], fields["size"], seq)

    async def _cast(self, ray: Rays, seq: int, row: int | None = None) -> None:
        stage, mask = self.content.stage, self._mask
        hits = await asyncio.to_thread(stage.all, ray, mask)
        self._answered(hits)
        await self.send(hits_frame(stage, ray, hits, seq=seq, row=row))

    async def _cast_row(self, row: int, seq: int) -> None:
        rays = self.content.rays
        count = 0 if rays is None else len(rays)
        if rays is None or row >= count:
            raise InvalidInput(f"row must be that of a ray; got {row} of {count:,}.")
        await self._cast(rays[row], seq, row)

    def _set_mask(self, bits: memoryview) -> None:
        """Set which objects rays may hit, from a bit for each."""
        count = len(self.content.stage.visible)
        if len(bits) != (count + 7) // 8:
            rule = f"a mask must have a bit for each of {count:,} objects"
            raise InvalidInput(f"{rule}; got {len(bits):,} bytes.")
        mask = np.unpackbits(np.frombuffer(bits, np.uint8), count=count, bitorder="little")
        self._mask = mask.astype(np.bool_)
        self._mask_changed.set()

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
            await self.send(frame("progress", text=f"reading {parts.name}", fraction=1.0))
            stage = await asyncio.to_thread(stage_of_bytes, parts.name, file)
            await self.show(await asyncio.to_thread(make_content, stage))
            await self.send(frame("state", seq=seq))
        except Exception as error:
            await self._send_error(error, seq)

    def _end_upload(self) -> None:
        """End the upload, if there is one, and its reading."""
        self._parts.pop(UPLOAD_PART, None)
        if self._opening is not None:
            self._opening.cancel()
            self._uploads.discard(self._opening)
