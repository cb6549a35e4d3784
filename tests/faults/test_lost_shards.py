"""Pull a plug of a gang: the job ends the same, and nothing of the gang stays anywhere.

All tests share one service, as its workers take seconds to start: killed ones are replaced.
"""

import os
import shutil
import signal
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from noise import noise
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker
from stopping import stop_between_transactions

from app.config import settings
from app.datasets import service as datasets
from app.datasets.schemas import NewDataset
from app.jobs import logs as job_logs
from app.jobs import service as jobs
from app.jobs import slots
from app.jobs.schemas import Job, TrainRequest
from app.models import service as models
from app.operation.sweep import tidy
from app.store import db, tables
from app.store.files import files
from solvers.core.sharded_linear_model import block_name
from solvers.core.stored_models import load_model
from workers.sharding.shard import model_part
from workers.tasks import run

SECONDS = 600.0
# longer than a lease, than the coordinator waits for a shard, and than a queued job waits for another notification
AWAY_SECONDS = 5.0
TOL = 3e-3
POOLS = ("shard-0", "shard-1", "shard-2")
QUICK = {
    "lease_seconds": 2,
    "heartbeat_seconds": 0.3,
    "sweep_seconds": 0.3,
    "notify_again_seconds": 1,
    "checkpoint_seconds": 0.2,
}
HOUR = 3600.0
# Python that puts a worker's clock forward
CLOCK = """
import time
right, right_ns = time.time, time.time_ns
time.time = lambda: right() + {0}
time.time_ns = lambda: right_ns() + int({0} * 1e9)
"""


class Service:
    """A general worker, pools of shards, and what tests ask of them."""

    def __init__(self, redis: Any, workers: Any) -> None:
        self.redis, self.workers = redis, workers
        self._whole: Any = None
        self._saved: dict[str, list[int]] = {}

    @property
    def sessions(self) -> sessionmaker[Session]:
        return db.sessions()

    def submit(self, model: str, shards: int | None = 2, **params: Any) -> str:
        """A job of some seconds, whose steps and model are always the same."""
        params = {"tol": 1e-12, "max_epochs": 60, "C": 100.0} | params
        request = TrainRequest(
            solver="weston_watkins", dataset="noise", model=model, shards=shards, refit=False, params=params
        )
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
                checkpoint = session.get(tables.Checkpoint, id)
            if job.state != "running" or checkpoint is None:
                return False
            # on a busy machine attempts may be lost before the first that saves anything
            self._saved[id] = self._attempts(id)[: checkpoint.step + 1]
            return True

        return self.until(id, saved)

    def shard(self, id: str, rank: int) -> int:
        """The process of a shard."""
        with self.sessions() as session:
            held = slots.held_slots(session, id, jobs.get(session, id).attempt)
        return _pid(held[rank].worker)

    def losses(self, id: str) -> int:
        """How many workers the job has lost."""
        with self.sessions() as session:
            return session.scalars(select(tables.Job.losses).where(tables.Job.id == id)).one()

    def end_pool(self, queue: str) -> None:
        """Kill all processes of a pool at once; nobody takes their place."""
        self.workers.end(queue)
        self.workers.end(queue)

    def outcome(self, model: str) -> Any:
        with self.sessions() as session:
            version = models.version(session, model)
            loaded, _ = load_model(files().path(models.folder(session, version.id)) / "model", verify=True)
            steps = job_logs.steps(session, version.job, limit=10_000).steps
        return (
            {name: array.tobytes() for name, array in loaded.arrays().items()},
            (version.primal, version.dual, version.epochs, version.metrics),
            [(step.number, step.epoch, step.primal, step.dual) for step in steps],
        )

    def ends_the_same(self, id: str, model: str) -> Job:
        """The job succeeds as if nothing had happened, makes no step of the checkpoint twice, and leaves nothing."""
        job = self.ends(id)
        assert self.outcome(model) == self.whole()
        return job

    def ends(self, id: str) -> Job:
        """The job succeeds, makes no step of the checkpoint twice, and leaves nothing."""
        job = self.until(id, lambda job: job.state in {"succeeded", "failed", "cancelled"})
        assert job.state == "succeeded", job.error
        saved = self._saved[id]
        assert saved
        assert self._attempts(id)[: len(saved)] == saved
        self.is_clean()
        return job

    def _attempts(self, id: str) -> list[int]:
        """Of each step the attempt that made it."""
        with self.sessions() as session:
            return [step.attempt for step in job_logs.steps(session, id, limit=10_000).steps]

    def whole(self) -> Any:
        if self._whole is None:
            self.until(self.submit("whole"), lambda job: job.state == "succeeded")
            self._whole = self.outcome("whole")
        return self._whole

    def is_clean(self) -> None:
        """Soon no slot is held, and there is no key, file or process but those that stay."""
        deadline = time.monotonic() + SECONDS
        while left := [*self._keys(), *self._slots(), *self._files(), *self.workers.surplus().items()]:
            assert time.monotonic() < deadline, left
            time.sleep(0.05)

    def _keys(self) -> list[Any]:
        """All that Redis holds but the names of the queues."""
        with self.redis.client() as client:
            return [key for key in client.scan_iter() if not key.startswith(b"_kombu.binding")]

    def _slots(self) -> list[Any]:
        with self.sessions() as session:
            return list(session.scalars(select(tables.Slot.job_id).where(tables.Slot.job_id.is_not(None))))

    def _files(self) -> list[Path]:
        """All that is neither a dataset's nor a version's."""
        with self.sessions() as session:
            versions = set(session.scalars(select(tables.ModelVersion.path)))
            kept = versions | {f"datasets/{id}" for id in session.scalars(select(tables.Dataset.id))}
        root = files().root
        there = [path for folder in ("datasets", "incoming", "jobs", "models") for path in (root / folder).glob("*")]
        strays = [path for path in there if str(path.relative_to(root)) not in kept]
        for path in versions:
            parts = {child.name for child in (root / path).glob("*")}
            strays += [root / path / name for name in parts - {"features", "model", "split", "measured"}]
        # walked so, as what is removed meanwhile is no fault
        every = [Path(folder, name) for folder, folders, names in os.walk(root) for name in (*folders, *names)]
        return strays + [path for path in every if path.name.startswith(".") or path.suffix == ".part"]


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
            for queue in POOLS:
                workers.start(queue=queue)
            _upload_noise()
            deadline = time.monotonic() + SECONDS
            while _n_pools() < len(POOLS):
                assert time.monotonic() < deadline, "the pools do not report"
                time.sleep(0.1)
            yield Service(redis, workers)
        finally:
            workers.end()
            print(workers.log())
            redis.stop()
            db.dispose()
    settings.cache_clear()


