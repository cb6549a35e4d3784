"""Time limits of jobs, and the log that a job leaves."""

from collections.abc import Callable, Iterator

import pytest
import structlog
from sqlalchemy import delete
from sqlalchemy.orm import Session, sessionmaker

from app import logs
from app.jobs import logs as job_logs
from app.jobs import service as jobs
from app.jobs.schemas import Job, TrainRequest
from app.models import service as models
from app.store import tables
from app.store.db import writing
from workers.running.job_context import JobContext, TimeUp
from workers.tasks import run

CHECK = JobContext.check


@pytest.fixture
def _logged() -> Iterator[None]:
    """Events are kept as a worker keeps them."""
    logs.configure("info")
    yield
    structlog.reset_defaults()


@pytest.fixture
def out_of_time(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """``out_of_time(phase)``: the limit is over at the first look in that phase."""

    def at(phase: str) -> None:
        def check(self: JobContext, *, drain: bool = True) -> None:
            CHECK(self, drain=drain)
            if self._ends_at != float("inf") and (self._progress or {}).get("phase") == phase:
                raise TimeUp

        monkeypatch.setattr(JobContext, "check", check)

    return at


def _trained(database: sessionmaker[Session], **changes: object) -> Job:
    request = {"dataset": "digits", "model": "m", "solver": "weston_watkins", "time_limit_seconds": 1e6, **changes}
    with database() as session:
        job = jobs.submit(session, TrainRequest.model_validate({"params": {"tol": 1e-9, "C": 100.0}, **request}))
        run(job.id)
        return jobs.get(session, job.id)


def test_a_training_that_runs_out_of_time_publishes_what_it_has(
    database: sessionmaker[Session], dataset: Callable[..., str], out_of_time: Callable[[str], None]
) -> None:
    dataset()
    out_of_time("training")
    job = _trained(database)
    assert (job.state, job.error) == ("succeeded", None)
    assert job.result is not None
    assert (job.result.stopped, job.result.version) == ("time_limit", 1)
    with database() as session:
        version = models.version(session, "m")
    assert not version.converged
    assert version.epochs == 1


def test_a_path_ends_with_the_point_at_which_its_time_is_over(
    database: sessionmaker[Session], dataset: Callable[..., str], out_of_time: Callable[[str], None]
) -> None:
    dataset()
    out_of_time("training")
    job = _trained(database, path=[10.0, 100.0], params={"tol": 1e-9})
    assert job.result is not None
    assert (job.state, job.result.versions, job.result.stopped) == ("succeeded", [1], "time_limit")


@pytest.mark.parametrize(("solver", "phase"), [("auto", "training"), ("weston_watkins", "features")])
def test_a_job_that_has_nothing_to_show_by_its_limit_fails(
    solver: str,
    phase: str,
    database: sessionmaker[Session],
    dataset: Callable[..., str],
    out_of_time: Callable[[str], None],
) -> None:
    dataset()
    out_of_time(phase)
    job = _trained(database, solver=solver, params={})
    assert job.error is not None
    assert (job.state, job.error.code, job.result) == ("failed", "time_limit", None)
    with database() as session:
        again = jobs.retry(session, job.id)
    assert (again.state, again.started_at) == ("queued", None)
    assert again.queued_again == "asked for after it was failed: time_limit"


def test_a_limit_that_is_over_is_seen_by_the_worker(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    job = _trained(database, time_limit_seconds=1e-6)
    assert job.error is not None
    assert job.error.code == "time_limit"


@pytest.mark.usefixtures("_logged")
def test_a_job_leaves_a_log(database: sessionmaker[Session], dataset: Callable[..., str]) -> None:
    dataset()
    job = _trained(database, params={})
    with database() as session:
        lines = job_logs.read(session, job.id).lines
        assert job_logs.read(session, job.id, after=lines[-2].id).lines == lines[-1:]
        assert job_logs.read(session, job.id, limit=1).lines == lines[:1]
    assert lines[0].event == "job_started"
    assert [line.fields["phase"] for line in lines if line.event == "phase"][-1] == "saving"
    assert (lines[-1].event, lines[-1].fields["outcome"], lines[-1].attempt) == ("job_ended", "succeeded", 1)


def test_a_log_keeps_the_newest_lines(
    session: Session, dataset: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset()
    monkeypatch.setattr(job_logs, "KEPT", 3)
    (job,) = jobs.page(session).items
    with writing(session):
        session.execute(delete(tables.JobLogLine))
    for number in range(5):
        with writing(session):
            job_logs.note(session, job.id, 1, "info", f"event {number}", long="x" * 1000)
    lines = job_logs.read(session, job.id).lines
    assert [line.event for line in lines] == ["event 2", "event 3", "event 4"]
    assert len(lines[0].fields["long"]) == 500
