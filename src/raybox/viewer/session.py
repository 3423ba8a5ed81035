"""One open page: its scene, its mask, its upload; and the answers to its messages."""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, final

import numpy as np

from raybox import __version__
from raybox.errors import InvalidInput, RayboxError
from raybox.geometry import Rays
from raybox.validation import Bools
from raybox.viewer import messages
from raybox.viewer.content import Content, make_content
from raybox.viewer.explanation import explain_pair
from raybox.viewer.frames import hits_frame
from raybox.viewer.messages import Message
from raybox.viewer.open_file import stage_of_upload
from raybox.viewer.picture import Picture
from raybox.viewer.stage import Stage
from raybox.viewer.uploads import Upload, Uploads
from raybox.viewer.wire import fragments, frame

if TYPE_CHECKING:
    from websockets.asyncio.server import ServerConnection

Answered = Callable[[Stage, Rays, Bools | None], None]


@final
class Session:
    """The state of one page, apart from that of all others.

    Parameters
    ----------
    server_name : str
        The same as long as a server runs, so that a page that connects again can go on.
    answered : function
        Called with each ray that a click of the page casts.
    """

    def __init__(
        self,
        connection: "ServerConnection",
        content: Content,
        uploads: Uploads,
        server_name: str,
        answered: Answered,
    ) -> None:
        self.content, self.picture = content, Picture()
        self._connection, self._uploads = connection, uploads
        self._server_name, self._answered = server_name, answered
        self._mask: Bools | None = None
        self._upload: Upload | None = None
        self._mask_changed = asyncio.Event()

    async def run(self) -> None:
        """Show the scene, and answer messages until the page closes."""
        from websockets.exceptions import ConnectionClosed

        tables = asyncio.ensure_future(self._send_tables())
        try:
            with suppress(ConnectionClosed):
                await self.send(frame("begin", session=self._server_name, version=__version__))
                await self.show(self.content)
                async for message in self._connection:
                    await self._receive(message)
        finally:
            tables.cancel()
            self.picture.fail()
            self._end_upload()

    async def send(self, content: bytes) -> None:
        """Send a frame, in parts, as fast as the page reads them."""
        await self._connection.send(fragments(content))

    async def show(self, content: Content) -> None:
        """Replace the scene of this page."""
        self.content, self._mask = content, None
        for one in (*content.frames, content.table):
            if one is not None:
                await self.send(one)

    async def _receive(self, message: str | bytes) -> None:
        """Answer one message; an error is an answer too."""
        seq: dict[str, int] = {}
        try:
            if isinstance(message, bytes):
                await self._receive_bytes(message)
                return
            request = messages.parse(message)
            seq = {"seq": request.seq}
            await self._ANSWERS[request.kind](self, request)
        except RayboxError as error:
            await self.send(frame("error", text=str(error), **seq))
        except (ArithmeticError, LookupError, TypeError, ValueError, MemoryError, OSError) as error:
            await self.send(frame("error", text=f"that did not work: {type(error).__name__}", **seq))

    # Rays

    async def _pick(self, request: Message) -> None:
        await self._cast(_ray_of(request), request.seq)

    async def _cast_row(self, request: Message) -> None:
        call, row = self.content.call, request.fields["row"]
        if call is None or row >= len(call.rays):
            raise InvalidInput(
                f"row must be that of a ray; got {row} of {0 if call is None else len(call.rays):,}."
            )
        await self._cast(call.rays[row], request.seq, row)

    async def _cast(self, ray: Rays, seq: int, row: int | None = None) -> None:
        stage, mask = self.content.stage, self._mask

        def answer() -> bytes:
            return hits_frame(stage, ray, stage.all(ray, mask), seq=seq, row=row)

        await self.send(await asyncio.to_thread(answer))
        self._answered(stage, ray, mask)

    async def _explain(self, request: Message) -> None:
        stage, (geometry, primitive) = (
            self.content.stage,
            (request.fields[k] for k in ("geometry", "primitive")),
        )
        if geometry >= len(stage.parts) or primitive >= len(stage.parts[geometry].geometry):
            raise InvalidInput(
                f"explain needs a primitive of the scene; got {primitive} of geometry {geometry}."
            )
        found = await asyncio.to_thread(explain_pair, stage, _ray_of(request), geometry, primitive)
        axes = [axis._asdict() for axis in found.axes]
        await self.send(frame("explain", seq=request.seq, **{**found._asdict(), "axes": axes}))

    # What is hidden

    def _set_mask(self, bits: bytes) -> None:
        """Set which objects rays may hit, from a bit for each."""
        count = self.content.stage.objects
        if len(bits) != (count + 7) // 8:
            raise InvalidInput(
                f"a mask must have a bit for each of {count:,} objects; got {len(bits):,} bytes."
            )
        mask = np.unpackbits(np.frombuffer(bits, np.uint8), count=count, bitorder="little")
        self._mask = mask.astype(np.bool_)
        self._mask_changed.set()

    async def _send_tables(self) -> None:
        """Cast all rays again after each change of the mask; of many changes at once, the last counts."""
        while await self._mask_changed.wait():
            self._mask_changed.clear()
            content, mask = self.content, self._mask
            if content.call is not None:
                table = await asyncio.to_thread(content.table_of, mask)
                if table is not None and content is self.content and not self._mask_changed.is_set():
                    await self.send(table)

    # Files

    async def _save(self, request: Message) -> None:
        content, mask = self.content, self._mask
        page = await asyncio.to_thread(content.saved, request.fields["state"], mask)
        name = f"{PurePath(content.stage.name).stem or 'raybox'}.html"
        await self.send(frame("file", {"content": np.frombuffer(page, np.uint8)}, seq=request.seq, name=name))

    async def _begin_upload(self, request: Message) -> None:
        self._end_upload()
        self._upload = self._uploads.begin(request.fields["name"], request.fields["size"], request.seq)
        await self._open_if_complete(self._upload)

    async def _receive_upload(self, part: memoryview) -> None:
        """Write a part of the upload; parts that arrive after its end count for nothing."""
        upload = self._upload
        if upload is None:
            return
        try:
            upload.add(part, self._uploads.clock())
        except RayboxError as error:
            self._end_upload()
            await self.send(frame("error", seq=upload.seq, text=str(error)))
            return
        await self._open_if_complete(upload)

    async def _open_if_complete(self, upload: Upload) -> None:
        """Show the scene of an upload once all of it is here; an error leaves the scene as it is."""
        if not upload.is_complete:
            return
        await self.send(frame("progress", text=f"reading {upload.name}", fraction=1.0))

        def content() -> Content:
            return make_content(stage_of_upload(upload.path, upload.name))

        try:
            await self.show(await asyncio.to_thread(content))
            await self.send(frame("state", seq=upload.seq))
        except RayboxError as error:
            await self.send(frame("error", seq=upload.seq, text=str(error)))
        finally:
            self._end_upload()

    async def _cancel(self, request: Message) -> None:
        self._end_upload()
        await self.send(frame("state", seq=request.seq))

    def _end_upload(self) -> None:
        if self._upload is not None:
            self._uploads.end(self._upload)
        self._upload = None

    async def _announce_picture(self, request: Message) -> None:
        self.picture.announce(request.seq, request.fields["size"])

    async def _receive_bytes(self, message: bytes) -> None:
        kind, content = message[:1], memoryview(message)[1:]
        if kind == bytes([messages.MASK]):
            self._set_mask(bytes(content))
        elif kind == bytes([messages.UPLOAD_PART]):
            await self._receive_upload(content)
        elif kind == bytes([messages.PICTURE_PART]):
            self.picture.add(content)
        else:
            raise InvalidInput("a binary message must begin with 1, 2 or 3; reload the page.")

    _ANSWERS: dict[str, Any] = {  # noqa: RUF012 - a table of methods
        "pick": _pick,
        "ray": _cast_row,
        "explain": _explain,
        "save": _save,
        "upload": _begin_upload,
        "cancel": _cancel,
        "picture": _announce_picture,
    }


def _ray_of(request: Message) -> Rays:
    """Return the ray of a message; an end without a number is infinite."""
    fields = request.fields
    t_min = -np.inf if fields["t_min"] is None else fields["t_min"]
    t_max = np.inf if fields["t_max"] is None else fields["t_max"]
    return Rays(fields["origin"], fields["direction"], t_min=t_min, t_max=t_max)
