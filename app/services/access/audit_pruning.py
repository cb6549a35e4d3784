"""Old entries of the audit log are removed where the installation's settings say so, and an entry tells that.

No route does it, so that no key can hide what was done with it. Numbers are counted workspace by workspace: one that
changes much removes nothing of another's.
"""

from sqlalchemy import ColumnElement, delete, func, insert, or_, select
from sqlalchemy.orm import Session

from app.config import settings
from app.services.common.lookup import moment
from app.store import tables
from app.store.db import db_now, new_id, reading, writing
from app.store.scope import scope_of

A = tables.AuditEntry
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