@pytest.mark.slow
@pytest.mark.parametrize("rank", [0, 1])
def test_a_job_that_loses_a_shard_goes_on_from_the_last_checkpoint(service: Service, rank: int) -> None:
    id = service.submit(f"lost{rank}")
    attempt = service.until_saved(id).attempt
    os.kill(service.shard(id, rank), signal.SIGKILL)
    assert service.ends_the_same(id, f"lost{rank}").attempt > attempt


@pytest.mark.slow
def test_a_job_that_loses_its_coordinator_goes_on(service: Service) -> None:
    id = service.submit("uncoordinated")
    os.kill(_pid(service.until_saved(id).worker), signal.SIGKILL)
    assert service.ends_the_same(id, "uncoordinated").attempt == 2


@pytest.mark.slow
def test_a_job_that_loses_all_its_processes_at_once_goes_on(service: Service) -> None:
    id = service.submit("bereft")
    gang = [_pid(service.until_saved(id).worker), *(service.shard(id, rank) for rank in (0, 1))]
    for process in gang:
        os.kill(process, signal.SIGKILL)
    service.ends_the_same(id, "bereft")
    assert service.losses(id) == 1


@pytest.mark.slow
@pytest.mark.parametrize("who", ["shard", "coordinator"])
def test_a_job_that_loses_a_process_while_its_shards_save_the_model_goes_on(service: Service, who: str) -> None:
    id = service.submit(f"unsaved-{who}")
    # it takes a reader to open it for writing
    pipe = files().path(model_part(id, 1)) / f"{block_name(1)}.npy"
    pipe.parent.mkdir(parents=True)
    os.mkfifo(pipe)
    service.until_saved(id)
    job = service.until(id, lambda job: job.progress is not None and job.progress.phase == "saving")
    os.kill(service.shard(id, 1) if who == "shard" else _pid(job.worker), signal.SIGKILL)
    service.until(id, lambda job: job.attempt == 2)
    if who == "coordinator":
        assert pipe.read_bytes().startswith(b"\x93NUMPY")
    service.until(id, lambda job: job.state == "succeeded")
    with service.sessions() as session:
        tidy(session, files())
    assert service.ends_the_same(id, f"unsaved-{who}").attempt == 2


