"""Old entries of the audit log go where the settings say so, and never without a word."""

from collections.abc import Callable

import pytest
from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session

from app.access.audit import prune
from app.store import tables
from app.store.db import db_now, new_id, writing

A = tables.AuditEntry


def _add(session: Session, n: int, days_ago: float, workspace: str = "default") -> None:
    who = {"key_id": "k", "key": "who", "method": "POST", "route": "/", "path": "/", "what": "job"}
    with writing(session):
        for _ in range(n):
            session.execute(insert(A).values(id=new_id(), at=db_now() - 86400 * days_ago, workspace=workspace, **who))


def _whats(session: Session, workspace: str = "default") -> list[str | None]:
    return list(session.scalars(select(A.what).where(A.workspace == workspace).order_by(A.id)))


def _reported(session: Session) -> list[int]:
    return [
        before["entries"]
        for before in session.scalars(select(A.before).where(A.what == "audit").order_by(A.id))
        if before
    ]


def test_without_a_setting_nothing_goes(session: Session) -> None:
    _add(session, 3, 10_000)
    assert prune(session) == 0
    assert _whats(session) == ["job"] * 3


def test_what_is_too_old_goes_and_an_entry_tells_so(session: Session, configure: Callable[..., None]) -> None:
    configure(keep_audit_seconds=30 * 86400)
    _add(session, 3, 31)
    _add(session, 2, 29)
    _add(session, 1, 31, "other")
    assert prune(session) == 4
    assert _whats(session) == ["job", "job", "audit"]
    assert _whats(session, "other") == ["audit"]
    assert sorted(_reported(session)) == [1, 3]
    entry = session.scalars(select(A).where(A.what == "audit", A.workspace == "default")).one()
    assert (entry.key, entry.method, entry.after) == ("", "", None)
    assert entry.before is not None
    assert entry.before["first"] <= entry.before["last"]


def test_it_is_done_once_a_day(session: Session, configure: Callable[..., None]) -> None:
    configure(keep_audit_seconds=86400)
    _add(session, 1, 2)
    assert prune(session) == 1
    _add(session, 1, 2)
    assert prune(session) == 0
    with writing(session):
        session.execute(update(A).where(A.what == "audit").values(at=A.at - 86401))
    # the entry about the first time is old by now, and is counted itself
    assert prune(session) == 2
    assert _reported(session) == [2]


@pytest.mark.parametrize("days_ago", [0.0, 100.0])
def test_each_workspace_keeps_its_newest(session: Session, configure: Callable[..., None], days_ago: float) -> None:
    configure(max_audit_entries=20)
    _add(session, 25, days_ago)
    _add(session, 20, days_ago, "other")
    assert prune(session) == 5
    assert _whats(session) == ["job"] * 20 + ["audit"]
    assert _whats(session, "other") == ["job"] * 20
    _add(session, 1, days_ago)
    assert prune(session) == 0  # no tenth more than it may have
    _add(session, 9, days_ago)
    assert prune(session) == 11
    assert _reported(session) == [5, 11]
