"""The order of the queue: by priority, in turn between workspaces and keys, then by age."""

import itertools
import random
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import insert, select, update
from sqlalchemy.orm import Session, sessionmaker

from app.errors import Conflict, InvalidInput
from app.jobs import leases, slots
from app.jobs import queue as queue_order
from app.jobs import service as jobs
from app.jobs import wakeups as job_queue
from app.jobs.schemas import JobPatch, TrainRequest
from app.schemas import MAX_JOB_TAGS, JobOptions, Priority
from app.store import db, tables
from app.store.db import db_now, writing
from app.store.queue import GENERAL
from app.store.scope import Scope, confine


@pytest.fixture
def queued(database: sessionmaker[Session], dataset: Callable[..., str]) -> Callable[..., str]:
    """``queued(workspace, owner, priority)`` queues a job and returns its id."""
    of = dataset()

    def make(workspace: str = "default", owner: str = "ann", priority: Priority = "normal") -> str:
        with database() as session, writing(confine(session, Scope(workspace, owner))):
            return job_queue.enqueue(session, "train", of, {"kind": "train"}, JobOptions(priority=priority)).id

    return make


def _order(session: Session) -> list[str]:
    return queue_order.in_order(session, GENERAL)


@pytest.fixture
def waiting(session: Session) -> Callable[..., None]:
    """``waiting(n, **columns)`` adds ``n`` jobs, which do nothing, to the general queue; a column may be a list."""

    def make(n: int, **columns: Any) -> None:
        fixed = {"kind": "train", "state": "queued", "queue": GENERAL, "request": {}, "attempt": 0, "losses": 0}
        rows = [
            {"id": db.new_id(), "priority": 0, "workspace": "default", "owner": "ann", "created_at": 1e9 + number}
            | fixed
            | {name: value[number] if isinstance(value, list) else value for name, value in columns.items()}
            for number in range(n)
        ]
        with writing(session):
            session.execute(insert(tables.Job), rows)

    return make


def _as_defined(rows: list[Any]) -> list[str]:
    """The order of the queue word by word: by priority, in turn between workspaces, between keys, then by age."""
    started = [row for row in rows if row.started_at is not None]

    def served(**of: Any) -> float:
        return max((row.started_at for row in started if all(getattr(row, k) == v for k, v in of.items())), default=0.0)

    running = Counter((row.workspace, row.owner) for row in rows if row.state == "running")
    order: list[str] = []
    for priority in (1, 0, -1):
        turns = Counter(running)
        places: Counter[str] = Counter()
        for (workspace, _), n in running.items():
            places[workspace] += n
        of_level = sorted((row for row in rows if row.state == "queued"), key=lambda row: (row.created_at, row.id))
        queued = []
        for row in (row for row in of_level if row.priority == priority):
            turns[row.workspace, row.owner] += 1
            last = served(workspace=row.workspace, owner=row.owner) if row.owner else 0.0
            queued.append((turns[row.workspace, row.owner], last, row.created_at, row.id, row.workspace))
        ranked = []
        for *within, workspace in sorted(queued):
            places[workspace] += 1
            ranked.append((places[workspace], served(workspace=workspace), *within))
        order += [id for *_, id in sorted(ranked)]
    return order


@pytest.mark.parametrize("seed", range(3))
def test_the_order_is_as_it_is_defined(session: Session, waiting: Callable[..., None], seed: int) -> None:
    chance, n = random.Random(seed), 300
    waiting(
        n,
        priority=[chance.choice((-1, 0, 0, 0, 1)) for _ in range(n)],
        workspace=[chance.choice("xyz") for _ in range(n)],
        owner=[chance.choice((None, "a", "a", "a", "b", "c")) for _ in range(n)],
        state=[chance.choice(("queued", "queued", "queued", "running", "succeeded")) for _ in range(n)],
        created_at=[float(chance.randrange(50)) for _ in range(n)],
        started_at=[chance.choice((None, float(chance.randrange(50)))) for _ in range(n)],
    )
    with db.reading(session):
        rows = list(session.execute(select(tables.Job.__table__)))
    assert _order(session) == _as_defined(rows)
    assert queue_order.in_order(session, "elsewhere") == []


def test_one_worker_serves_keys_and_workspaces_in_turn(session: Session, waiting: Callable[..., None]) -> None:
    waiting(4, owner="ann")
    waiting(2, owner="bob")
    waiting(2, owner="eve", workspace="other")
    foretold, taken = _order(session), []
    while order := _order(session):
        lease = leases.claim(session, order[0], "w")
        assert lease is not None
        taken.append(lease)
        with leases.fenced(session, lease):
            leases.end(session, lease, "succeeded")
    assert [lease.job_id for lease in taken] == foretold
    assert [lease.scope.owner for lease in taken] == ["ann", "eve", "bob", "eve", "ann", "bob", "ann", "ann"]


@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_the_next_job_costs_the_same_however_many_wait(session: Session, waiting: Callable[..., None]) -> None:
    spent = []
    for more in (100, 3000):
        waiting(more, owner=[f"key-{number % 7}" for number in range(more)])
        driver: Any = session.connection().connection.driver_connection
        counted = itertools.count()
        driver.set_progress_handler(lambda counted=counted: next(counted) * 0, 10)
        assert len(queue_order.in_order(session, GENERAL, 3)) == 3
        driver.set_progress_handler(None, 0)
        session.rollback()
        spent.append(next(counted))
    assert spent[1] <= 1.2 * spent[0], spent


