"""Leases: one winner, and a stale holder's writes hit nothing."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session, sessionmaker

from app.errors import Conflict
from app.jobs import leases
from app.jobs import logs as job_logs
from app.jobs import service as jobs
from app.jobs.leases import Checkpoint, Fenced, Lease
from app.jobs.schemas import TrainRequest
from app.operation import sweep as sweeping
from app.store import tables
from app.store.db import db_now, writing

STEP = {"epoch": 1, "primal": 2.0, "dual": 1.0, "gap": 0.5, "violation": None, "seconds": 0.1}


@pytest.fixture
def job_id(database: sessionmaker[Session], dataset: Callable[..., str]) -> str:
    dataset()
    with database() as session:
        return jobs.submit(session, TrainRequest(solver="weston_watkins", dataset="digits", model="m")).id


def _row(session: Session, job_id: str) -> tables.Job:
    return session.scalars(
        select(tables.Job).where(tables.Job.id == job_id).execution_options(populate_existing=True)
    ).one()


def _steal(session: Session, job_id: str) -> Lease:
    """What happens to a worker that is silent for too long."""
    with writing(session):
        session.execute(update(tables.Job).where(tables.Job.id == job_id).values(lease_until=db_now() - 1))
    assert sweeping.sweep(session).requeued == [job_id]
    lease = leases.claim(session, job_id, "thief")
    assert lease is not None
    return lease


def test_of_many_claims_at_once_one_wins(database: sessionmaker[Session], job_id: str) -> None:
    barrier, won = threading.Barrier(4), []

    def claim() -> None:
        with database() as session:
            barrier.wait()
            won.append(leases.claim(session, job_id, threading.current_thread().name))

    threads = [threading.Thread(target=claim) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(lease.attempt for lease in won if lease) == [1]
    assert len(won) == 4


def test_a_claim_holds_the_job_by_the_databases_clock(session: Session, job_id: str) -> None:
    lease = leases.claim(session, job_id, "me")
    assert lease is not None
    assert (lease.attempt, lease.kind, lease.request["model"]) == (1, "train", "m")
    row = _row(session, job_id)
    left = session.scalars(select(tables.Job.lease_until - db_now()).where(tables.Job.id == job_id)).one()
    assert (row.state, row.worker) == ("running", "me")
    assert left is not None
    assert 25 < left <= 30
    assert leases.claim(session, job_id, "another") is None
    assert leases.claim(session, "0" * 32, "another") is None


def _finish(session: Session, lease: Lease) -> None:
    with leases.fenced(session, lease):
        leases.end(session, lease, "succeeded", result={"model": "m", "version": 1})


WRITES: dict[str, Callable[[Session, Lease], Any]] = {
    "heartbeat": leases.heartbeat,
    "record": lambda session, lease: leases.record(
        session, lease, [{**STEP, "number": 7}], {"epoch": 9, "fraction": 1}
    ),
    "checkpoint": lambda session, lease: leases.save_checkpoint(session, lease, Checkpoint(1, 7, 0.1, "p", "s")),
    "drop": leases.drop_checkpoint,
    "finish": _finish,
    "give back": leases.give_back,
}


@pytest.mark.parametrize("write", WRITES)
def test_a_stale_holders_writes_hit_nothing(write: str, session: Session, job_id: str) -> None:
    stale = leases.claim(session, job_id, "me")
    assert stale is not None
    thief = _steal(session, job_id)
    leases.record(session, thief, [{**STEP, "number": 0}], {"epoch": 1, "fraction": 0.5})
    leases.save_checkpoint(session, thief, Checkpoint(2, 0, 0.1, "path", "sha"))

    def everything() -> list[Any]:
        tables_of_job = (tables.Job, tables.Step, tables.Checkpoint)
        rows = [session.execute(select(*table.__table__.columns)).all() for table in tables_of_job]
        session.rollback()
        return rows

    before = everything()
    with pytest.raises(Fenced):
        WRITES[write](session, stale)
    assert everything() == before


@pytest.mark.parametrize("write", WRITES)
def test_a_job_that_has_ended_takes_no_writes(write: str, session: Session, job_id: str) -> None:
    lease = leases.claim(session, job_id, "me")
    assert lease is not None
    _finish(session, lease)
    with pytest.raises(Fenced):
        WRITES[write](session, lease)
    row = _row(session, job_id)
    assert (row.state, row.result, row.lease_until) == ("succeeded", {"model": "m", "version": 1}, None)


def test_a_failure_inside_the_last_transaction_leaves_nothing_of_it(session: Session, job_id: str) -> None:
    lease = leases.claim(session, job_id, "me")
    assert lease is not None

    def crash() -> None:
        with leases.fenced(session, lease):
            session.add(tables.Model(id="m", name="m", created_at=0.0))
            leases.end(session, lease, "succeeded", result={})
            raise LookupError

    with pytest.raises(LookupError):
        crash()
    assert _row(session, job_id).state == "running"
    assert session.scalars(select(func.count()).select_from(tables.Model)).one() == 0


def test_the_holder_learns_that_it_shall_cancel(session: Session, job_id: str) -> None:
    lease = leases.claim(session, job_id, "me")
    assert lease is not None
    assert leases.heartbeat(session, lease) == "running"
    assert jobs.cancel(session, job_id).state == "cancelling"
    assert jobs.cancel(session, job_id).state == "cancelling"
    assert leases.heartbeat(session, lease) == "cancelling"
    assert leases.give_back(session, lease) == "cancelled"
    assert _row(session, job_id).state == "cancelled"
    with pytest.raises(Fenced):
        leases.heartbeat(session, lease)


def test_a_job_given_back_is_no_loss_and_goes_to_the_next(session: Session, job_id: str) -> None:
    lease = leases.claim(session, job_id, "me")
    assert lease is not None
    assert leases.give_back(session, lease) == "queued"
    row = _row(session, job_id)
    assert (row.state, row.losses, row.worker) == ("queued", 0, None)
    following = leases.claim(session, job_id, "another")
    assert following is not None
    assert following.attempt == 2


def test_a_claim_removes_the_steps_that_the_checkpoint_has_not_seen(session: Session, job_id: str) -> None:
    lease = leases.claim(session, job_id, "me")
    assert lease is not None
    leases.record(session, lease, [{**STEP, "number": number} for number in range(5)], None)
    assert leases.save_checkpoint(session, lease, Checkpoint(1, 2, 0.1, "first", "s")) is None
    assert leases.save_checkpoint(session, lease, Checkpoint(1, 3, 0.2, "second", "s")) == "first"
    thief = _steal(session, job_id)
    assert [step.number for step in job_logs.steps(session, job_id).steps] == [0, 1, 2, 3]
    assert leases.last_checkpoint(session, thief) == Checkpoint(1, 3, 0.2, "second", "s")
    leases.drop_checkpoint(session, thief)
    assert leases.last_checkpoint(session, thief) is None
    assert job_logs.steps(session, job_id).steps == []


def test_steps_written_twice_are_kept_once(session: Session, job_id: str) -> None:
    lease = leases.claim(session, job_id, "me")
    assert lease is not None
    for _ in range(2):
        leases.record(session, lease, [{**STEP, "number": 0}], None)
    assert [step.number for step in job_logs.steps(session, job_id).steps] == [0]


def test_an_ended_job_cannot_be_cancelled_and_a_running_one_not_retried(session: Session, job_id: str) -> None:
    lease = leases.claim(session, job_id, "me")
    assert lease is not None
    with pytest.raises(Conflict, match="is running"):
        jobs.retry(session, job_id)
    _finish(session, lease)
    with pytest.raises(Conflict, match="has succeeded"):
        jobs.cancel(session, job_id)
    with pytest.raises(Conflict, match="is succeeded"):
        jobs.retry(session, job_id)
