"""Quotas: no two requests at once take the last place of a workspace, and others have their own."""

import re
import threading
from collections.abc import Callable

import pytest
from sqlalchemy import func, select, update
from sqlalchemy.orm import Session, sessionmaker

from app.access import quotas
from app.datasets import service as datasets
from app.datasets.schemas import NewDataset
from app.errors import StorageFull, TooMany
from app.jobs import service as jobs
from app.jobs.schemas import TrainRequest
from app.store import tables
from app.store.files import files
from app.store.scope import Scope, confine
from workers.tasks import run

TRAIN = TrainRequest(dataset="digits", model="m", solver="weston_watkins")


def _upload(session: Session, name: str, content: bytes) -> str:
    upload = files().upload()
    upload.write(content)
    upload.finish()
    return datasets.register(session, NewDataset(name=name, format="svmlight"), upload).id


def _at_once(database: sessionmaker[Session], n: int, ask: Callable[[Session, int], object]) -> list[type | None]:
    """What each of ``n`` threads was refused with."""
    barrier, ends = threading.Barrier(n), [None] * n

    def work(number: int) -> None:
        with confine(database(), Scope("default", "key")) as session:
            barrier.wait()
            try:
                ask(session, number)
            except (TooMany, StorageFull) as error:
                ends[number] = type(error)  # type: ignore[call-overload]

    threads = [threading.Thread(target=work, args=(number,)) for number in range(n)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return ends


def test_of_requests_at_once_as_many_get_jobs_as_there_is_room_for(
    database: sessionmaker[Session], dataset: Callable[..., str], configure: Callable[..., None]
) -> None:
    dataset()
    configure(max_jobs=3)
    ends = _at_once(database, 8, lambda session, _: jobs.submit(session, TRAIN))
    assert ends.count(None) == 3
    assert ends.count(TooMany) == 5
    with database() as session:
        assert session.scalars(select(func.count()).where(tables.Job.state == "queued")).one() == 3


def test_of_uploads_at_once_as_many_are_kept_as_there_is_room_for(
    database: sessionmaker[Session], configure: Callable[..., None]
) -> None:
    configure(max_stored_bytes=100)
    ends = _at_once(database, 6, lambda session, number: _upload(session, f"d{number}", b"a 1:1\n" * 5))
    assert ends.count(None) == 3
    assert ends.count(StorageFull) == 3
    with database() as session:
        assert session.scalars(select(func.sum(tables.Dataset.size_bytes))).one() == 90
    kept = {path.name for path in files().path("datasets").glob("*")}
    with database() as session:
        assert kept == set(session.scalars(select(tables.Dataset.id)))


def test_jobs_that_are_over_make_room_and_retries_take_it(
    database: sessionmaker[Session], dataset: Callable[..., str], configure: Callable[..., None]
) -> None:
    dataset()
    configure(max_jobs=1)
    with confine(database(), Scope("default")) as session:
        first = jobs.submit(session, TRAIN)
        with pytest.raises(TooMany, match="The queue is full: the workspace has 1 unfinished job, and its limit is 1"):
            jobs.submit(session, TRAIN)
        jobs.cancel(session, first.id)
        second = jobs.submit(session, TRAIN)
        with pytest.raises(TooMany):
            jobs.retry(session, first.id)
        jobs.cancel(session, second.id)
        assert jobs.retry(session, first.id).state == "queued"


def test_a_workspace_that_is_full_leaves_others_alone_and_trains_no_more(
    database: sessionmaker[Session], dataset: Callable[..., str], configure: Callable[..., None]
) -> None:
    dataset()
    configure(max_stored_bytes=1000, max_jobs=1)
    with database() as session:
        session.execute(update(tables.Dataset).values(size_bytes=1000))
        session.commit()
    with confine(database(), Scope("default")) as session:
        with pytest.raises(
            StorageFull, match=r"1,000 bytes of at most 1,000, and it is full\. Delete .* deleted version counts"
        ):
            jobs.submit(session, TRAIN)
        found = quotas.usage(session, 0.0)
        assert (found.jobs, found.stored_bytes, found.requests_per_second) == (0, 1000, None)
    with confine(database(), Scope("other")) as session:
        assert _upload(session, "digits", b"a 1:1\n" * 100)
        assert quotas.usage(session, 5.0).jobs == 1


def test_what_is_being_received_counts_and_only_for_its_workspace(
    session: Session, configure: Callable[..., None]
) -> None:
    configure(max_stored_bytes=100)
    sizes = [("default", 40), ("default", 50), ("defaul", 60), ("other", 1000)]
    uploads = [(files().upload(workspace), size) for workspace, size in sizes]
    for upload, size in uploads:
        upload.write(b"x" * size)
        upload.finish()
    assert files().incoming_bytes("default") == 90
    confine(session, Scope("default"))
    assert quotas.free_bytes(session) == 100
    quotas.require_room_for_incoming("default", 100)
    assert _upload(session, "d", b"a 1:1\n" * 2)
    left = quotas.free_bytes(session)
    assert left == 88
    with pytest.raises(StorageFull, match="90 are being uploaded"):
        quotas.require_room_for_incoming("default", left)
    for upload, _ in uploads:
        upload.abort()


def test_a_job_keeps_its_version_only_if_there_is_room_when_it_ends(
    database: sessionmaker[Session], dataset: Callable[..., str], configure: Callable[..., None]
) -> None:
    dataset()
    most = 20_000
    configure(max_stored_bytes=most)
    with confine(database(), Scope("default")) as session:
        submitted = [jobs.submit(session, TRAIN).id for _ in range(4)]
        for id in submitted:
            run(id)
        ended = [jobs.get(session, id) for id in submitted]
        found = quotas.usage(session, 0.0).stored_bytes
    states = [job.state for job in ended]
    assert states == sorted(states, reverse=True), "the first jobs find room"
    assert {"succeeded", "failed"} == set(states)
    assert found <= most
    error = ended[-1].error
    assert error is not None
    assert error.code == "storage_full"
    assert re.search(r"stores [\d,]+ bytes of at most 20,000, and this needs [\d,]+ more\. Delete", error.detail)
