"""One open page: its scene, its mask, its upload; and the answers to its messages."""

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, final

import numpy as np

from raybox._version import __version__
from raybox.errors import InvalidInput, RayboxError
from raybox.geometry import Rays
from raybox.textbook.pair import explain_pair
from raybox.validation import Bools
from raybox.viewer import messages
from raybox.viewer.content import PageContent, make_content
from raybox.viewer.frames import frame, hits_frame
from raybox.viewer.messages import Message
from raybox.viewer.open_file import stage_of_bytes
from raybox.viewer.stage import Stage
from raybox.viewer.uploads import PictureRequest, Upload, Uploads

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection

Answered = Callable[[Stage, Rays, Bools | None], None]
_FRAGMENT = 2**18  # bytes


@final
class Session:
    """The state of one page, apart from that of all others.

    answered: called with each ray that a click of the page casts.
    """

    def __init__(
        self, connection: "ServerConnection", content: PageContent, uploads: Uploads, answered: Answered
    ) -> None:
        self.content, self.picture = content, PictureRequest(0)
        self._connection, self._uploads, self._answered = connection, uploads, answered
        self._mask: Bools | None = None
        self._upload: Upload | None = None
        self._opening: asyncio.Task[None] | None = None
        self._mask_changed = asyncio.Event()

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
            self.picture.fail()
            self._end_upload()

    async def send(self, content: bytes) -> None:
        """Send a frame, in parts, as fast as the page reads them; nothing once the page is closed."""
        from websockets.exceptions import ConnectionClosed

        with suppress(ConnectionClosed):
            await self._connection.send(fragments(content))

    async def show(self, content: PageContent) -> None:
        """Replace the scene of this page."""
        self.content, self._mask = content, None
        for one in content.all_frames:
            await self.send(one)

    async def request_picture(self) -> "Future[bytes]":
        """Return the picture that this page will send; an earlier request fails."""
        self.picture.fail()
        self.picture = PictureRequest(self.picture.seq + 1)
        await self.send(frame("picture", seq=self.picture.seq))
        return self.picture.result

    async def _receive(self, message: str | bytes) -> None:
        """Answer one message; an error is an answer too."""
        seq = None
        try:
            if isinstance(message, bytes):
                seq = self._upload.seq if self._upload and message[:1] == messages.UPLOAD_PART else None
                self._receive_bytes(message[:1], memoryview(message)[1:])
                return
            request = messages.parse(message)
            seq = request.seq
            answer = await self._answer(request)
            if answer is not None:
                await self.send(answer)
        except Exception as error:
            await self._send_error(error, seq)

    async def _send_error(self, error: Exception, seq: int | None) -> None:
        text = str(error) if isinstance(error, RayboxError) else f"that did not work: {type(error).__name__}"
        await self.send(frame("error", text=text, **({} if seq is None else {"seq": seq})))

    async def _answer(self, request: Message) -> bytes | None:
        """Return the answer to a message; None where it comes later."""
        seq, fields = request.seq, request.fields
        match request.kind:
            case "pick":
                return await self._cast(_ray_of(request), seq)
            case "ray":
                rays, row = self.content.rays, fields["row"]
                if rays is None or row >= len(rays):
                    count = 0 if rays is None else len(rays)
                    raise InvalidInput(f"row must be that of a ray; got {row} of {count:,}.")
                return await self._cast(rays[row], seq, row)
            case "explain":
                return await asyncio.to_thread(self._explanation, request)
            case "save":
                page = await asyncio.to_thread(self.content.saved, fields["state"], self._mask)
                name = f"{PurePath(self.content.stage.name).stem or 'raybox'}.html"
                return frame("file", {"content": np.frombuffer(page, np.uint8)}, seq=seq, name=name)
            case "upload":
                self._end_upload()
                self._upload = self._uploads.begin(fields["name"], fields["size"], seq)
                self._receive_upload(memoryview(b""))
            case "cancel":
                self._end_upload()
                return frame("state", seq=seq)
            case _:
                self.picture.announce(seq, fields["size"])
        return None

    def _receive_bytes(self, kind: bytes, content: memoryview) -> None:
        if kind == messages.MASK:
            self._set_mask(content)
        elif kind == messages.UPLOAD_PART:
            self._receive_upload(content)
        elif kind == messages.PICTURE_PART:
            self.picture.add(content)
        else:
            raise InvalidInput("a binary message must begin with 1, 2 or 3; reload the page.")

    async def _cast(self, ray: Rays, seq: int, row: int | None = None) -> bytes:
        stage, mask = self.content.stage, self._mask
        self._answered(stage, ray, mask)
        return await asyncio.to_thread(lambda: hits_frame(stage, ray, stage.all(ray, mask), seq=seq, row=row))

    def _explanation(self, request: Message) -> bytes:
        stage, ray = self.content.stage, _ray_of(request)
        geometry, row = request.fields["geometry"], request.fields["primitive"]
        if geometry >= len(stage.parts) or row >= len(stage.parts[geometry].geometry):
            raise InvalidInput(f"explain needs a primitive of the scene; got {row} of geometry {geometry}.")
        hits = stage.all(ray, np.ones(len(stage.visible), np.bool_))
        first = np.flatnonzero((hits.geometry == geometry) & (hits.index == row))[:1]
        inner = int(hits.primitive[first].sum())  # of a copy, what the ray hits first in it
        found = explain_pair(ray, stage.parts[geometry].geometry, row, inner)
        fields = found._asdict() | {"axes": [one._asdict() for one in found.axes]}
        return frame("explain", seq=request.seq, **fields)

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

    def _receive_upload(self, part: memoryview) -> None:
        """Write a part of the upload, and open the last; parts after its end count for nothing."""
        upload = self._upload
        if upload is None:
            return
        try:
            upload.add(part, self._uploads.clock())
        except Exception:
            self._end_upload()
            raise
        if upload.is_complete:
            self._opening = asyncio.ensure_future(self._open(upload))

    async def _open(self, upload: Upload) -> None:
        """Show the scene of an upload, read while the page casts rays; an error leaves the scene as it is."""
        try:
            await self.send(frame("progress", text=f"reading {upload.name}", fraction=1.0))
            stage = await asyncio.to_thread(lambda: stage_of_bytes(upload.name, upload.content()))
            content = await asyncio.to_thread(make_content, stage)
            self._forget(upload)
            await self.show(content)
            await self.send(frame("state", seq=upload.seq))
        except Exception as error:
            self._forget(upload)
            await self._send_error(error, upload.seq)

    def _forget(self, upload: Upload) -> None:
        """Remove an upload that has been read."""
        self._uploads.end(upload)
        if self._upload is upload:
            self._upload = None

    def _end_upload(self) -> None:
        """End the upload, if there is one, and its reading."""
        if self._opening is not None:
            self._opening.cancel()
        if self._upload is not None:
            self._uploads.end(self._upload)
        self._upload = self._opening = None


def _ray_of(request: Message) -> Rays:
    """Return the ray of a message; an end without a number is infinite."""
    fields = request.fields
    t_min = -np.inf if fields["t_min"] is None else fields["t_min"]
    t_max = np.inf if fields["t_max"] is None else fields["t_max"]
    return Rays(fields["origin"], fields["direction"], t_min=t_min, t_max=t_max)


def fragments(content: bytes) -> Iterator[memoryview]:
    """Return a frame in parts, so that a page that reads slowly needs no copy of it."""
    view = memoryview(content)
    return (view[start : start + _FRAGMENT] for start in range(0, len(view), _FRAGMENT))
