"""The context of a job: heartbeats, patience with the database, and its end."""

import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from numba.core import event
from sqlalchemy.exc import OperationalError
from sqlalchemy.orm import Session, sessionmaker

from app.jobs import leases
from app.jobs import logs as job_logs
from app.jobs import service as jobs
from app.jobs.leases import Fenced, Lease
from app.jobs.schemas import TrainRequest
from app.store import tables
from workers.running import compiling, job_context, lanes
from workers.running.job_context import Cancelled, Drained, JobContext

STEP = {"epoch": 1, "primal": 2.0, "dual": 1.0, "gap": 0.5, "violation": None, "seconds": 0.1}
pytestmark = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


@pytest.fixture
def lease(database: sessionmaker[Session], dataset: Callable[..., str]) -> Lease:
    dataset()
    with database() as session:
        lease = leases.claim(
            session, jobs.submit(session, TrainRequest(solver="weston_watkins", dataset="digits", model="m")).id, "me"
        )
    assert lease is not None
    return lease


@pytest.fixture(autouse=True)
def _withdrawn() -> Iterator[None]:
    yield
    lanes.withdraw_drain()


def _until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def _away(_session: Session) -> Any:
    raise OperationalError("SELECT 1", {}, Exception("away"))


def test_the_heartbeat_keeps_the_lease_while_the_work_says_nothing(
    database: sessionmaker[Session], lease: Lease, configure: Callable[..., None]
) -> None:
    configure(heartbeat_seconds=0.02)

    def until() -> float:
        with database() as session:
            row = session.get(tables.Job, lease.job_id)
            assert row is not None
            assert row.lease_until is not None
            return row.lease_until

    before = until()
    with JobContext(lease, time.monotonic()) as context:
        _until(lambda: until() > before + 0.05)
        context.check()


def test_a_wish_to_cancel_is_heard(
    database: sessionmaker[Session], lease: Lease, configure: Callable[..., None]
) -> None:
    configure(heartbeat_seconds=0.02)
    with JobContext(lease, time.monotonic()) as context:
        context.check()
        with database() as session:
            jobs.cancel(session, lease.job_id)
        _until(lambda: _raises(context.check, Cancelled))


def test_work_that_cannot_be_interrupted_is_cancelled_in_its_stead(
    database: sessionmaker[Session], lease: Lease, configure: Callable[..., None]
) -> None:
    configure(heartbeat_seconds=0.02)
    with JobContext(lease, time.monotonic()) as context:
        context.phase("features")
        with database() as session:
            jobs.cancel(session, lease.job_id)
            _until(lambda: jobs.get(session, lease.job_id).state == "cancelled")
        # until the heartbeat knows that it has ended the job, the work is ended with it
        _until(lambda: _raises(lambda: context.phase("training"), Fenced, but=Cancelled))


def test_work_that_cannot_be_interrupted_is_given_back_in_its_stead(
    database: sessionmaker[Session], lease: Lease, configure: Callable[..., None]
) -> None:
    configure(heartbeat_seconds=0.02)
    with JobContext(lease, time.monotonic()) as context, database() as session:
        context.phase("features")
        lanes.request_drain()
        _until(lambda: jobs.get(session, lease.job_id).state == "queued")
    with pytest.raises(Fenced):
        context.end("failed")


@pytest.mark.parametrize("wish", ["cancel", "drain"])
def test_long_steps_do_not_keep_a_wish_to_stop_waiting(
    database: sessionmaker[Session],
    lease: Lease,
    configure: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
    wish: str,
) -> None:
    configure(heartbeat_seconds=0.02)
    monkeypatch.setattr(job_context, "_CANCEL_SECONDS", 0.1)
    monkeypatch.setattr(job_context, "_DRAIN_SECONDS", 0.1)
    with JobContext(lease, time.monotonic()) as context, database() as session:
        context.phase("training", at_once=False)
        if wish == "cancel":
            jobs.cancel(session, lease.job_id)
        else:
            lanes.request_drain()
        expected = "cancelled" if wish == "cancel" else "queued"
        _until(lambda: jobs.get(session, lease.job_id).state == expected)
    with pytest.raises(Fenced):
        context.end("failed")


