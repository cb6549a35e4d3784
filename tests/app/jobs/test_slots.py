"""Slots of pools: all that a gang needs or none, never two holders, and free again when their holders fall silent."""

import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event, func, insert, select, update
from sqlalchemy.orm import Session, sessionmaker

from app.jobs import leases, slots
from app.jobs import queue as queue_order
from app.jobs import service as jobs
from app.jobs.schemas import TrainRequest
from app.jobs.slots import Fenced
from app.operation.sweep import sweep
from app.store import tables
from app.store.db import db_now, new_id, reading, writing
from app.store.queue import GENERAL, n_waiting, notify_worker


@pytest.fixture
def pools(session: Session, configure: Callable[..., None]) -> list[str]:
    """Three pools, of one, two and one processes, which do not go silent on a slow machine."""
    configure(lease_seconds=600, sweep_seconds=600)
    for queue, processes in (("shard-10", 1), ("shard-0", 1), ("shard-2", 2), ("general", 4)):
        slots.report_worker(session, f"host:{queue}", queue, processes)
    return ["shard-0", "shard-2", "shard-10"]


@pytest.fixture
def submit(session: Session, dataset: Callable[..., str], pools: list[str]) -> Callable[..., str]:
    """``submit(2)`` queues a job in so many shards."""
    dataset()

    def one(shards: int = 2) -> str:
        request = TrainRequest(solver="weston_watkins", dataset="digits", model="m", shards=shards)
        return jobs.submit(session, request).id

    return one


def taken(session: Session, id: str) -> list[tuple[int, str]]:
    return [(slot.rank, slot.queue) for slot in slots.held_slots(session, id, 1)]


def test_pools_are_the_queues_of_shards_in_the_order_of_their_numbers(session: Session, pools: list[str]) -> None:
    assert slots.pools(session) == {"shard-0": 1, "shard-2": 2, "shard-10": 1}
    assert list(slots.pools(session)) == pools


def test_a_job_takes_one_slot_in_each_pool_or_none(session: Session, submit: Callable[..., str]) -> None:
    first, second, third = submit(2), submit(3), submit(1)
    lease = leases.claim(session, first, "w")
    assert lease is not None
    assert lease.shards == 2
    # the pool with most free slots comes first, of equal ones the lowest
    assert taken(session, first) == [(0, "shard-0"), (1, "shard-2")]
    assert leases.claim(session, second, "w") is None
    assert taken(session, second) == []
    shown = jobs.get(session, second)
    assert (shown.state, shown.attempt) == ("queued", 0)
    assert shown.progress is not None
    assert shown.progress.phase == "waiting"
    assert leases.claim(session, third, "w") is not None
    assert taken(session, third) == [(0, "shard-2")]


@pytest.fixture
def gangs(session: Session, submit: Callable[..., str]) -> Callable[..., list[str]]:
    """``gangs(n, shards)`` queues ``n`` jobs in so many shards, which do nothing, after all that are there."""

    def queue(n: int, shards: int) -> list[str]:
        fixed = {"kind": "train", "state": "queued", "queue": GENERAL, "attempt": 0, "losses": 0}
        fixed |= {"priority": 0, "workspace": "default"}
        ids = [new_id() for _ in range(n)]
        with writing(session):
            later = 1.0 + (session.scalar(select(func.max(tables.Job.created_at))) or 0.0)
            rows = [
                {"id": id, "request": {"shards": shards}, "created_at": later + at, "notified_at": 1.0, **fixed}
                for at, id in enumerate(ids)
            ]
            session.execute(insert(tables.Job), rows)
        return ids

    return queue


