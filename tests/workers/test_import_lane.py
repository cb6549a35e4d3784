"""Imports have a process of their own: a worker whose slots are taken takes nothing else."""

from collections.abc import Callable, Iterator

import pytest
from sqlalchemy import update
from sqlalchemy.orm import Session, sessionmaker

from app.jobs import service as jobs
from app.jobs.schemas import TrainRequest
from app.store import tables
from app.store.db import writing
from workers.running import lanes
from workers.tasks import run


@pytest.fixture
def one_slot() -> Iterator[None]:
    lanes.divide(1)
    yield
    lanes.clear()


def test_a_slot_is_free_again_once_its_job_has_ended(one_slot: None) -> None:
    with lanes.slot() as first:
        assert first.is_free
        with lanes.slot() as second:
            assert not second.is_free
        first.release()
        with lanes.slot() as third:
            assert third.is_free


def test_beside_a_training_an_import_is_taken_and_no_other_training(
    database: sessionmaker[Session], dataset: Callable[..., str], one_slot: None
) -> None:
    dataset()
    request = TrainRequest(dataset="digits", model="m", solver="weston_watkins")
    with database() as session:
        training = jobs.submit(session, request).id
        upload = jobs.submit(session, request).id
        with writing(session):
            session.execute(update(tables.Job).where(tables.Job.id == upload).values(kind="import"))
        with lanes.slot() as taken:
            assert taken.is_free
            run(training)
            assert jobs.get(session, upload).state != "queued"
            assert jobs.get(session, training).state == "queued"
            run(training)
            assert jobs.get(session, training).state == "queued"
        run(training)
        assert jobs.get(session, training).state == "succeeded"