def test_a_worker_that_shall_end_finishes_what_it_cannot_keep(lease: Lease) -> None:
    context = JobContext(lease, time.monotonic())
    lanes.request_drain()
    with pytest.raises(Drained):
        context.check()
    context.phase("testing", at_once=False)


def test_a_worker_that_cannot_write_for_its_lease_gives_the_job_up(
    lease: Lease, configure: Callable[..., None]
) -> None:
    configure(lease_seconds=0.2, heartbeat_seconds=0.02)
    context = JobContext(lease, time.monotonic())
    calls = []

    def away(session: Session) -> str:
        calls.append(1)
        # back at last, so that a worker that never gives up fails here rather than asks forever
        return _away(session) if len(calls) <= 500 else "running"

    with pytest.raises(Fenced):
        context.write(away)
    with pytest.raises(Fenced):
        context.check()


def test_a_lease_that_ran_out_by_this_workers_clock_ends_the_work_without_asking(lease: Lease) -> None:
    with pytest.raises(Fenced):
        JobContext(lease, time.monotonic() - 31).check()


def test_a_database_that_comes_back_in_time_is_waited_for(lease: Lease, configure: Callable[..., None]) -> None:
    configure(heartbeat_seconds=0.02)
    calls = []

    def operation(session: Session) -> str:
        calls.append(1)
        return _away(session) if len(calls) < 3 else leases.heartbeat(session, lease)

    assert JobContext(lease, time.monotonic()).write(operation) == "running"
    assert len(calls) == 3


def test_steps_that_come_fast_are_written_together_and_none_is_lost(
    database: sessionmaker[Session], lease: Lease, monkeypatch: pytest.MonkeyPatch
) -> None:
    record, sizes = leases.record, []

    def counting(session: Session, lease: Lease, steps: Any, progress: Any, lines: Any) -> Any:
        sizes.append(len(steps))
        return record(session, lease, steps, progress, lines)

    monkeypatch.setattr(leases, "record", counting)
    monkeypatch.setattr("workers.running.job_context._STEP_SECONDS", 1000.0)
    context = JobContext(lease, time.monotonic())
    for number in range(50):
        context.step({**STEP, "number": number}, {"epoch": number, "fraction": 0.5})
    context.succeed(lambda session: {"model": "m", "version": 1})
    with database() as session:
        assert [step.number for step in job_logs.steps(session, lease.job_id).steps] == list(range(50))
        progress = jobs.get(session, lease.job_id).progress
    assert progress is not None
    assert progress.epoch == 49
    assert sizes == [1, 49]


def _raises(call: Callable[[], object], error: type[Exception], but: type[Exception] | tuple[()] = ()) -> bool:
    """Whether a call raises an error, and not nothing or another one that it may raise."""
    try:
        call()
    except error:
        return True
    except but:
        return False
    return False


def test_a_training_that_compiles_says_so_until_its_next_step(database: sessionmaker[Session], lease: Lease) -> None:
    def phase() -> str:
        with database() as session:
            progress = jobs.get(session, lease.job_id).progress
            assert progress is not None
            return progress.phase

    with JobContext(lease, time.monotonic()) as context, compiling.noticed(context.compiling):
        context.phase("features")
        event.start_event("numba:compile")
        assert phase() == "features"
        context.phase("training", at_once=False)
        event.start_event("numba:compile")
        assert phase() == "compiling"
        event.end_event("numba:compile")
        context.step({**STEP, "number": 0}, {"epoch": 1})
        assert phase() == "training"
        other = threading.Thread(target=event.start_event, args=("numba:compile",))
        other.start()
        other.join()
        assert phase() == "training"
    event.start_event("numba:compile")
    assert phase() == "training"
