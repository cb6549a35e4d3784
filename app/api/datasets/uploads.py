"""Receiving a file: raw or as the one file of a multipart form, to the disk as it comes."""

import asyncio
import threading
from collections.abc import Callable, Mapping
from typing import TypeVar

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from sqlalchemy.orm import Session
from starlette.concurrency import run_in_threadpool
from starlette.requests import ClientDisconnect, Request

from app.api.common.parameters import opened
from app.config import settings
from app.errors import Conflict, InvalidInput, Item, Malformed, UnsupportedFormat
from app.schemas.datasets.uploads import FromUpload
from app.services.access import quotas
from app.services.common.idempotency import Token, known
from app.services.datasets import partial_uploads
from app.store.files import Upload, files

R = TypeVar("R")
Check = Callable[[], None]

_WRITTEN_AT_ONCE = 1 << 20
_LONGEST_HEADER = 8 << 10

SCHEMA = {
    "requestBody": {
        "required": False,
        "description": "The file itself, with any Content-Type, or a form with it as its only part.",
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


async def take(
    request: Request,
    token: Token | None,
    check: Callable[[Session], None],
    keep: Callable[[Session, Upload, Check], R],
    given: FromUpload | None = None,
) -> R:
    """Receive the request's file if nothing speaks against it, and keep it.

    Parameters
    ----------
    request : Request
    token : Token or None
        One that is known lets the file come in any case: its hash tells whether the request is the same.
    check : callable
        Raises what speaks against the request before a byte is received.
    keep : callable
        Takes the finished upload, which is gone afterwards, and a function to be called now and then, which raises
        ClientDisconnect once nobody waits for the answer any more.
    given : FromUpload, optional
        The upload in pieces that stands in place of a body, and what the file's hash shall be.
    """
    given = given or FromUpload()
    gone = threading.Event()

    def require_client() -> None:
        if gone.is_set():
            raise ClientDisconnect

    def check_early() -> int | None:
        with opened(request) as session:
            if token is not None and known(session, token):
                # nothing more will be kept; what comes at once has its bound all the same
                return settings().max_stored_bytes or None
            check(session)
            claim = request.headers.get("content-length", "")
            quotas.require_room(session, int(claim) if claim.isdigit() else 1, hold=False)
            return quotas.room(session)

    def finish() -> R:
        upload.finish()
        partial_uploads.require_same(given.sha256, upload.sha256)
        with opened(request) as session:
            return keep(session, upload, require_client)

    room = await run_in_threadpool(check_early)
    workspace = request.state.key.workspace
    if given.upload is not None:
        async for chunk in request.stream():
            if chunk:
                raise InvalidInput("The request names an upload, and has a body as well.", [Item("no body", "/upload")])

        def keep_pieces(session: Session, upload: Upload) -> R:
            return keep(session, upload, require_client)

        return await run_in_threadpool(_from_pieces, request, token, given, keep_pieces)
    upload = await run_in_threadpool(files().upload, workspace)

    def write(block: bytes) -> None:
        upload.write(block)
        if room is not None:
            quotas.require_room_for_incoming(workspace, room)

    try:
        await receive(request, upload, write)
        watching = asyncio.create_task(_watch(request, gone))
        try:
            return await run_in_threadpool(finish)
        finally:
            watching.cancel()
    finally:
        upload.abort()


def _from_pieces(request: Request, token: Token | None, given: FromUpload, keep: Callable[[Session, Upload], R]) -> R:
    """Keep an upload in pieces.

    Of one that was used nothing is left but its hash, by which a repeated request finds its answer.
    """
    assert given.upload is not None
    with partial_uploads.using(request.state.key.workspace, given.upload) as partial:
        if partial.sha256 is None:
            upload = partial.whole(files())
        elif token is not None and _is_known(request, token):
            upload = Upload.of_file(partial.folder / "gone", partial.sha256, partial.size_bytes)
        else:
            raise Conflict("the upload was used already")
        try:
            partial_uploads.require_same(given.sha256, upload.sha256)
            with partial.used(upload.sha256), opened(request) as session:
                return keep(session, upload)
        finally:
            upload.abort()


def _is_known(request: Request, token: Token) -> bool:
    with opened(request) as session:
        return known(session, token)


async def _watch(request: Request, gone: threading.Event) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
    gone.set()


async def receive(request: Request, upload: Upload, write: Callable[[bytes], None]) -> None:
    """Write the request's file to ``upload`` in blocks, by ``write``, in a worker thread.

    Raises
    ------
    Malformed
        The body ends too early, or is not the form that it says it is.
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
    if request.headers.get("content-encoding", "identity").lower() != "identity":
        raise UnsupportedFormat("The body has a Content-Encoding; send the file as it is.")
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
        raise Malformed(f"The body ends after {n_bytes} bytes; its Content-Length says {int(claim)}.")
    await run_in_threadpool(write, bytes(block))
    if upload.size_bytes == 0:
        raise InvalidInput("The file is empty.")


class _FilePart:
    """Takes the bytes of the only part out of a multipart form, as they come."""

    def __init__(self, options: Mapping[bytes, bytes]) -> None:
        boundary = options.get(b"boundary", b"")
        if not 1 <= len(boundary) <= 70:
            raise Malformed("The form's Content-Type names no boundary of 1 to 70 characters.")
        self._parts = 0
        self._complete = False
        self._bytes = bytearray()
        self._parser = MultipartParser(
            boundary,
            {"on_part_begin": self._begin, "on_part_data": self._data, "on_end": self._end},
            max_header_size=_LONGEST_HEADER,
        )

    def file_bytes(self, chunk: bytes) -> bytes:
        """The bytes of the file in the next chunk of the form."""
        try:
            self._parser.write(chunk)
        except FormParserError:
            raise Malformed("The body is not the multipart form that its Content-Type says it is.") from None
        found = bytes(self._bytes)
        self._bytes.clear()
        return found

    def close(self) -> None:
        """Raise Malformed unless the form has come to its end."""
        if not self._complete:
            raise Malformed("The form ends before its closing boundary.")

    def _begin(self) -> None:
        self._parts += 1
        if self._parts > 1:
            raise InvalidInput("The form has several parts; one file was expected, and the rest in the query.")

    def _data(self, data: bytes, start: int, end: int) -> None:
        self._bytes += data[start:end]

    def _end(self) -> None:
        self._complete = True
