"""What many ask for at once, and clocks that differ: whatever comes first, the same things hold."""

import threading
import time
from collections import Counter
from collections.abc import Callable

import pytest
from invariants import broken
from sqlalchemy import insert
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session, sessionmaker

from app.access import keys
from app.datasets import service as datasets
from app.datasets.schemas import NewDataset
from app.errors import Conflict, PolymarginError, PreconditionFailed
from app.jobs import service as jobs
from app.jobs.schemas import TrainRequest
from app.models import aliases
from app.models import service as models
from app.operation import sweep as sweeping
from app.rules import service as rules
from app.rules.schemas import RuleRequest
from app.store import tables
from app.store.db import writing
from app.store.failures import explained, is_passing
from app.store.files import files
from workers.tasks import run

HOUR = 3600.0


def _at_once(n: int, do: Callable[[int], object]) -> Counter[type | None]:
    """How many of ``n`` threads were refused with what."""
    barrier, ends = threading.Barrier(n), Counter[type | None]()

    def work(number: int) -> None:
        barrier.wait()
        try:
            do(number)
            ends[None] += 1
        except PolymarginError as error:
            ends[type(error)] += 1

    threads = [threading.Thread(target=work, args=(number,)) for number in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ends


def _train(database: sessionmaker[Session]) -> str:
    with database() as session:
        return jobs.submit(session, TrainRequest(solver="weston_watkins", dataset="digits", model="m")).id


def test_of_many_who_ask_for_a_name_at_once_one_gets_it(database: sessionmaker[Session]) -> None:
    made: list[str] = []

    def register(number: int) -> None:
        upload = files().upload()
        upload.write(b"a 1:%d\nb 2:1\n" % (number + 1))
        try:
            with database() as session:
                made.append(datasets.register(session, NewDataset(name="d", format="svmlight"), upload).job or "")
        finally:
            upload.abort()

    assert _at_once(6, register) == {None: 1, Conflict: 5}
    run(made[0])
    assert broken(database, made) == []


def test_of_many_who_make_a_rule_or_a_key_of_one_name_one_does(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    run(_train(database))

    def make_rule(_: int) -> None:
        with database() as session:
            rules.create(session, RuleRequest(name="nightly", model="m", cron="0 2 * * *"))

    def make_key(_: int) -> None:
        with database() as session:
            keys.create(session, "k", "viewer")

    for make in (make_rule, make_key):
        assert _at_once(6, make) == {None: 1, Conflict: 5}


def test_what_another_request_made_or_deleted_meanwhile_is_a_conflict(database: sessionmaker[Session]) -> None:
    model = {"name": "m", "created_at": 0.0, "workspace": "default", "last_number": 0}
    with database() as session, writing(session):
        session.execute(insert(tables.Model).values(id="m", **model))
    doubles = insert(tables.Model).values(id="n", **model)
    gone = insert(tables.Alias).values(model_id="gone", name="a", version_id="gone", revision=1)
    incomplete = insert(tables.Model).values(id="o")
    for statement, expected in ((doubles, Conflict), (gone, Conflict), (incomplete, type(None))):
        with database() as session:
            with pytest.raises(IntegrityError) as caught, writing(session):
                session.execute(statement)
            assert type(explained(caught.value)) is expected
            assert not is_passing(caught.value)


def test_of_many_who_move_an_alias_as_they_saw_it_one_does(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    acknowledged = [_train(database), _train(database)]
    for job in acknowledged:
        run(job)

    def move(number: int, if_match: int | None) -> None:
        with database() as session:
            aliases.set_alias(session, "m", "live", 1 + number % 2, if_match)

    for seen in (0, 1):
        assert _at_once(6, lambda number, seen=seen: move(number, seen)) == {None: 1, PreconditionFailed: 5}  # type: ignore[misc]
    assert _at_once(6, lambda number: move(number, None)) == {None: 6}
    with database() as session:
        (alias,) = models.get(session, "m").aliases
    assert alias.revision == 8
    assert broken(database, acknowledged) == []


def test_a_message_that_comes_ten_times_at_once_is_one_piece_of_work(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    job = _train(database)
    assert _at_once(10, lambda _: run(job)) == {None: 10}
    with database() as session:
        assert (jobs.get(session, job).state, jobs.get(session, job).attempt) == ("succeeded", 1)
        assert [version.version for version in models.versions(session, "m")] == [1]
    assert broken(database, [job]) == []


@pytest.mark.parametrize("off", [2 * HOUR, pytest.param(-HOUR, marks=pytest.mark.slow)])
def test_a_worker_whose_clock_is_wrong_by_an_hour_works_and_takes_nothing_from_others(
    database: sessionmaker[Session], dataset: Callable[..., str], monkeypatch: pytest.MonkeyPatch, off: float
) -> None:
    dataset()
    job = _train(database)
    upload = files().upload()
    upload.write(b"a 1:1\n")
    right, right_ns = time.time, time.time_ns
    monkeypatch.setattr(time, "time", lambda: right() + off)
    monkeypatch.setattr(time, "time_ns", lambda: right_ns() + int(off * 1e9))
    with database() as session:
        assert sweeping.tidy(session, files()) == []
    run(job)
    later = _train(database)
    with database() as session:
        assert sweeping.sweep(session) == sweeping.Swept()
        assert sweeping.tidy(session, files()) == []
        assert jobs.get(session, job).attempt == 1
    assert upload.path.exists()
    upload.abort()
    monkeypatch.undo()
    run(later)
    assert broken(database, [job, later]) == []
