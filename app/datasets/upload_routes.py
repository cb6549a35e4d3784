"""Routes of uploads: whole files, and files in pieces that resume."""

import asyncio
import base64
import binascii
import threading
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Annotated, Any, NamedTuple

from fastapi import APIRouter, Depends, Header, Request, Response
from fastapi.concurrency import contextmanager_in_threadpool
from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect

from app.access import quotas
from app.access.authentication import CLERK, VIEWER
from app.config import settings
from app.datasets import addresses, partial_uploads
from app.datasets.schemas import FromUpload, NewUpload, PartialUpload
from app.errors import Conflict, InvalidInput, Item, Malformed, UnsupportedFormat
from app.http.bodies import Body
from app.http.parameters import UPLOADS, Db, Id, Once, opened
from app.http.problems import responses
from app.json_text import ZERO
from app.store.files import Upload, files
from app.store.idempotency import Token, known
from app.store.partial_uploads import OffsetError, Partial, Piece

_WRITTEN_AT_ONCE = 1 << 20
_LONGEST_HEADER = 8 << 10

SCHEMA = {
    "requestBody": {
        "required": False,
        "description": "The file itself, with any Content-Type, or a multipart form with the file as its only part.",
        "content": {
            "application/octet-stream": {"schema": {"type": "string", "format": "binary"}},
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            },
        },
    }
}


