"""Uploads in pieces: begun, resumed after an interruption, used once, and removed when they expire."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from sqlalchemy.orm import Session

from app.access import quotas
from app.config import settings
from app.datasets.schemas import PartialUpload
from app.errors import Conflict, InvalidInput, Item, NotFound, TooLarge, TooMany
from app.store import partial_uploads
from app.store.files import files
from app.store.partial_uploads import Partial

# of one workspace, used ones until they expire: each write of an upload looks at all of them
_MOST = 10_000
_COME_AGAIN_SECONDS = 60.0


def begin(session: Session, workspace: str, size_bytes: int) -> PartialUpload:
    """Begin the upload of a file in pieces.

    Raises
    ------
    TooLarge
        Larger than a file may be here.
    StorageFull
        The workspace has no room for it.
    TooMany
        The workspace has as many already as it may.
    """
    most = settings().max_upload_bytes
    if size_bytes > most:
        raise TooLarge(f"The file has {size_bytes} bytes; the maximum is {most}.")
    quotas.require_room(session, size_bytes, hold=False)
    found = partial_uploads.number(files(), workspace)
    if found >= _MOST:
        detail = f"The workspace has {found} uploads in pieces; discard some, or wait until used ones expire."
        raise TooMany(detail, _COME_AGAIN_SECONDS)
    return shown(partial_uploads.begin(files(), workspace, size_bytes))


def find(workspace: str, id: str) -> Partial:
    """An unused upload; raises NotFound, or Conflict if it has been used."""
    found = partial_uploads.find(files(), workspace, id)
    if found is None:
        raise NotFound("the upload does not exist or has expired")
    if found.sha256 is not None:
        raise Conflict("the upload has already been used")
    return found


@contextmanager
def using(workspace: str, id: str) -> Iterator[Partial]:
    """A complete upload, used or not; other requests for it wait until the end of the block.

    Raises
    ------
    NotFound
        There is none, or others forget it meanwhile.
    Conflict
        Bytes are missing.
    """
    with _whole(workspace, id).alone():
        # its previous holder may have used it
        yield _whole(workspace, id)


def require_same(sha256: str | None, found: str) -> None:
    """Raise InvalidInput if a file does not have the expected SHA-256."""
    if sha256 is not None and sha256 != found:
        raise InvalidInput("the file was damaged in transit", [Item(f"its SHA-256 is {found}", "/sha256")])


def discard(workspace: str, id: str) -> None:
    """Discard an upload; raises NotFound."""
    found = partial_uploads.find(files(), workspace, id)
    if found is None:
        raise NotFound("the upload does not exist or has expired")
    files().delete(f"{partial_uploads.FOLDER}/{found.folder.name}")


def shown(partial: Partial) -> PartialUpload:
    """An upload as the API shows it."""
    end = datetime.fromtimestamp(partial.changed_at, UTC) + timedelta(seconds=settings().upload_seconds)
    return PartialUpload(
        id=partial.id,
        size_bytes=partial.size_bytes,
        offset=partial.offset,
        max_piece_bytes=settings().max_body_bytes,
        expires_at=end,
    )


def _whole(workspace: str, id: str) -> Partial:
    found = partial_uploads.find(files(), workspace, id)
    if found is None:
        raise NotFound("the upload does not exist or has expired")
    if found.offset != found.size_bytes:
        raise Conflict(f"the upload is incomplete: {found.offset} of {found.size_bytes} bytes have been received")
    return found