@pytest.mark.slow
@pytest.mark.parametrize("how", ["flushed", "restarted", "away"])
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
        time.sleep(AWAY_SECONDS if how == "away" else 0.0)
        service.redis.start()
    service.ends_the_same(id, how)
    assert service.losses(id) == 0


@pytest.mark.slow
def test_a_redis_that_stands_still_for_longer_than_a_lease_ends_no_attempt(service: Service) -> None:
    id = service.submit("still")
    service.until_saved(id)
    with service.redis.frozen():
        time.sleep(1.5 * QUICK["lease_seconds"])
    assert service.ends_the_same(id, "still").attempt == 1


@pytest.mark.slow
@pytest.mark.parametrize("who", ["shard", "coordinator"])
def test_a_process_that_slept_through_its_lease_changes_nothing(service: Service, who: str) -> None:
    id = service.submit(f"asleep-{who}")
    job = service.until_saved(id)
    sleeper = service.shard(id, 1) if who == "shard" else _pid(job.worker)
    stop_between_transactions(sleeper, service.sessions)
    try:
        # one wakes while others are at work, the other when they are done
        service.until(id, lambda job: job.attempt == 2 if who == "shard" else job.state == "succeeded")
    finally:
        os.kill(sleeper, signal.SIGCONT)
    service.ends_the_same(id, f"asleep-{who}")
    with service.sessions() as session:
        assert [version.version for version in models.versions(session, f"asleep-{who}")] == [1]


@pytest.mark.slow
def test_a_job_whose_pool_is_gone_for_good_goes_on_in_those_that_are_left(service: Service) -> None:
    problem = {"C": 1.0, "tol": TOL, "max_epochs": 10**6}
    alone, id = service.submit("alone", shards=None, **problem), service.submit("fewer", shards=3, **problem)
    service.until_saved(id)
    service.end_pool("shard-2")
    service.ends(id)
    service.until(alone, lambda job: job.state == "succeeded")
    with service.sessions() as session:
        fewer, whole = (models.version(session, name) for name in ("fewer", "alone"))
        _, details = load_model(files().path(models.folder(session, fewer.id)) / "model", verify=True)
    assert [shard["classes"] for shard in details["shards"]] == [10, 10]
    assert fewer.gap <= TOL
    assert fewer.primal == pytest.approx(whole.primal, rel=TOL)


@pytest.mark.slow
def test_a_gang_whose_clocks_are_hours_apart_makes_the_same_model(service: Service) -> None:
    away = {"general": HOUR, "shard-0": -HOUR, "shard-1": 2 * HOUR, "shard-2": 0.0}
    _restart(service, {queue: CLOCK.format(off) for queue, off in away.items()})
    try:
        # by a worker's own clock a lease would be over at once for others, and the job would fail in the end
        id = service.submit("clocks")
        job = service.until(id, lambda job: job.state in {"succeeded", "failed", "cancelled"})
        assert job.state == "succeeded", job.error
        assert service.outcome("clocks") == service.whole()
        service.is_clean()
        # of one that dies the others make another attempt
        id = service.submit("clocks-lost")
        service.until_saved(id)
        os.kill(service.shard(id, 0), signal.SIGKILL)
        service.ends_the_same(id, "clocks-lost")
    finally:
        _restart(service, dict.fromkeys(away, ""))


@pytest.mark.slow
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


def _restart(service: Service, first: dict[str, str]) -> None:
    """Have other workers, which run a piece of Python first, in the place of those of each queue."""
    missing = set()
    for queue, python in first.items():
        service.workers.end(queue)
        process = service.workers.start(2 if queue == "general" else 1, queue, python)
        missing.add(f"{socket.gethostname()}:{process.pid}")
    deadline = time.monotonic() + SECONDS
    while missing:
        assert time.monotonic() < deadline, f"{missing} do not report"
        time.sleep(0.1)
        with db.sessions()() as session:
            missing -= set(session.scalars(select(tables.Worker.id)))


def _upload_noise() -> None:
    upload = files().upload()
    upload.write(noise(400, 60).encode())
    with db.sessions()() as session:
        shown = datasets.register(session, NewDataset(name="noise", format="svmlight"), upload)
    assert shown.job is not None
    run(shown.job)


def _n_pools() -> int:
    with db.sessions()() as session:
        return len(slots.pools(session))


def _pid(worker: str | None) -> int:
    assert worker is not None
    return int(worker.rsplit(":", 1)[1])
