"""Pull a plug of a gang: the job ends the same, and nothing of the gang stays anywhere.

All tests share one service, as its workers take seconds to start: whoever is killed is replaced.
"""

import os
import shutil
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from app.config import settings
from app.schemas.jobs import Job, TrainRequest
from app.services import datasets, jobs, models, slots
from app.store import db, tables
from app.store.files import files
from solvers.model import load_model
from workers.tasks import run

SECONDS = 120.0
QUICK = {
    "lease_seconds": 2,
    "heartbeat_seconds": 0.3,
    "sweep_seconds": 0.3,
    "ring_again_seconds": 1,
    "checkpoint_seconds": 0.2,
}


class Service:
    """A general worker, two pools of shards, and what tests ask of them."""

    def __init__(self, redis: Any) -> None:
        self.redis = redis
        self._whole: Any = None

    @property
    def sessions(self) -> sessionmaker[Session]:
        return db.sessions()

    def submit(self, model: str, max_epochs: int = 60) -> str:
        """A job of some seconds, whose steps and model are always the same."""
        params = {"tol": 1e-12, "max_epochs": max_epochs, "C": 100.0}
        request = TrainRequest(dataset="noise", model=model, shards=2, params=params)
        with self.sessions() as session:
            return jobs.submit(session, request).id

    def until(self, id: str, condition: Callable[[Job], bool]) -> Job:
        deadline = time.monotonic() + SECONDS
        while True:
            with self.sessions() as session:
                job = jobs.get(session, id)
            if condition(job):
                return job
            assert time.monotonic() < deadline, f"{job.state} after {SECONDS} s, attempt {job.attempt}: {job.error}"
            time.sleep(0.05)

    def until_saved(self, id: str) -> Job:
        """Wait for a first checkpoint."""

        def saved(job: Job) -> bool:
            assert job.state in {"queued", "running"}, f"{job.state}: {job.error}"
            with self.sessions() as session:
                return job.state == "running" and session.get(tables.Checkpoint, id) is not None

        return self.until(id, saved)

    def shard(self, id: str, rank: int) -> int:
        """The process of a shard."""
        with self.sessions() as session:
            held = slots.held(session, id, jobs.get(session, id).attempt)
        return _pid(held[rank].worker)

    def outcome(self, model: str) -> Any:
        with self.sessions() as session:
            version = models.version(session, model)
            loaded, _ = load_model(models.artefact(session, version.id) / "model", verify=True)
            steps = jobs.steps(session, version.job, limit=10_000).steps
        return (
            {name: array.tobytes() for name, array in loaded.arrays().items()},
            (version.primal, version.dual, version.epochs, version.metrics),
            [(step.number, step.epoch, step.primal, step.dual) for step in steps],
        )

    def ends_the_same(self, id: str, model: str) -> Job:
        """The job succeeds as if nothing had happened, and leaves nothing behind."""
        job = self.until(id, lambda job: job.state in {"succeeded", "failed", "cancelled"})
        assert job.state == "succeeded", job.error
        assert self.outcome(model) == self.whole()
        self.is_clean()
        return job

    def whole(self) -> Any:
        if self._whole is None:
            self.until(self.submit("whole"), lambda job: job.state == "succeeded")
            self._whole = self.outcome("whole")
        return self._whole

    def is_clean(self) -> None:
        deadline = time.monotonic() + 10.0
        while True:
            with self.redis.client() as client:
                left = [key for key in client.scan_iter() if key.startswith(b"job:")]
            with self.sessions() as session:
                left += session.scalars(select(tables.Slot.job_id).where(tables.Slot.job_id.is_not(None))).all()
            left += [*files().path("jobs").glob("*"), *files().path("models").rglob("*.part")]
            if not left:
                return
            assert time.monotonic() < deadline, left
            time.sleep(0.05)


