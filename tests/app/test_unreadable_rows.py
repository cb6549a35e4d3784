"""A row that the database or the service cannot read holds up nothing else, and such rows of old are repaired."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import insert, select, text
from sqlalchemy.exc import DataError, OperationalError
from sqlalchemy.orm import Session, sessionmaker

from app.errors import Conflict
from app.jobs import leases, slots
from app.jobs import queue as queue_order
from app.jobs import service as jobs
from app.jobs.schemas import TrainRequest
from app.models import deletions
from app.operation import sweep as sweeping
from app.predictions.model_cache import ModelCache
from app.store import migrate, tables
from app.store.db import db_now, make_engine, new_id, writing
from app.store.queue import GENERAL
from app.store.scope import DEFAULT
from app.store.text_repair import repair
from workers import sweeper

ZERO = json.dumps({"model": "m", "shards": 2, "text": {"stop_words": ["x\0y"]}})


@pytest.fixture
def submit(session: Session, dataset: Callable[..., str]) -> Callable[..., str]:
    dataset()

    def one(**values: Any) -> str:
        request = {"solver": "weston_watkins", "dataset": "digits", "model": "m", **values}
        return jobs.submit(session, TrainRequest.model_validate(request)).id

    return one


def _spoil(session: Session, id: str, request: str = ZERO) -> None:
    """Write a request as no door takes it."""
    with writing(session):
        kind = "JSON" if session.get_bind().dialect.name == "postgresql" else "TEXT"
        session.execute(
            text(f"UPDATE jobs SET request = CAST(:request AS {kind}) WHERE id = :id"), {"request": request, "id": id}
        )
    session.expire_all()


def test_requests_with_a_zero_stop_no_claim(
    session: Session, submit: Callable[..., str], configure: Callable[..., None]
) -> None:
    configure(lease_seconds=600, sweep_seconds=600)
    for queue in ("shard-0", "shard-1"):
        slots.report_worker(session, f"host:{queue}", queue, 1)
    assert leases.claim(session, submit(shards=2), "w") is not None  # has all slots
    ids = [submit(shards=2) for _ in range(3)]
    good = submit()
    for id in ids:
        _spoil(session, id)
    lease = leases.claim_first(session, queue_order.upcoming(session, GENERAL), "w")
    assert lease is not None
    assert lease.job_id == good


def test_a_job_that_cannot_be_read_is_set_aside_and_reported(session: Session, submit: Callable[..., str]) -> None:
    bad, good = submit(), submit()
    _spoil(session, bad, "5")
    lease = leases.claim_first(session, queue_order.upcoming(session, GENERAL), "w")
    assert lease is not None
    assert lease.job_id == good
    state, error = session.execute(select(tables.Job.state, tables.Job.error).where(tables.Job.id == bad)).one()
    assert (state, error["code"]) == ("failed", "unreadable")


def test_a_lost_connection_sets_no_job_aside(
    session: Session, submit: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    id = submit()

    def away(*_: object) -> None:
        raise OperationalError("", {}, Exception("server closed the connection"), connection_invalidated=True)

    monkeypatch.setattr(leases, "_claim", away)
    with pytest.raises(OperationalError):
        leases.claim_first(session, iter([id]), "w")
    assert jobs.get(session, id).state == "queued"


def test_retention_and_pages_of_models_read_over_such_jobs(
    database: sessionmaker[Session], session: Session, submit: Callable[..., str]
) -> None:
    bad, waiting = submit(), submit()
    _spoil(session, bad)
    with pytest.raises(Conflict, match=bad):  # Python reads what PostgreSQL does not
        ModelCache(database, 1 << 20).get((DEFAULT, "m", None, None))
    _spoil(session, bad, '"no object"')
    with pytest.raises(Conflict, match=waiting):
        ModelCache(database, 1 << 20).get((DEFAULT, "m", None, None))
    _spoil(session, bad)
    with writing(session):
        session.add(tables.Model(id=new_id(), name="m", created_at=0.0, keep_last=1))
    assert deletions.apply_retention(session) == []


def test_a_job_that_cannot_be_expired_holds_up_no_other(
    session: Session, submit: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = submit(), submit()
    for id in (first, second):
        assert leases.claim(session, id, "w") is not None
    with writing(session):
        session.execute(tables.Job.__table__.update().values(lease_until=db_now() - 1))  # type: ignore[attr-defined]
    expire = sweeping._expire

    def broken(of: Session, id: str) -> str | None:
        if id == first:
            raise DataError("", {}, Exception("unreadable"))
        return expire(of, id)

    monkeypatch.setattr(sweeping, "_expire", broken)
    assert sweeping.expire(session).requeued == [second]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_each_step_of_the_sweeper_stands_alone(
    database: sessionmaker[Session], monkeypatch: pytest.MonkeyPatch
) -> None:
    done = []

    def broken(_session: Session) -> None:
        raise DataError("", {}, Exception("unreadable"))

    def act(_session: Session) -> None:
        done.append(1)

    monkeypatch.setattr(sweeper, "_SWEEPS", (broken, act))
    monkeypatch.setattr(sweeper, "_TIDYING", (broken, act))
    sweeper._round("w", GENERAL, 1, tidy_now=True)
    assert done == [1, 1]


def test_what_workers_report_is_stored_without_what_cannot_be(session: Session, submit: Callable[..., str]) -> None:
    id = submit()
    with writing(session):
        row = session.get_one(tables.Job, id)
        row.error = {"detail": "row 2: 'a\0\ud800'", "n": 1}
    stored = session.execute(text("SELECT error FROM jobs WHERE id = :id"), {"id": id}).scalar_one()
    stored = json.loads(stored) if isinstance(stored, str) else stored
    assert stored == {"detail": "row 2: 'a\ufffd\ufffd'", "n": 1}


def test_rows_of_versions_before_are_repaired(session: Session, submit: Callable[..., str]) -> None:
    bad, good = submit(), submit(tags={"smile": "\U0001f600 \\u0000"})
    _spoil(session, bad, ZERO.replace("x\\u", "\\ud800\\u"))
    kept = session.get_one(tables.Job, good).tags
    sqlite = session.get_bind().dialect.name == "sqlite"
    if sqlite:
        with writing(session):
            model = tables.Model(id=new_id(), name="m", created_at=0.0)
            session.add(model)
            session.flush()
            same = {"model_id": model.id, "number": 1, "instance": {}, "labels": ["a"], "size_bytes": 1}
            session.execute(
                insert(tables.Feedback).values(id=new_id(), note="a\0b", workspace="default", created_at=0.0, **same)
            )
    with session.get_bind().connect() as connection:  # type: ignore[union-attr]
        assert repair(connection) == (2 if sqlite else 1)
        connection.commit()
        assert repair(connection) == 0
    session.rollback()
    session.expire_all()
    assert session.get_one(tables.Job, bad).request["text"] == {"stop_words": ["\ufffd\ufffdy"]}
    assert session.get_one(tables.Job, good).tags == kept
    assert session.scalars(select(tables.Feedback.note)).all() == (["a\ufffdb"] if sqlite else [])
    (found,) = session.execute(text("SELECT CAST(request AS TEXT) FROM jobs WHERE id = :id"), {"id": bad}).one()
    assert "u0000" not in found


def test_the_migration_repairs_them(tmp_path: Any) -> None:
    url = f"sqlite:///{tmp_path}/old.db"
    migrate.upgrade(url, "0027")
    engine = make_engine(url)
    with engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO jobs (id, kind, state, queue, request, attempt, losses, created_at, workspace, priority) "
                "VALUES ('j', 'train', 'queued', 'general', :request, 0, 0, 1.0, 'default', 0)"
            ),
            {"request": ZERO},
        )
    engine.dispose()
    migrate.upgrade(url)
    engine = make_engine(url)
    with engine.connect() as connection:
        (request,) = connection.execute(text("SELECT request FROM jobs")).scalars()
    engine.dispose()
    assert json.loads(request)["text"] == {"stop_words": ["x\ufffdy"]}
