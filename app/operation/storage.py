"""What uses disk space and will be removed, reported before it is."""

import shutil

from sqlalchemy.orm import Session

from app.models import deletions
from app.models.schemas import DeletedVersion, OrphanedFile, Storage
from app.operation import sweep as sweeping
from app.store.files import Files


def report(session: Session, files: Files) -> Storage:
    """What the next collection removes."""
    return _reported(
        files, expired_deletions(session), deletions.deleted(session, due=False), _orphans(session, files), False
    )


def expired_deletions(session: Session) -> list[DeletedVersion]:
    """Deleted versions whose time is over."""
    return deletions.deleted(session, due=True)


def collect(session: Session, files: Files, deleted: bool = False) -> Storage:
    """Remove versions whose time is over and files that no row names; with ``deleted`` all deleted versions.

    The space of a version is reported as such, not again among the files.
    """
    versions = expired_deletions(session) + (deletions.deleted(session, due=False) if deleted else [])
    orphans = _orphans(session, files)
    deletions.purge(session, at_once=deleted)
    sweeping.tidy(session, files)
    return _reported(files, versions, deletions.deleted(session, due=False), orphans, True)


def _orphans(session: Session, files: Files) -> list[OrphanedFile]:
    paths = sweeping.orphans(session, files)
    return [OrphanedFile(path=path, size_bytes=sum(files.sizes(path).values())) for path in paths]


def _reported(
    files: Files,
    versions: list[DeletedVersion],
    restorable: list[DeletedVersion],
    orphans: list[OrphanedFile],
    collected: bool,
) -> Storage:
    files.root.mkdir(parents=True, exist_ok=True)
    return Storage(
        collected=collected,
        versions=versions,
        restorable=restorable,
        orphans=orphans,
        size_bytes=sum(each.size_bytes for each in versions) + sum(each.size_bytes for each in orphans),
        free_bytes=shutil.disk_usage(files.root).free,
    )