@pytest.fixture(scope="module")
def service(
    new_workers: Callable[[str], Any],
    new_redis: Callable[[], Any],
    sqlite_template: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Service]:
    home = tmp_path_factory.mktemp("gang")
    redis = new_redis()
    redis.start()
    with pytest.MonkeyPatch.context() as patch:
        for name in [name for name in os.environ if name.startswith("POLYMARGIN_")]:
            patch.delenv(name)
        for name, value in {**QUICK, "home": home, "redis_url": redis.url}.items():
            patch.setenv(f"POLYMARGIN_{name.upper()}", str(value))
        settings.cache_clear()
        shutil.copy(sqlite_template, home / "polymargin.db")
        workers = new_workers(str(home / "workers.log"))
        try:
            workers.start(concurrency=2)
            for queue in ("shard-0", "shard-1"):
                workers.start(queue=queue)
            _upload_noise()
            deadline = time.monotonic() + SECONDS
            while _n_pools() < 2:
                assert time.monotonic() < deadline, "the pools do not report"
                time.sleep(0.1)
            yield Service(redis)
        finally:
            workers.end()
            print(workers.log())
            redis.stop()
            db.dispose()
    settings.cache_clear()


@pytest.mark.parametrize("rank", [0, 1])
def test_a_job_that_loses_a_shard_goes_on_from_the_last_checkpoint(service: Service, rank: int) -> None:
    id = service.submit(f"lost{rank}")
    service.until_saved(id)
    os.kill(service.shard(id, rank), signal.SIGKILL)
    assert service.ends_the_same(id, f"lost{rank}").attempt == 2


def test_a_job_that_loses_its_coordinator_goes_on(service: Service) -> None:
    id = service.submit("uncoordinated")
    os.kill(_pid(service.until_saved(id).worker), signal.SIGKILL)
    assert service.ends_the_same(id, "uncoordinated").attempt == 2


@pytest.mark.parametrize("how", ["flushed", "restarted"])
def test_a_job_whose_redis_forgets_everything_goes_on(service: Service, how: str) -> None:
    id = service.submit(how)
    service.until_saved(id)
    if how == "flushed":
        with service.redis.client() as client:
            client.flushall()
    else:
        service.redis.stop()
        job = service.until(id, lambda job: job.state == "queued")
        assert job.attempt == 1
        service.redis.start()
    service.ends_the_same(id, how)
    with service.sessions() as session:
        row = session.get(tables.Job, id)
        assert row is not None
        assert row.losses == 0


def test_a_shard_that_slept_through_its_lease_changes_nothing(service: Service) -> None:
    id = service.submit("asleep")
    service.until_saved(id)
    sleeper = service.shard(id, 1)
    os.kill(sleeper, signal.SIGSTOP)
    try:
        service.until(id, lambda job: job.attempt == 2)
    finally:
        os.kill(sleeper, signal.SIGCONT)
    service.ends_the_same(id, "asleep")
    with service.sessions() as session:
        assert [version.version for version in models.versions(session, "asleep")] == [1]


def test_a_cancelled_gang_ends_and_two_jobs_share_the_pools(service: Service) -> None:
    endless = service.submit("endless", max_epochs=10**6)
    service.until_saved(endless)
    others = [service.submit(f"other{i}") for i in range(2)]
    with service.sessions() as session:
        jobs.cancel(session, endless)
    service.until(endless, lambda job: job.state == "cancelled")
    for i, id in enumerate(others):
        service.until(id, lambda job: job.state == "succeeded")
        assert service.outcome(f"other{i}") == service.whole()
    with service.sessions() as session:
        assert session.scalars(select(tables.Slot.job_id).where(tables.Slot.job_id.is_not(None))).all() == []


def _upload_noise() -> None:
    random = np.random.default_rng(0)
    values = random.normal(size=(400, 60)).round(3)
    rows = (
        " ".join([f"c{i % 20}", *(f"{j + 1}:{value}" for j, value in enumerate(row) if value)])
        for i, row in enumerate(values)
    )
    upload = files().upload()
    upload.write(("\n".join(rows) + "\n").encode())
    with db.sessions()() as session:
        shown = datasets.register(session, "noise", "svmlight", upload)
    assert shown.job is not None
    run(shown.job)


def _n_pools() -> int:
    with db.sessions()() as session:
        return len(slots.pools(session))


def _pid(worker: str | None) -> int:
    assert worker is not None
    return int(worker.rsplit(":", 1)[1])
