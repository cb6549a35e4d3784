"""A process that dies before any request to object storage: another machine takes the work up, and nothing is left."""

import itertools
import shutil
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
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
from workers.tasks import run

pytestmark = pytest.mark.slow
ROWS = b"".join(b"%s %d:1 %d:0.5\n" % (b"abc"[i % 3 : i % 3 + 1], i % 3 + 1, i % 5 + 4) for i in range(30))
TRAIN = TrainRequest(
    dataset="d", model="m", solver="weston_watkins", params={"max_epochs": 3, "tol": 1e-12}, test_fraction=0.2
)
# every third request, from the first, the second or the third one on
EVERY = 3


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
    for id in session.scalars(select(tables.Job.id).where(tables.Job.state == "queued")).all():
        session.rollback()
        run(id)


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


@pytest.mark.parametrize("first", range(EVERY))
@pytest.mark.parametrize("database", ["sqlite"], indirect=True)
def test_work_that_ends_before_a_request_is_taken_up_elsewhere(
    first: int,
    database: sessionmaker[Session],
    configure: Callable[..., None],
    bucket: Any,
    sqlite_template: Path,
    tmp_path: Path,
) -> None:
    found: set[bytes] = set()
    address = settings().files
    configure(checkpoint_seconds=0, lease_seconds=3600, heartbeat_seconds=1000)
    for number in itertools.count(first, EVERY):
        home = tmp_path / f"{number}"
        home.mkdir()
        shutil.copy(sqlite_template, home / "polymargin.db")
        db.dispose()
        configure(home=home, files=f"{address}/{number}", cache=home / "one")
        died = _dies(number)
        db.dispose()
        configure(cache=home / "other")
        _take_up()
        with db.sessions()() as session:
            version = models.version(session, "m")
            arrays = load_version(session, version).model.arrays()
            found.add(b"".join(array.tobytes() for _, array in sorted(arrays.items())))
            looks = [each for each in doctor.examine(hashes=True) if each.part in ("files", "object storage")]
            assert {each.state for each in looks} == {"ok"}, looks
            (row,) = session.scalars(select(tables.Dataset))
            assert files().names("datasets") == [row.id]
            assert files().names(f"datasets/{row.id}") == [str(row.path).rpartition("/")[2], "source"]
            assert files().names("models") == [models.folder(session, version.id).removeprefix("models/")]
            assert (files().names("jobs"), files().names("incoming")) == ([], [])
        if not died:
            break
    assert number > 20
    assert len(found) == 1
