"""Processes die before any request to object storage, and requests fail: work is taken up, and nothing is left."""

import itertools
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
from shared_fixtures import empty
from sqlalchemy import select, update
from sqlalchemy.orm import Session, sessionmaker

from app.config import settings
from app.datasets import service as datasets
from app.datasets.schemas import NewDataset
from app.jobs import service as jobs
from app.jobs.schemas import TrainRequest
from app.models import service as models
from app.operation import doctor
from app.operation import sweep as sweeping
from app.predictions.model_cache import load_version
from app.store import buckets, db, tables
from app.store.db import db_now
from app.store.files import files
from workers.running import job_context
from workers.tasks import run

pytestmark = pytest.mark.slow
ROWS = b"".join(b"%s %d:1 %d:0.5\n" % (b"abc"[i % 3 : i % 3 + 1], i % 3 + 1, i % 5 + 4) for i in range(30))
TRAIN = TrainRequest(
    dataset="d", model="m", solver="weston_watkins", params={"max_epochs": 3, "tol": 1e-12}, test_fraction=0.2
)
# every second request, from the first one on with one database, and from the second one on with the other
EVERY = 2
each_database = pytest.mark.parametrize(
    ("database", "first"),
    [("sqlite", 0), ("postgresql", 1)],
    indirect=["database"],
    ids=["sqlite-even", "postgresql-odd"],
)
FAULTS = ("busy", "truncated", "expired", "slow")


class Death(BaseException):
    """The process is gone: nothing that would tidy up reaches the storage any more."""


def _upload_and_train() -> None:
    with db.sessions()() as session:
        if not datasets.page(session, 10).items:
            upload = files().upload()
            upload.write(ROWS)
            datasets.register(session, NewDataset(name="d", format="svmlight"), upload)
        _run_all(session)
        if not [job for job in jobs.page(session, 100).items if job.kind == "train"]:
            jobs.submit(session, TRAIN)
        _run_all(session)


def _run_all(session: Session) -> None:
    # a job that has waited for the storage is queued again
    while id := session.scalar(select(tables.Job.id).where(tables.Job.state == "queued").limit(1)):
        session.rollback()
        run(id)
        session.rollback()


def _dies(number: int) -> bool:
    """Work until the request of that number; whether there were as many."""
    n = itertools.count()
    dead, before = threading.Event(), buckets._answering

    @contextmanager
    def answering(path: str = "") -> Iterator[None]:
        if next(n) == number:
            dead.set()
        if dead.is_set():
            raise Death
        with before(path):
            yield

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(buckets, "_answering", answering)
        with suppress(Death):
            _upload_and_train()
    return dead.is_set()


def _take_up() -> None:
    """What workers and users do on another machine, and the sweep of a later hour."""
    with db.sessions()() as session:
        session.execute(update(tables.Job).where(tables.Job.lease_until.is_not(None)).values(lease_until=db_now() - 1))
        session.commit()
        sweeping.sweep(session)
    _upload_and_train()
    with db.sessions()() as session, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sweeping, "_ORPHAN_SECONDS", -60.0)
        sweeping.tidy(session, files())


@pytest.fixture
def rounds(
    database: sessionmaker[Session],
    bucket: Any,
    configure: Callable[..., None],
    sqlite_template: Path,
    tmp_path: Path,
) -> Callable[[int], Iterator[int]]:
    """Numbers from one on, each with an empty database and an empty bucket."""
    address, on_postgresql = settings().files, settings().database_url

    def begin(first: int) -> Iterator[int]:
        for number in itertools.count(first, EVERY):
            home = tmp_path / f"{number}"
            home.mkdir()
            db.dispose()
            configure(home=home, files=f"{address}/{number}", cache=home / "one")
            if on_postgresql:
                with db.sessions()() as session:
                    empty(session)
            else:
                shutil.copy(sqlite_template, home / "polymargin.db")
            yield number

    configure(checkpoint_seconds=0, lease_seconds=3600, heartbeat_seconds=1000)
    return begin


def _trained() -> bytes:
    """The arrays of the model, after a look at whether rows and objects agree and nothing else is left."""
    with db.sessions()() as session:
        version = models.version(session, "m")
        arrays = load_version(session, version).model.arrays()
        looks = [each for each in doctor.examine(hashes=True) if each.part in ("files", "object storage")]
        assert {each.state for each in looks} == {"ok"}, looks
        (row,) = session.scalars(select(tables.Dataset))
        assert files().names("datasets") == [row.id]
        assert files().names(f"datasets/{row.id}") == [str(row.path).rpartition("/")[2], "source"]
        assert files().names("models") == [models.folder(session, version.id).removeprefix("models/")]
        assert (files().names("jobs"), files().names("incoming")) == ([], [])
    return b"".join(array.tobytes() for _, array in sorted(arrays.items()))


@each_database
def test_work_that_ends_before_a_request_is_taken_up_elsewhere(
    first: int, rounds: Callable[[int], Iterator[int]], bucket: Any, configure: Callable[..., None]
) -> None:
    found: set[bytes] = set()
    for number in rounds(first):
        died = _dies(number)
        db.dispose()
        configure(cache=settings().home / "other")
        _take_up()
        found.add(_trained())
        if not died:
            break
    assert number > 20
    assert len(found) == 1


@each_database
def test_a_request_that_fails_once_changes_nothing(
    first: int,
    rounds: Callable[[int], Iterator[int]],
    bucket: Any,
    configure: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    connect_seconds, _, tries = buckets._limits["reads"]
    monkeypatch.setattr(buckets, "_limits", dict.fromkeys(("reads", "writes"), (connect_seconds, 0.5, tries)))
    monkeypatch.setattr(job_context, "_PAUSE_SECONDS", 0.01)
    found: set[bytes] = set()
    for number in rounds(first):
        n = itertools.count()
        spoilt: list[str] = []

        def spoil(
            method: str, path: str, n: Iterator[int] = n, spoilt: list[str] = spoilt, at: int = number
        ) -> str | None:
            if next(n) != at:
                return None
            spoilt.append(FAULTS[at // EVERY % len(FAULTS)])
            return spoilt[0]

        bucket.spoil = spoil
        with suppress(buckets.StorageAway):
            _upload_and_train()
        # the service has said to try again
        _upload_and_train()
        bucket.spoil = lambda _method, _path: None
        db.dispose()
        configure(cache=settings().home / "other")
        _take_up()
        found.add(_trained())
        if not spoilt:
            break
    assert number > 20
    assert len(found) == 1