def test_a_higher_priority_comes_first_whatever_its_age(session: Session, queued: Callable[..., str]) -> None:
    low, normal, high = queued(priority="low"), queued(), queued(priority="high")
    assert _order(session) == [high, normal, low]


def test_keys_take_turns_and_so_do_workspaces(session: Session, queued: Callable[..., str]) -> None:
    first, second, third = queued(), queued(), queued()
    of_bob, elsewhere = queued(owner="bob"), queued("other", "eve")
    # the default workspace was served before: with the import
    assert _order(session) == [elsewhere, first, of_bob, second, third]


def test_a_key_that_has_jobs_running_waits_for_others(session: Session, queued: Callable[..., str]) -> None:
    assert leases.claim(session, queued(), "w") is not None
    mine, of_bob = queued(), queued(owner="bob")
    assert _order(session) == [of_bob, mine]


def test_one_that_leaves_the_queue_is_in_no_order(session: Session, queued: Callable[..., str]) -> None:
    jobs.cancel(session, queued())
    assert _order(session) == []


def test_a_place_tells_who_is_before_it_in_all_workspaces(session: Session, queued: Callable[..., str]) -> None:
    before, last = queued("other", "eve", "high"), queued()
    place = jobs.get(confine(session, Scope("default", "ann")), last).queue
    assert place is not None
    assert (place.position, place.starts_in_seconds) == (2, None)
    assert [item.queue and item.queue.position for item in jobs.page(session).items if item.id != before][:1] == [2]


def test_when_a_job_starts_is_estimated_from_what_the_others_have_left(
    session: Session, queued: Callable[..., str]
) -> None:
    slots.report_worker(session, "w", GENERAL, 1)
    with writing(session):  # a training, as the one that has ended, took ten seconds
        session.execute(update(tables.Job).values(kind="train", started_at=db_now() - 10, finished_at=db_now()))
    running = queued()
    assert leases.claim(session, running, "w") is not None
    with writing(session):
        progress = {"epoch": 1, "fraction": 0.5, "eta_seconds": 30.0}
        session.execute(update(tables.Job).where(tables.Job.id == running).values(progress=progress))
    first, second = queued(), queued()
    starts = [jobs.get(session, id).queue for id in (first, second)]
    assert [round(place.starts_in_seconds or 0) for place in starts if place] == [30, 40]
    assert [place.running for place in starts if place] == [[jobs.get(session, running).kind]] * 2
    # an import has a process of its own
    upload = queued()
    with writing(session):
        session.execute(update(tables.Job).where(tables.Job.id == upload).values(kind="import"))
    place = jobs.get(session, upload).queue
    assert place is not None
    assert place.starts_in_seconds == 0
    # a job that reports nothing, and has run for longer than others, may end at any time or late
    with writing(session):
        values = {"progress": {"epoch": 1, "fraction": 0.5}, "started_at": db_now() - 100}
        session.execute(update(tables.Job).where(tables.Job.id == running).values(**values))
    place = jobs.get(session, first).queue
    assert place is not None
    assert place.starts_in_seconds is None


def test_a_queued_job_may_be_given_another_priority(session: Session, queued: Callable[..., str]) -> None:
    first, second = queued(), queued()
    assert jobs.change(session, second, JobPatch(priority="high")).priority == "high"
    assert _order(session) == [second, first]
    assert leases.claim(session, second, "w") is not None
    with pytest.raises(Conflict, match="running"):
        jobs.change(session, second, JobPatch(priority="low"))


def test_jobs_are_found_by_their_tags(session: Session, queued: Callable[..., str]) -> None:
    first, second = queued(), queued()
    jobs.change(session, first, JobPatch(tags={"team": "a.b", "night": ""}))
    jobs.change(session, second, JobPatch(tags={"team": "c"}))
    assert [job.id for job in jobs.page(session, tag="team").items] == [second, first]
    assert [job.id for job in jobs.page(session, tag="team=a.b").items] == [first]
    assert jobs.page(session, tag="tea").items == []
    assert jobs.change(session, first, JobPatch(tags={"night": None})).tags == {"team": "a.b"}
    with pytest.raises(InvalidInput, match="tags"):
        jobs.change(session, first, JobPatch(tags={f"t{number}": "" for number in range(MAX_JOB_TAGS)}))


def test_options_are_columns_and_no_part_of_what_the_job_does(session: Session, dataset: Callable[..., str]) -> None:
    dataset()
    request = TrainRequest(
        dataset="digits", model="m", solver="softmax", priority="low", tags={"a": "b"}, time_limit_seconds=5.0
    )
    job = jobs.submit(session, request)
    assert (job.priority, job.tags, job.time_limit_seconds) == ("low", {"a": "b"}, 5.0)
    assert not {"priority", "tags", "time_limit_seconds"} & job.request.keys()
    assert session.scalars(select(tables.Job.priority).where(tables.Job.id == job.id)).one() == -1