SAMPLE = {
    "requestBody": {
        "required": True,
        "description": "The beginning of the file, or the whole file, with any Content-Type.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


async def _content(request: Request) -> bytes:
    _require_plain(request)
    content = await request.body()
    if not content:
        raise InvalidInput("The file is empty.")
    return content


# the request's body, which is kept in memory
Content = Annotated[bytes, Depends(_content)]


class Received(NamedTuple):
    """A finished upload, and a function that raises ClientDisconnect once the client has gone, for long work."""

    upload: Upload
    require_client: Callable[[], None]


def _is_replay(request: Request, token: Once) -> bool:
    if token is None:
        return False
    with opened(request) as session:
        return known(session, token)


# whether an earlier request has succeeded with the same Idempotency-Key: its repetition is not checked again
Replay = Annotated[bool, Depends(_is_replay)]


def received_after(check: Callable[..., object]) -> Any:
    """The dependency that receives the request's file, as :class:`Received`, once another dependency has passed.

    Parameters
    ----------
    check : callable
        A dependency that raises the reason to refuse the request before a byte is received. Where it returns a
        FromUpload, that says what replaces the body, and the hash that the file must have.
    """

    async def received(
        request: Request, token: Once, replay: Replay, given: Annotated[object, Depends(check)]
    ) -> AsyncIterator[Received]:
        given = given if isinstance(given, FromUpload) else FromUpload()
        room = await run_in_threadpool(_room, request, replay)
        if given.upload is None and given.address is None:
            async with receiving(request, given.sha256, room) as file:
                yield file
            return
        named = "upload" if given.address is None else "address"
        if named == "address" and given.upload is not None:
            raise InvalidInput("The request names an upload and an address.", [Item("choose one", "/address")])
        async for chunk in request.stream():
            if chunk:
                raise InvalidInput(
                    f"The request names an {named} and also has a body.", [Item("send no body", f"/{named}")]
                )
        if given.address is not None:
            async with contextmanager_in_threadpool(_fetched(request, given.address, given.sha256, room)) as upload:
                yield Received(upload, lambda: None)
            return
        async with contextmanager_in_threadpool(_joined(request, token, given)) as upload:
            yield Received(upload, lambda: None)

    return Depends(received, scope="function")


def _room(request: Request, replay: bool) -> int | None:
    """How many bytes may be received; raises StorageFull where it is fewer than the request announces."""
    if replay:
        # nothing more will be kept; what comes at once has its bound all the same
        return settings().max_stored_bytes or None
    with opened(request) as session:
        claim = request.headers.get("content-length", "")
        quotas.require_room(session, int(claim) if claim.isdigit() else 1, hold=False)
        return quotas.free_bytes(session)


@asynccontextmanager
async def receiving(request: Request, sha256: str | None, room: int | None) -> AsyncIterator[Received]:
    """Receive the request's file for the block, and remove it afterwards; raises as :func:`receive`.

    Parameters
    ----------
    sha256 : str, optional
        That the file must have; InvalidInput otherwise.
    room : int, optional
        Bytes that may be received for the workspace at once, in all its requests.
    """
    workspace = request.state.key.workspace
    upload = await run_in_threadpool(files().upload, workspace)
    gone = threading.Event()

    def write(block: bytes) -> None:
        upload.write(block)
        if room is not None:
            quotas.require_room_for_incoming(workspace, room)

    def require_client() -> None:
        if gone.is_set():
            raise ClientDisconnect

    try:
        await receive(request, upload, write)
        watching = asyncio.create_task(_watch(request, gone))
        try:
            await run_in_threadpool(upload.finish)
            partial_uploads.require_same(sha256, upload.sha256)
            yield Received(upload, require_client)
        finally:
            watching.cancel()
    finally:
        upload.abort()


@contextmanager
def _fetched(request: Request, address: str, sha256: str | None, room: int | None) -> Iterator[Upload]:
    """A file that the service fetches, for the block."""
    workspace = request.state.key.workspace
    addresses.require_allowed(address)
    upload = files().upload(workspace)

    def write(block: bytes) -> None:
        upload.write(block)
        if room is not None:
            quotas.require_room_for_incoming(workspace, room)

    try:
        addresses.fetch(address, write)
        upload.finish()
        partial_uploads.require_same(sha256, upload.sha256)
        yield upload
    finally:
        upload.abort()


@contextmanager
def _joined(request: Request, token: Token | None, given: FromUpload) -> Iterator[Upload]:
    """An upload in pieces as one file for the block, used once no error leaves it.

    Of one that was used nothing is left but its hash, by which a repeated request finds its answer.
    """
    assert given.upload is not None
    with partial_uploads.using(request.state.key.workspace, given.upload) as partial:
        if partial.sha256 is None:
            upload = partial.whole(files())
        elif _is_replay(request, token):
            upload = Upload.of_file(partial.folder / "gone", partial.sha256, partial.size_bytes)
        else:
            raise Conflict("the upload has already been used")
        try:
            partial_uploads.require_same(given.sha256, upload.sha256)
            with partial.used(upload.sha256):
                yield upload
        finally:
            upload.abort()


async def _watch(request: Request, gone: threading.Event) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    gone.set()


async def receive(request: Request, upload: Upload, write: Callable[[bytes], None]) -> None:
    """Write the request's file to ``upload`` in blocks, with ``write``, in a worker thread.

    Raises
    ------
    Malformed
        The body ends too early, or is not the form that it declares.
    InvalidInput
        The file is empty.
    UnsupportedFormat
        The body is compressed.
    OSError
        The disk is full.
    StorageFull
        The workspace has no room for what is being received for it.
    ClientDisconnect
        The client has gone.
    """
    _require_plain(request)
    media_type, options = parse_options_header(request.headers.get("content-type", ""))
    form = _FilePart(options) if media_type == b"multipart/form-data" else None
    n_bytes, block = 0, bytearray()
    async for chunk in request.stream():
        n_bytes += len(chunk)
        block += chunk if form is None else form.file_bytes(chunk)
        if len(block) >= _WRITTEN_AT_ONCE:
            await run_in_threadpool(write, bytes(block))
            block.clear()
    if form is not None:
        form.close()
    claim = request.headers.get("content-length")
    if claim is not None and int(claim) != n_bytes:
        raise Malformed(f"The body ends after {n_bytes} bytes, but its Content-Length is {int(claim)}.")
    await run_in_threadpool(write, bytes(block))
    if upload.size_bytes == 0:
        raise InvalidInput("The file is empty.")


def _require_plain(request: Request) -> None:
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise UnsupportedFormat("The body has a Content-Encoding; send the file without one.")


class _FilePart:
    """Extracts the bytes of the only part of a multipart form as they arrive."""

    def __init__(self, options: Mapping[bytes, bytes]) -> None:
        boundary = options.get(b"boundary", b"")
        if not 1 <= len(boundary) <= 70:
            raise Malformed("The form's Content-Type needs a boundary of 1 to 70 characters.")
        self._parts = 0
        self._complete = False
        self._bytes = bytearray()
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin,
                "on_header_value": self._header,
                "on_part_data": self._data,
                "on_end": self._end,
            },
            max_header_size=_LONGEST_HEADER,
        )

    def file_bytes(self, chunk: bytes) -> bytes:
        """The bytes of the file in the next chunk of the form."""
        try:
            self._parser.write(chunk)
        except FormParserError:
            raise Malformed("The body is not the multipart form that its Content-Type declares.") from None
        found = bytes(self._bytes)
        self._bytes.clear()
        return found

    def close(self) -> None:
        """Raise Malformed unless the form is complete."""
        if not self._complete:
            raise Malformed("The form ends before its closing boundary.")

    def _begin(self) -> None:
        self._parts += 1
        if self._parts > 1:
            raise InvalidInput("The form has several parts; expected one file, with all other values in the query.")

    def _header(self, data: bytes, start: int, end: int) -> None:
        if b"\0" in data[start:end]:
            raise InvalidInput("The form has a part with a name or type that cannot be stored.", [Item(ZERO, "/file")])

    def _data(self, data: bytes, start: int, end: int) -> None:
        self._bytes += data[start:end]

    def _end(self) -> None:
        self._complete = True


