"""Real processes: workers that a test may kill, on a real queue."""

import contextlib
import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from noise import noise
from sqlalchemy.orm import Session, sessionmaker
from warm_parent import Forked, fork_worker

from app.jobs import service as jobs
from app.jobs.schemas import Job, TrainRequest

SECONDS = 600.0


class Workers:
    """Starts workers, and ends what is left of them after the test."""

    def __init__(self, log: str) -> None:
        self._log = log
        self._started: dict[Forked, tuple[str, int]] = {}

    def start(self, concurrency: int = 1, queue: str = "general", first: str = "") -> Forked:
        """A worker, leader of a process group of its own, which runs a piece of Python ``first``."""
        process = fork_worker(first, ["--queue", queue, "--concurrency", str(concurrency)], self._log)
        # the general pool has a process more, for imports
        self._started[process] = queue, concurrency + (queue == "general")
        return process

    def end(self, queue: str | None = None) -> None:
        """Kill every group that was started, or those of one queue."""
        for process in [process for process, (of, _) in self._started.items() if queue in (None, of)]:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            del self._started[process]

    def surplus(self) -> dict[int, int]:
        """By the leaders of groups that have more or fewer processes than a worker and its pool: how many more."""
        found = {process.pid: -1 - n_processes for process, (_, n_processes) in self._started.items()}
        for stat in Path("/proc").glob("[0-9]*/stat"):
            with contextlib.suppress(OSError):
                state, _, group = stat.read_text().rsplit(")", 1)[1].split()[:3]
                if state != "Z" and int(group) in found:
                    found[int(group)] += 1
        return {leader: n for leader, n in found.items() if n}

    def log(self) -> str:
        """What the workers wrote so far."""
        return Path(self._log).read_text() if Path(self._log).exists() else ""


@pytest.fixture
def quick(configure: Callable[..., None]) -> None:
    """Leases and sweeps that a test can wait for."""
    configure(lease_seconds=2, heartbeat_seconds=0.3, sweep_seconds=0.3, notify_again_seconds=1, checkpoint_seconds=0.2)


@pytest.fixture(scope="session")
def new_workers() -> Callable[[str], Workers]:
    """``new_workers(log)`` makes a group of workers, none of which is started yet."""
    return Workers


@pytest.fixture
def workers(quick: None, redis_url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workers]:
    """Real workers on a private Redis."""
    workers = Workers(str(tmp_path_factory.mktemp("log") / "workers.log"))
    yield workers
    workers.end()
    print(workers.log())


@pytest.fixture
def long_job(
    database: sessionmaker[Session], dataset: Callable[..., str], hierarchy: Callable[..., str]
) -> Callable[..., str]:
    """``long_job()`` submits a training job of some seconds, whose steps and model are always the same."""
    dataset(noise(400, 60), name="noise")
    hierarchy([("root" if i < 4 else f"c{i // 4 - 1}", f"c{i}") for i in range(20)])

    def submit(
        model: str = "m", max_epochs: int = 700, path: list[float] | None = None, solver: str = "weston_watkins"
    ) -> str:
        params = {"tol": 1e-12, "max_epochs": max_epochs} | ({} if path else {"C": 100.0})
        request = TrainRequest(dataset="noise", model=model, solver=solver, params=params, path=path)
        if solver != "weston_watkins":
            request.hierarchy = "tree"
        with database() as session:
            return jobs.submit(session, request).id

    return submit


@pytest.fixture
def until(database: sessionmaker[Session]) -> Callable[[str, Callable[[Job], bool]], Job]:
    """``until(job_id, condition)`` polls a job until a condition holds."""

    def poll(job_id: str, condition: Callable[[Job], bool]) -> Job:
        deadline = time.monotonic() + SECONDS
        while True:
            with database() as session:
                job = jobs.get(session, job_id)
            if condition(job):
                return job
            assert time.monotonic() < deadline, f"still {job.state} after {SECONDS} s, attempt {job.attempt}"
            time.sleep(0.05)

    return poll
