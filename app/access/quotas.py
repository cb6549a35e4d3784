"""Limits of a workspace: unfinished jobs and stored bytes."""

from typing import get_args

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from app.access.schemas import Usage
from app.config import settings
from app.datasets import append_sources
from app.errors import StorageFull, TooMany
from app.jobs.schemas import FINAL_STATES, JobState
from app.plurals import counted
from app.store import tables
from app.store.db import one_at_a_time, reading
from app.store.files import files
from app.store.scope import DEFAULT, Scope, scope_of

_COME_AGAIN_SECONDS = 15.0


def require_jobs(session: Session) -> None:
    """Raise TooMany where the session's workspace may have no more jobs.

    To be called first in the transaction that makes one: others of the workspace then wait for its end, so that no two
    of them take the last place. A session that acts for nobody, as a worker's, may always.
    """
    scope = scope_of(session)
    if scope is None:
        return
    one_at_a_time(session, f"quota {scope.workspace}")
    most, found = settings().max_jobs, _open_jobs(session, scope.workspace)
    if most and found >= most:
        raise TooMany(
            f"The queue is full: the workspace has {counted(found, 'unfinished job')}, and its limit is {most}. Wait "
            "for jobs to end, or cancel some.",
            _COME_AGAIN_SECONDS,
        )


def require_room(session: Session, n_bytes: int, *, hold: bool = True) -> None:
    """Raise StorageFull where the session's workspace may not store so many bytes more.

    As :func:`require_jobs`; without ``hold`` for a look beforehand that keeps nobody waiting.
    """
    scope = scope_of(session)
    most = settings().max_stored_bytes
    if scope is None or not most:
        return
    if hold:
        one_at_a_time(session, f"quota {scope.workspace}")
    with reading(session):
        found = _stored_bytes(session, scope.workspace)
    if found + n_bytes > most:
        more = "it is full" if found >= most else f"this needs {n_bytes:,} more"
        raise StorageFull(
            f"The workspace stores {found:,} bytes of at most {most:,}, and {more}. Delete datasets or versions that "
            "you do not need; a deleted version counts until it can no longer be restored, or until an administrator "
            "removes it with storage collect --deleted."
        )


def require_room_for_incoming(workspace: str, room: int) -> None:
    """Raise StorageFull where what is being received for a workspace, in all its requests, is more than ``room``."""
    found = files().incoming_bytes(workspace)
    if found > room:
        raise StorageFull(
            f"The workspace has room for {room} bytes, and {found} are being uploaded to it at the moment."
        )


def free_bytes(session: Session) -> int | None:
    """Bytes that the session's workspace may still store; None: any number."""
    scope, most = scope_of(session), settings().max_stored_bytes
    if scope is None or not most:
        return None
    with reading(session):
        return max(0, most - _stored_bytes(session, scope.workspace))


def usage(session: Session, requests_per_second: float) -> Usage:
    """What the session's workspace has, and may have."""
    workspace = (scope_of(session) or Scope(DEFAULT)).workspace
    with reading(session):
        return Usage(
            workspace=workspace,
            jobs=_open_jobs(session, workspace),
            max_jobs=settings().max_jobs or None,
            stored_bytes=_stored_bytes(session, workspace),
            max_stored_bytes=settings().max_stored_bytes or None,
            requests_per_second=requests_per_second or None,
        )


def _open_jobs(session: Session, workspace: str) -> int:
    J = tables.Job
    # named one by one they are found by an index, however many jobs are over; a tuning is one job with all its trials
    states = J.state.in_(sorted(set(get_args(JobState)) - FINAL_STATES)) & J.parent_id.is_(None)
    return session.scalars(select(func.count()).select_from(J).where(J.workspace == workspace, states)).one()


def _stored_bytes(session: Session, workspace: str) -> int:
    D, F, M, V = tables.Dataset, tables.Feedback, tables.Model, tables.ModelVersion
    datasets = select(func.coalesce(func.sum(D.size_bytes), 0)).where(D.workspace == workspace)
    versions = select(func.coalesce(func.sum(V.size_bytes), 0)).join(M, M.id == V.model_id)
    reported = select(func.coalesce(func.sum(F.size_bytes), 0)).where(F.workspace == workspace)
    found = session.scalars(datasets).one() + session.scalars(reported).one()
    found += session.scalars(versions.where(M.workspace == workspace)).one()
    return int(found) + append_sources.waiting_bytes(session, workspace)