def _statements(session: Session, do: Callable[[], object]) -> int:
    counted: list[str] = []

    def count(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
        counted.append(statement)

    engine = session.get_bind()
    event.listen(engine, "before_cursor_execute", count)
    try:
        do()
    finally:
        event.remove(engine, "before_cursor_execute", count)
    return len(counted)


def test_a_queue_full_of_jobs_that_lack_slots_costs_few_statements_and_hides_no_other(
    session: Session, submit: Callable[..., str], gangs: Callable[..., list[str]]
) -> None:
    assert leases.claim(session, submit(3), "w") is not None
    first, *_ = gangs(1500, 3)
    (last,) = gangs(1, 1)
    claimed: list[Any] = []
    order = queue_order.upcoming(session, GENERAL)
    assert _statements(session, lambda: claimed.append(leases.claim_first(session, order, "w"))) < 60
    assert [lease and lease.job_id for lease in claimed] == [last]
    shown = jobs.get(session, first).progress
    assert shown is not None
    assert shown.phase == "waiting"


def test_a_job_that_makes_do_with_fewer_pools_is_not_passed_over(
    session: Session, submit: Callable[..., str], gangs: Callable[..., list[str]]
) -> None:
    (wide,) = gangs(1, 4)
    (again,) = gangs(1, 4)
    with writing(session):
        session.execute(update(tables.Job).where(tables.Job.id == again).values(attempt=1))
    lease = leases.claim_first(session, iter([wide, again]), "w")
    assert lease is not None
    assert (lease.job_id, lease.shards) == (again, 3)


def test_slots_that_are_given_back_notify_of_as_many_jobs_as_can_begin(
    session: Session, submit: Callable[..., str], gangs: Callable[..., list[str]]
) -> None:
    lease = leases.claim(session, submit(3), "w")
    assert lease is not None
    gangs(1500, 3)
    with leases.fenced(session, lease):
        leases.end(session, lease, "failed", error={"detail": ""})
    unheard = select(func.count()).where(tables.Job.state == "queued", tables.Job.notified_at.is_(None))
    with reading(session):
        # one for each of the four slots
        assert session.scalar(unheard) == 4


@pytest.mark.parametrize("how", ["end", "give back", "lose", "sweep"])
def test_whoever_waits_for_slots_gets_them_once_they_are_given_back(
    session: Session, submit: Callable[..., str], how: str
) -> None:
    first, second = submit(3), submit(3)
    lease = leases.claim(session, first, "w")
    assert lease is not None
    assert leases.claim(session, second, "w") is None
    if how == "end":
        with leases.fenced(session, lease):
            leases.end(session, lease, "failed", error={"detail": ""})
    elif how == "give back":
        leases.give_back(session, lease)
    elif how == "lose":
        leases.lose(session, lease)
    else:
        with writing(session):
            session.execute(update(tables.Job).where(tables.Job.id == first).values(lease_until=db_now() - 1))
        sweep(session)
    waiting = session.get(tables.Job, second, populate_existing=True)
    assert waiting is not None
    assert waiting.notified_at is None
    assert taken(session, first) == []
    assert leases.claim(session, second, "w") is not None


def test_a_slot_is_taken_once_and_lost_when_the_job_ends(session: Session, submit: Callable[..., str]) -> None:
    id = submit(2)
    lease = leases.claim(session, id, "w")
    assert lease is not None
    lease = slots.claim(session, id, 1, "host:1")
    assert lease is not None
    assert (lease.attempt, lease.rank, lease.size) == (1, 1, 2)
    assert slots.claim(session, id, 1, "host:2") is None
    assert slots.claim(session, id, 2, "host:2") is None
    slots.renew(session, lease)
    assert [(slot.worker, slot.lost) for slot in slots.held_slots(session, id, 1)] == [(None, False), ("host:1", False)]
    leases.give_back(session, lease)
    with pytest.raises(Fenced):
        slots.renew(session, lease)
    slots.leave(session, lease)


def test_a_silent_shard_shows_as_lost_and_its_slot_can_be_taken(session: Session, submit: Callable[..., str]) -> None:
    first, second = submit(3), submit(3)
    assert leases.claim(session, first, "w") is not None
    lease = slots.claim(session, first, 0, "host:1")
    assert lease is not None
    with writing(session):
        session.execute(update(tables.Slot).values(lease_until=db_now() - 1))
    assert [slot.lost for slot in slots.held_slots(session, first, 1)] == [True] * 3
    assert leases.claim(session, second, "w") is not None
    assert taken(session, first) == []
    with pytest.raises(Fenced):
        slots.renew(session, lease)


def test_a_second_attempt_makes_do_with_the_pools_that_are_left(session: Session, submit: Callable[..., str]) -> None:
    id = submit(3)
    lease = leases.claim(session, id, "w")
    assert lease is not None
    slots.worker_ends(session, "host:shard-0")
    leases.give_back(session, lease)
    again = leases.claim(session, id, "w")
    assert again is not None
    assert again.shards == 2
    assert [slot.queue for slot in slots.held_slots(session, id, 2)] == ["shard-2", "shard-10"]


def test_pools_that_shrink_lose_their_free_slots(session: Session, pools: list[str]) -> None:
    slots.report_worker(session, "host:shard-2", "shard-2", 1)
    assert sorted(session.scalars(select(tables.Slot.queue))) == ["shard-0", "shard-10", "shard-2"]


def test_a_pool_that_is_gone_leaves_neither_slots_nor_messages_once_its_slot_is_given_back(
    session: Session, submit: Callable[..., str], redis_server: Any
) -> None:
    id = submit(3)
    lease = leases.claim(session, id, "w")
    assert lease is not None
    for queue in ("shard-0", "shard-10"):
        assert notify_worker(id, queue, 0)
    slots.worker_ends(session, "host:shard-10")
    sweep(session)
    assert (n_waiting("shard-0"), n_waiting("shard-10")) == (1, 1), "its slot is held"
    leases.give_back(session, lease)
    redis_server.stop()
    sweep(session)
    assert "shard-10" in session.scalars(select(tables.Slot.queue)).all(), "Redis is away"
    redis_server.start()
    for queue in ("shard-0", "shard-10"):
        assert notify_worker(id, queue, 0)
    sweep(session)
    assert (n_waiting("shard-0"), n_waiting("shard-10")) == (1, 0)
    assert set(session.scalars(select(tables.Slot.queue))) == {"shard-0", "shard-2"}
    slots.report_worker(session, "host:shard-10", "shard-10", 1)
    assert "shard-10" in session.scalars(select(tables.Slot.queue)).all()


def test_jobs_that_are_claimed_at_once_never_share_a_slot_and_never_deadlock(
    database: sessionmaker[Session], session: Session, submit: Callable[..., str]
) -> None:
    ids = [submit(3) for _ in range(6)]
    order: list[str] = []

    def work(id: str) -> None:
        while True:
            with database() as session:
                lease = leases.claim(session, id, "w")
                if lease is None:
                    time.sleep(0.01)
                    continue
                order.append(id)
                held = slots.held_slots(session, id, 1)
                assert [slot.rank for slot in held] == [0, 1, 2]
                order.append(id)
                with leases.fenced(session, lease):
                    leases.end(session, lease, "cancelled")
                return

    threads = [threading.Thread(target=work, args=(id,)) for id in ids]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(600)
    assert not any(thread.is_alive() for thread in threads)
    pairs: list[Any] = list(zip(order[::2], order[1::2], strict=True))
    assert all(a == b for a, b in pairs)
    assert sorted(order) == sorted([*ids, *ids])
