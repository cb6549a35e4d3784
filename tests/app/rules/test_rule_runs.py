"""Starts of rules: exactly once, on both databases, also with several processes and after any time."""

import errno
import threading
from typing import Any

import pytest
from sqlalchemy import select, update
from sqlalchemy.exc import DataError
from sqlalchemy.orm import Session, sessionmaker

from app.errors import Conflict
from app.rules import runs as rule_runs
from app.rules import stages as rule_stages
from app.store import tables
from app.store.db import db_now, new_id, writing

U = tables.RuleRun


@pytest.fixture
def rule(database: sessionmaker[Session]) -> str:
    """A rule whose time came a week of nights ago."""
    with database() as session, writing(session):
        model = tables.Model(id=new_id(), name="m", created_at=0.0)
        session.add(model)
        session.flush()
        now = session.scalars(select(db_now())).one()
        row = tables.Rule(
            id=new_id(), name="nightly", model_id=model.id, training={}, warm=False, cron="0 2 * * *", time_zone="UTC",
            feedback=False, feedback_rows=None, enabled=True, due_at=now - 7 * 86400, created_at=now,
        )  # fmt: skip
        session.add(row)
        return row.id


def _feedback(session: Session, n: int, rule: str) -> None:
    with writing(session):
        model_id = session.scalars(select(tables.Rule.model_id).where(tables.Rule.id == rule)).one()
        for _ in range(n):
            session.add(
                tables.Feedback(
                    id=new_id(), model_id=model_id, number=1, instance={}, labels=["a"], size_bytes=1, created_at=0.0
                )
            )


def _set(session: Session, **values: Any) -> None:
    with writing(session):
        session.execute(update(tables.Rule).values(**values))


def _runs(session: Session) -> list[str]:
    return list(session.scalars(select(U.cause).order_by(U.id)))


def test_of_many_schedulers_one_starts_what_was_missed_and_once(database: sessionmaker[Session], rule: str) -> None:
    ready, started = threading.Barrier(6), []

    def look() -> None:
        with database() as session:
            ready.wait()
            started.extend(rule_runs.start_due(session))

    threads = [threading.Thread(target=look) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with database() as session:
        row = session.get_one(tables.Rule, rule)
        assert (started, _runs(session)) == ([row.run_id], ["time"])
        now = session.scalars(select(db_now())).one()
        assert row.due_at is not None
        assert now < row.due_at <= now + 86400
        # the run before is over, and the next time has not come
        session.rollback()
        _set(session, run_id=None)
        assert rule_runs.start_due(session) == []


def test_a_rule_that_is_due_waits_for_its_run_and_one_that_is_off_for_ever(session: Session, rule: str) -> None:
    first = rule_runs.start_due(session)
    _set(session, due_at=1.0)
    assert rule_runs.start_due(session) == []
    with pytest.raises(Conflict, match=first[0]):
        rule_runs.start(session, "nightly")
    _set(session, run_id=None, enabled=False)
    assert rule_runs.start_due(session) == []
    assert rule_runs.start(session, "nightly").cause == "asked"
    assert _runs(session) == ["time", "asked"]


def test_feedback_counts_once(session: Session, rule: str) -> None:
    _set(session, cron=None, due_at=None, feedback_rows=3)
    _feedback(session, 2, rule)
    assert rule_runs.start_due(session) == []
    _feedback(session, 1, rule)
    assert len(rule_runs.start_due(session)) == 1
    # the run has ended and could make no rows of the reports, which still wait
    _set(session, run_id=None)
    _feedback(session, 2, rule)
    assert rule_runs.start_due(session) == []
    _feedback(session, 1, rule)
    assert len(rule_runs.start_due(session)) == 1
    assert _runs(session) == ["feedback", "feedback"]


def _another(session: Session, rule: str, **values: Any) -> str:
    first = session.get_one(tables.Rule, rule)
    same = {column.name: getattr(first, column.name) for column in tables.Rule.__table__.columns}
    with writing(session):
        session.add(tables.Rule(**{**same, "id": new_id(), "name": "other", "workspace": "b", **values}))
    return session.scalars(select(tables.Rule.id).where(tables.Rule.name == "other")).one()


def test_a_rule_whose_schedule_names_no_moment_any_more_holds_up_no_other(session: Session, rule: str) -> None:
    other = _another(session, rule)
    with writing(session):
        session.execute(update(tables.Rule).where(tables.Rule.id == rule).values(time_zone="Mars/Olympus"))
    assert len(rule_runs.start_due(session)) == 1
    assert session.scalars(select(U.rule_id)).all() == [other]


@pytest.mark.parametrize(
    ("error", "stages"),
    [
        (KeyError("x"), ["ended"]),
        (DataError("", {}, Exception("text with U+0000")), ["ended"]),
        (OSError(errno.ENOSPC, "full"), ["starting"]),
    ],
)
def test_a_run_that_breaks_holds_up_no_other(
    session: Session, rule: str, monkeypatch: pytest.MonkeyPatch, error: Exception, stages: list[str]
) -> None:
    other, reached = _another(session, rule), []

    def begin(_session: Session, of: tables.Rule, _run: tables.RuleRun) -> None:
        if of.id == rule:
            raise error
        reached.append(of.id)

    monkeypatch.setitem(rule_stages._STAGES, "starting", begin)
    rule_stages.turn(session)
    assert reached == [other]
    session.expire_all()
    (broken,) = session.scalars(select(U).where(U.rule_id == rule))
    assert [broken.stage] == stages
    if broken.stage == "ended":
        assert broken.error is not None
        assert (broken.outcome, broken.error["detail"]) == ("failed", f"see the worker's log for run {broken.id}")
        assert session.get_one(tables.Rule, rule).run_id is None
