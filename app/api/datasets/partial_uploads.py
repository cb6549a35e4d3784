"""Routes for files that come in pieces."""

import asyncio
import base64
import binascii
from typing import Annotated

from fastapi import APIRouter, Depends, Header, Request, Response
from starlette.concurrency import run_in_threadpool

from app.api.access.auth import EDITOR, VIEWER
from app.api.common.bodies import JsonBody
from app.api.common.parameters import Db, Id, opened
from app.api.common.paths import UPLOADS
from app.api.common.problems import responses
from app.errors import Conflict, InvalidInput, Item, Malformed
from app.schemas.datasets.uploads import NewUpload, PartialUpload
from app.services.access import quotas
from app.services.datasets import partial_uploads
from app.store.partial_uploads import OffsetError, Partial, Piece

router = APIRouter(prefix=UPLOADS, tags=["uploads"])

_new = JsonBody(NewUpload)
_BLOCK_BYTES = 1 << 20
_PIECE = {
    "requestBody": {
        "required": True,
        "description": "The bytes from the offset on, with any Content-Type.",
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.post(
    "",
    status_code=201,
    dependencies=[EDITOR],
    openapi_extra=_new.schema,
    responses=responses(400, 401, 403, 413, 415, 422, 507),
)
def begin_upload(
    request: Request, response: Response, session: Db, body: Annotated[NewUpload, Depends(_new)]
) -> PartialUpload:
    """Begin a file that comes in pieces; `upload` in POST /datasets then names it in place of a body."""
    begun = partial_uploads.begin(session, request.state.key.workspace, body.size_bytes)
    response.headers["Location"] = f"{UPLOADS}/{begun.id}"
    return begun


@router.get("/{id}", dependencies=[VIEWER], responses=responses(401, 403, 404, 409, 422))
def get_upload(request: Request, response: Response, id: Id) -> PartialUpload:
    """How many bytes have come: after a connection broke, the next piece begins there."""
    found = partial_uploads.shown(partial_uploads.find(request.state.key.workspace, id))
    response.headers["Upload-Offset"] = str(found.offset)
    return found


@router.patch(
    "/{id}",
    dependencies=[EDITOR],
    openapi_extra=_PIECE,
    responses=responses(400, 401, 403, 404, 409, 413, 422, 507),
)
async def append_to_upload(
    request: Request,
    response: Response,
    id: Id,
    upload_offset: Annotated[int, Header(ge=0, lt=2**63, description="Where the piece begins.")],
    upload_checksum: Annotated[
        str | None,
        Header(
            pattern="^sha256 [A-Za-z0-9+/]{43}=$",
            description="`sha256` and the piece's hash in base 64: a piece with another is forgotten.",
        ),
    ] = None,
) -> PartialUpload:
    """Send the next piece; what came of one that broke off stays, unless it has a checksum."""
    workspace = request.state.key.workspace
    found = await run_in_threadpool(partial_uploads.find, workspace, id)
    digest = _digest(upload_checksum)

    def room() -> int | None:
        with opened(request) as session:
            return quotas.room(session)

    left = await run_in_threadpool(room)
    try:
        with found.piece(upload_offset) as piece:
            await _receive(request, found, piece, digest, left)
    except OffsetError as error:
        detail = f"the piece begins at {upload_offset}, and {error.offset} bytes have come"
        raise Conflict(detail, [Item(detail, "/Upload-Offset")]) from None
    shown = await run_in_threadpool(partial_uploads.shown, found)
    response.headers["Upload-Offset"] = str(shown.offset)
    return shown


@router.delete("/{id}", status_code=204, dependencies=[EDITOR], responses=responses(401, 403, 404, 422))
def discard_upload(request: Request, id: Id) -> None:
    """Forget an upload and what has come of it."""
    partial_uploads.discard(request.state.key.workspace, id)


async def _receive(request: Request, found: Partial, piece: Piece, digest: bytes | None, room: int | None) -> None:
    """Write the request's body; a piece whose hash is not known to be right is forgotten."""
    workspace, block, right = request.state.key.workspace, bytearray(), False

    def write(data: bytes) -> None:
        if piece.end + len(data) > found.size_bytes:
            raise InvalidInput(f"the piece goes beyond the {found.size_bytes} bytes that the file has")
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
        ends = piece.settle if right or digest is None else piece.discard
        await asyncio.shield(run_in_threadpool(ends))
    if not right:
        raise InvalidInput("the piece is not what was sent", [Item("its checksum is another", "/Upload-Checksum")])


def _digest(checksum: str | None) -> bytes | None:
    if checksum is None:
        return None
    try:
        return base64.b64decode(checksum.removeprefix("sha256 "), validate=True)
    except binascii.Error:
        raise Malformed("The Upload-Checksum is not base 64.") from None