router = APIRouter(prefix=UPLOADS, tags=["uploads"])

_BLOCK_BYTES = 1 << 20
_PIECE = {
    "requestBody": {
        "required": True,
        "description": "The bytes starting at the offset, with any Content-Type.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.post("", status_code=201, dependencies=[CLERK])
def begin_upload(request: Request, response: Response, session: Db, body: Body[NewUpload]) -> PartialUpload:
    """Begin an upload in pieces; `upload` in POST /datasets then names it instead of a body."""
    begun = partial_uploads.begin(session, request.state.key.workspace, body.size_bytes)
    response.headers["Location"] = f"{UPLOADS}/{begun.id}"
    return begun


@router.get("/{id}", dependencies=[VIEWER], responses=responses(403, 409))
def get_upload(request: Request, response: Response, id: Id) -> PartialUpload:
    """Get the number of bytes received; after an interruption, the next piece begins there."""
    found = partial_uploads.shown(partial_uploads.find(request.state.key.workspace, id))
    response.headers["Upload-Offset"] = str(found.offset)
    return found


@router.patch("/{id}", dependencies=[CLERK], openapi_extra=_PIECE, responses=responses(409, 413))
async def append_to_upload(
    request: Request,
    response: Response,
    id: Id,
    upload_offset: Annotated[int, Header(ge=0, lt=2**63, description="Offset of the piece in bytes.")],
    upload_checksum: Annotated[
        str | None,
        Header(
            pattern="^sha256 [A-Za-z0-9+/]{43}=$",
            description="`sha256` and the piece's hash in base64; a piece with another hash is discarded.",
        ),
    ] = None,
) -> PartialUpload:
    """Send the next piece; the received part of an interrupted piece is kept, unless it has a checksum."""
    workspace = request.state.key.workspace
    found = await run_in_threadpool(partial_uploads.find, workspace, id)
    digest = _digest(upload_checksum)

    def room() -> int | None:
        with opened(request) as session:
            return quotas.free_bytes(session)

    left = await run_in_threadpool(room)
    try:
        with found.piece(upload_offset) as piece:
            await _receive(request, found, piece, digest, left)
    except OffsetError as error:
        detail = f"the piece begins at {upload_offset}, but {error.offset} bytes have been received"
        raise Conflict(detail, [Item(detail, "/Upload-Offset")]) from None
    shown = await run_in_threadpool(partial_uploads.shown, found)
    response.headers["Upload-Offset"] = str(shown.offset)
    return shown


@router.delete("/{id}", status_code=204, dependencies=[CLERK])
def discard_upload(request: Request, id: Id) -> None:
    """Discard an upload and its received bytes."""
    partial_uploads.discard(request.state.key.workspace, id)


async def _receive(request: Request, found: Partial, piece: Piece, digest: bytes | None, room: int | None) -> None:
    """Write the request's body; a piece with a checksum that does not match is discarded."""
    workspace, block, right = request.state.key.workspace, bytearray(), False

    def write(data: bytes) -> None:
        if piece.end + len(data) > found.size_bytes:
            raise InvalidInput(f"the piece extends beyond the file's {found.size_bytes} bytes")
        if room is not None:
            quotas.require_room_for_incoming(workspace, room - len(data))
        piece.write(data)

    try:
        async for chunk in request.stream():
            block += chunk
            if len(block) >= _BLOCK_BYTES:
                await run_in_threadpool(write, bytes(block))
                block.clear()
        await run_in_threadpool(write, bytes(block))
        right = digest in (None, piece.sha256)
    finally:
        ends = piece.flush if right or digest is None else piece.discard
        await asyncio.shield(run_in_threadpool(ends))
    if not right:
        raise InvalidInput(
            "the piece was damaged in transit", [Item("its checksum does not match", "/Upload-Checksum")]
        )


def _digest(checksum: str | None) -> bytes | None:
    if checksum is None:
        return None
    try:
        return base64.b64decode(checksum.removeprefix("sha256 "), validate=True)
    except binascii.Error:
        raise Malformed("The Upload-Checksum is not valid base64.") from None
