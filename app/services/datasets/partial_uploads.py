"""Uploads in pieces: begun, continued after a connection broke, used once, and forgotten after a while."""

from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

from sqlalchemy.orm import Session

from app.config import settings
from app.errors import Conflict, InvalidInput, Item, NotFound, TooLarge, TooMany
from app.schemas.datasets.uploads import PartialUpload
from app.services.access import quotas
from app.store import partial_uploads
from app.store.files import files
from app.store.partial_uploads import Partial

# of one workspace, used ones until they expire: each write of an upload looks at all of them
_MOST = 10_000
_COME_AGAIN_SECONDS = 60.0


def begin(session: Session, workspace: str, size_bytes: int) -> PartialUpload:
    """A file that will come in pieces.

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
        raise TooLarge(f"The file has {size_bytes} bytes; at most {most} are taken here.")
    quotas.require_room(session, size_bytes, hold=False)
    found = partial_uploads.number(files(), workspace)
    if found >= _MOST:
        detail = (
            f"The workspace has {found} uploads in pieces; discard some, or wait until those that were used expire."
        )
        raise TooMany(detail, _COME_AGAIN_SECONDS)
    return shown(partial_uploads.begin(files(), workspace, size_bytes))


def find(workspace: str, id: str) -> Partial:
    """An upload that is not used yet; raises NotFound, and Conflict where it is."""
    found = partial_uploads.find(files(), workspace, id)
    if found is None:
        raise NotFound("there is no such upload, or it has expired")
    if found.sha256 is not None:
        raise Conflict("the upload was used already")
    return found


@contextmanager
def using(workspace: str, id: str) -> Iterator[Partial]:
    """An upload that has come whole, used or not; who asks for it meanwhile waits until the end of the block.

    Raises
    ------
    NotFound
        There is none, or others forget it meanwhile.
    Conflict
        Bytes are missing.
    """
    with _whole(workspace, id).alone():
        # whoever had it before may have used it
        yield _whole(workspace, id)


def require_same(sha256: str | None, found: str) -> None:
    """Raise InvalidInput where a file is not the one that was meant."""
    if sha256 is not None and sha256 != found:
        raise InvalidInput("the file is not what was sent", [Item(f"its SHA-256 is {found}", "/sha256")])


def discard(workspace: str, id: str) -> None:
    """Forget an upload; raises NotFound."""
    found = partial_uploads.find(files(), workspace, id)
    if found is None:
        raise NotFound("there is no such upload, or it has expired")
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
        raise NotFound("there is no such upload, or it has expired")
    if found.offset != found.size_bytes:
        raise Conflict(f"of the upload's {found.size_bytes} bytes {found.offset} have come")
    return found
