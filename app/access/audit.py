"""The audit log: who changed what, and which entries are pruned."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from sqlalchemy import ColumnElement, delete, event, func, insert, inspect, or_, select
from sqlalchemy.orm import ORMExecuteState, Session

from app.access.schemas import AuditEntry
from app.config import settings
from app.schemas import Page
from app.store import tables
from app.store.db import db_now, new_id, reading, writing
from app.store.lookup import moment, newest, to_schema
from app.store.scope import scope_of

A = tables.AuditEntry
_LONGEST = 200
# times are shown to the microsecond
_ROUNDED = 5e-7
# of new things; all else that they begin with is in themselves
_REPORTED = ("name", "number", "kind", "format", "sha256", "role", "workspace", "expires_at", "promotes")
# what a job or an import changes all the time, or nobody may read
_UNTOLD = {"digest", "secret", "former_secret", "statistics", "progress", "request", "result", "error", "lease_until"}


@dataclass(frozen=True)
class Act:
    """A request that may change something: who asks for what, and from where."""

    key_id: str
    key: str
    workspace: str
    method: str
    route: str
    path: str
    request_id: str | None
    address: str | None


def note_for(session: Session, act: Act) -> Session:
    """Note what the session changes from now on, as done by ``act``."""
    session.info["act"] = act
    return session


def changed(
    session: Session,
    row: tables.Table | tables.InWorkspace,
    before: Mapping[str, Any] | None,
    after: Mapping[str, Any] | None,
    what: str | None = None,
) -> None:
    """Note what a statement of the caller's transaction has changed.

    Parameters
    ----------
    row : Table
        The thing, as far as its id and name.
    before, after : mapping or None
        What has changed of it; None: it was, or is, not there.
    what : str, optional
        The kind of thing; by default that of the row.
    """
    if "act" in session.info:
        given = {"thing_id": getattr(row, "id", None), "name": getattr(row, "name", None)}
        change = {"what": what or _kind(row), **given, "before": _reported(before), "after": _reported(after)}
        session.info.setdefault("changes", []).append(change)


def page(
    session: Session,
    page_size: int = 100,
    page_token: str | None = None,
    *,
    key: str | None = None,
    thing: str | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
) -> Page[AuditEntry]:
    """Entries, newest first, of one key, about one thing, or of a time; each by name or id."""
    query = select(A)
    if key is not None:
        query = query.where(or_(A.key == key, A.key_id == key))
    if thing is not None:
        query = query.where(or_(A.name == thing, A.thing_id == thing))
    if since is not None:
        query = query.where(A.at >= since.timestamp() - _ROUNDED)
    if until is not None:
        query = query.where(A.at < until.timestamp() - _ROUNDED)
    with reading(session):
        rows, token = newest(session, A, query, page_size, page_token)
        return Page[AuditEntry](items=[_show(row) for row in rows], next_page_token=token)


@event.listens_for(Session, "do_orm_execute")
def _see_statement(state: ORMExecuteState) -> None:
    if state.is_insert or state.is_update or state.is_delete:
        state.session.info["wrote"] = True


@event.listens_for(Session, "before_flush")
def _see_rows(session: Session, _context: Any, _instances: Any) -> None:
    if "act" not in session.info:
        return
    session.info["wrote"] = True
    for row in session.dirty:
        history = {attribute.key: attribute.history for attribute in inspect(row).attrs}
        known = {name: found for name, found in history.items() if found.added and name not in _UNTOLD}
        before = {name: found.deleted[0] if found.deleted else None for name, found in known.items()}
        after = {name: found.added[0] for name, found in known.items()}
        differs = [name for name in known if before[name] is not after[name]]
        if differs:
            changed(session, row, {name: before[name] for name in differs}, {name: after[name] for name in differs})
    for row in session.deleted:
        changed(session, row, {}, None)


@event.listens_for(Session, "after_flush")
def _see_new_rows(session: Session, _context: Any) -> None:
    for row in session.new:
        if isinstance(row, tables.InWorkspace | tables.ModelVersion):
            columns = inspect(row).mapper.column_attrs.keys()
            changed(session, row, None, {name: getattr(row, name) for name in _REPORTED if name in columns})


@event.listens_for(Session, "before_commit")
def _write(session: Session) -> None:
    act: Act | None = session.info.get("act")
    if act is None:
        return
    session.flush()
    changes = session.info.get("changes", [])
    if not changes and (session.info.get("noted") or not session.info.get("wrote")):
        return
    who = {
        "workspace": act.workspace, "key_id": act.key_id, "key": act.key, "method": act.method, "route": act.route,
        "path": act.path[:_LONGEST], "request_id": act.request_id, "address": act.address,
    }  # fmt: skip
    nothing = {"what": None, "thing_id": None, "name": None, "before": None, "after": None}
    for change in changes or [nothing]:
        session.execute(insert(A).values(id=new_id(), at=db_now(), **who, **change))
    # what the same request writes further, as that nobody could be notified, is none of its user's changes
    session.info["noted"] = True
    _forget(session)


@event.listens_for(Session, "after_rollback")
def _forget(session: Session) -> None:
    session.info.pop("changes", None)
    session.info.pop("wrote", None)


def _kind(row: tables.Table | tables.InWorkspace) -> str:
    name: str = type(row).__name__
    return {"ModelVersion": "version"}.get(name, re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower())


def _reported(values: Mapping[str, Any] | None) -> dict[str, Any] | None:
    if values is None:
        return None
    reported = {
        name: value for name, value in values.items() if isinstance(value, str | int | float | list | dict | None)
    }
    return {name: value[:_LONGEST] if isinstance(value, str) else value for name, value in reported.items()}


def _show(row: tables.AuditEntry) -> AuditEntry:
    return to_schema(AuditEntry, row, thing=row.thing_id)


_PAUSE_SECONDS = 86400.0
_TOO_MANY = 1.1
# in place of a key's
_NOBODY = {"key_id": "", "key": "", "method": "", "route": "", "path": "", "request_id": None, "address": None}


def prune(session: Session) -> int:
    """Remove what is older, or more, than the settings let be, once a day; return the number of entries.

    Also between two days, where a workspace has a tenth more entries than it may. The session must see all workspaces.
    """
    assert scope_of(session) is None, "each workspace has its own entry about what was removed"
    most, seconds = settings().max_audit_entries, settings().keep_audit_seconds
    if not most and not seconds:
        return 0
    with reading(session):
        workspaces = session.scalars(select(A.workspace).distinct()).all()
    return sum(_prune(session, workspace, most, seconds) for workspace in workspaces)


def _prune(session: Session, workspace: str, most: int, seconds: float) -> int:
    own = A.workspace == workspace
    with writing(session):
        n = session.scalars(select(func.count()).select_from(A).where(own)).one()
        last = session.scalars(select(func.max(A.at)).where(own, A.key_id == "", A.what == "audit")).one()
        now = session.scalars(select(db_now())).one()
        crowded = most and n > _TOO_MANY * most
        if last is not None and now - last < _PAUSE_SECONDS and not crowded:
            return 0
        gone = [A.at < now - seconds] if seconds else []
        if most:
            newest_gone = session.scalars(select(A.id).where(own).order_by(A.id.desc()).offset(most).limit(1)).first()
            gone += [] if newest_gone is None else [A.id <= newest_gone]
        return _remove(session, workspace, own & or_(*gone)) if gone else 0


def _remove(session: Session, workspace: str, which: ColumnElement[bool]) -> int:
    n, first, last = session.execute(select(func.count(), func.min(A.at), func.max(A.at)).where(which)).one()
    if n == 0:
        return 0
    session.execute(delete(A).where(which).execution_options(synchronize_session=False))
    reported = {"entries": n, "first": moment(first).isoformat(), "last": moment(last).isoformat()}
    entry = {"what": "audit", "thing_id": None, "name": None, "before": reported, "after": None}
    session.execute(insert(A).values(id=new_id(), at=db_now(), workspace=workspace, **_NOBODY, **entry))
    return int(n)
