"""Training jobs along a path of Cs: one version for each, none lost and none twice, wherever the job is interrupted."""

import contextlib
import os
from collections.abc import Callable
from typing import Any

import pytest
from interrupting import Crash, expire
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from app.errors import InvalidInput
from app.jobs import logs as job_logs
from app.jobs import service as jobs
from app.jobs.schemas import TrainRequest
from app.models import service as models
from app.models import versions
from app.operation import sweep as sweeping
from app.store import tables
from app.store.files import files
from solvers.core.machine import SingleLabelParams
from solvers.core.stored_models import load_model
from solvers.registry import SOLVERS
from workers.job_kinds import training
from workers.running import lanes
from workers.running.job_context import JobContext
from workers.tasks import run

PATH = [1.0, 0.01, 0.1]
on_sqlite = pytest.mark.parametrize("database", ["sqlite"], indirect=True)


def _submit(database: sessionmaker[Session], model: str, **changes: Any) -> str:
    request = {
        "dataset": "digits",
        "model": model,
        "solver": "weston_watkins",
        "params": {"tol": 1e-3, "max_epochs": 60},
        "path": PATH,
    } | changes
    with database() as session:
        return jobs.submit(session, TrainRequest(**request)).id


def _outcome(database: sessionmaker[Session], model: str) -> Any:
    """All that a path has made, but for ids and times."""
    with database() as session:
        made = models.versions(session, model)[::-1]
        arrays = [
            load_model(files().path(models.folder(session, version.id)) / "model", verify=True)[0].arrays()
            for version in made
        ]
        curve = job_logs.steps(session, made[0].job, limit=10000).steps
        result = jobs.get(session, made[0].job).result
    assert result is not None
    return (
        [{name: array.tobytes() for name, array in each.items()} for each in arrays],
        [(v.version, v.point, v.params, v.primal, v.dual, v.epochs, v.converged, v.metrics, v.report) for v in made],
        [(step.number, step.point, step.epoch, step.primal, step.dual) for step in curve],
        (result.version, result.versions),
    )


def test_a_path_makes_a_version_for_each_c_with_its_lineage(
    database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    job_id = _submit(database, "m")
    run(job_id)
    with database() as session:
        job = jobs.get(session, job_id)
        made = models.versions(session, "m")[::-1]
        steps = job_logs.steps(session, job_id).steps
    assert job.state == "succeeded"
    assert job.result is not None
    assert (job.result.version, job.result.versions) == (3, [1, 2, 3])
    assert [(version.version, version.point, version.params["C"]) for version in made] == [
        (1, 0, 0.01),
        (2, 1, 0.1),
        (3, 2, 1.0),
    ]
    assert len({version.path for version in _rows(database)}) == 3
    for version in made:
        assert version.job == job_id
        assert version.request["path"] == PATH
        assert version.gap is not None
        assert version.gap <= 1e-3
        mine = [step for step in steps if step.point == version.point]
        assert (mine[-1].primal, mine[-1].epoch) == (version.primal, version.epochs)
        with database() as session:
            _, details = load_model(files().path(models.folder(session, version.id)) / "model", verify=True)
        assert (details["params"]["C"], details["point"]) == (version.params["C"], version.point)
        assert details["primal"] == version.primal
    assert [step.number for step in steps] == list(range(len(steps)))
    assert [step.point for step in steps] == sorted(step.point for step in steps)
    assert sum(version.seconds for version in made) == pytest.approx(steps[-1].seconds, abs=0.05)
    assert not files().path(f"jobs/{job_id}").exists()


def _rows(database: sessionmaker[Session]) -> list[tables.ModelVersion]:
    with database() as session:
        return list(session.scalars(select(tables.ModelVersion)))


@on_sqlite
@pytest.mark.parametrize("solver", ["weston_watkins", "one_vs_rest", "lee_lin_wahba", "spoc"])
def test_each_version_is_that_of_a_job_for_its_c_alone_within_the_gap(
    solver: str, database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    run(_submit(database, "m", solver=solver, params={"tol": 1e-3}))
    for C in PATH:
        run(_submit(database, f"alone{C}", solver=solver, params={"tol": 1e-3, "C": C}, path=None))
    with database() as session:
        for version in models.versions(session, "m"):
            alone = models.version(session, f"alone{version.params['C']}")
            assert version.primal == pytest.approx(alone.primal, rel=2e-3)
            assert version.params == alone.params


@on_sqlite
@pytest.mark.parametrize(
    ("committed", "checkpoint_seconds"),
    [
        pytest.param(False, 0, marks=pytest.mark.slow),
        pytest.param(True, 0, marks=pytest.mark.slow),
        pytest.param(False, 1000, marks=pytest.mark.slow),
        (True, 1000),
    ],
)
def test_a_crash_at_any_write_neither_loses_nor_doubles_a_version(
    committed: bool,
    checkpoint_seconds: int,
    database: sessionmaker[Session],
    dataset: Callable[..., str],
    configure: Callable[..., None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    configure(checkpoint_seconds=checkpoint_seconds)
    monkeypatch.setattr("workers.phases.driving._CHECKPOINT_SHARE", 1e9)
    monkeypatch.setattr(os, "fsync", lambda _: None)  # no plug is pulled here
    dataset()
    quick = {"tol": 0.2}
    run(_submit(database, "whole", params=quick))
    whole = _outcome(database, "whole")
    assert len(whole[2]) > 3
    write, crashed = JobContext.write, 0
    while True:
        left = crashed

        def crashing(context: JobContext, operation: Any) -> Any:
            nonlocal left
            left -= 1
            if left >= 0:
                return write(context, operation)
            if committed:
                write(context, operation)
            raise Crash

        job_id = _submit(database, f"m{crashed}", params=quick)
        with monkeypatch.context() as patch:
            patch.setattr(JobContext, "write", crashing)
            with contextlib.suppress(Crash):
                run(job_id)
        with database() as session:
            if jobs.get(session, job_id).state == "succeeded" and not (committed and left < 0):
                break
            session.rollback()
            expire(session, job_id)
        run(job_id)
        assert _outcome(database, f"m{crashed}") == whole
        crashed += 1
    assert crashed > 10
    assert _outcome(database, f"m{crashed}") == whole


@on_sqlite
def test_a_path_given_back_at_any_moment_ends_bit_for_bit_the_same(
    database: sessionmaker[Session],
    dataset: Callable[..., str],
    interrupt: Callable[[int], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "fsync", lambda _: None)  # no plug is pulled here
    dataset()
    quick = {"tol": 0.05}
    run(_submit(database, "whole", params=quick))
    whole = _outcome(database, "whole")
    points = set()
    for asked in range(2, 200):
        with monkeypatch.context():
            job_id = _submit(database, f"m{asked}", params=quick)
            interrupt(asked)
            run(job_id)
        with database() as session:
            job = jobs.get(session, job_id)
            reached = session.get(tables.Checkpoint, job_id)
        if job.state == "succeeded":
            break
        assert job.state == "queued"
        points.add((len(job.result.versions) if job.result else 0, reached is not None))
        monkeypatch.setattr(lanes, "drain_requested", lambda: False)
        run(job_id)
        assert _outcome(database, f"m{asked}") == whole
    assert {published for published, _ in points} == {0, 1, 2}
    assert (1, True) in points
    assert (2, True) in points


@on_sqlite
def test_a_checkpoint_between_two_points_begins_the_next_one(
    database: sessionmaker[Session], dataset: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset()
    run(_submit(database, "whole"))
    job_id = _submit(database, "m")
    publish = JobContext.publish

    def publish_and_end(context: JobContext, finish: Any) -> None:
        publish(context, finish)
        lanes.request_drain()

    with monkeypatch.context() as patch:
        patch.setattr(JobContext, "publish", publish_and_end)
        run(job_id)
    lanes.withdraw_drain()
    with database() as session:
        assert jobs.get(session, job_id).state == "queued"
    (folder,) = files().path(f"jobs/{job_id}").iterdir()
    _, manifest = files().load_arrays(f"jobs/{job_id}/{folder.name}")
    assert manifest["reached"]["point"] == 1
    trained: list[int] = []
    drive = training.drive

    def noting(*arguments: Any) -> Any:
        trained.append(arguments[3])
        return drive(*arguments)

    monkeypatch.setattr(training, "drive", noting)
    run(job_id)
    assert trained == [1, 2]
    assert _outcome(database, "m") == _outcome(database, "whole")


@on_sqlite
def test_a_cancelled_path_keeps_what_it_has_published_and_a_retry_adds_the_rest(
    database: sessionmaker[Session], dataset: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset()
    run(_submit(database, "whole"))
    job_id = _submit(database, "m")
    publish = JobContext.publish

    def publish_and_cancel(context: JobContext, finish: Any) -> None:
        publish(context, finish)
        with database() as session:
            jobs.cancel(session, job_id)
        context.flush()

    with monkeypatch.context() as patch:
        patch.setattr(JobContext, "publish", publish_and_cancel)
        run(job_id)
    with database() as session:
        job = jobs.get(session, job_id)
        assert job.state == "cancelled"
        assert job.result is not None
        assert job.result.versions == [1]
        assert models.get(session, "m").versions == [1]
        jobs.retry(session, job_id)
    run(job_id)
    assert _outcome(database, "m") == _outcome(database, "whole")


@on_sqlite
def test_tidying_keeps_published_points_and_removes_those_of_lost_attempts(
    database: sessionmaker[Session], dataset: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset()
    job_id = _submit(database, "m")
    add = versions.add

    def crash(session: Session, model: str, facts: versions.Facts, metrics: Any) -> int:
        number = add(session, model, facts, metrics)
        if facts.point == 1:
            raise Crash
        return number

    with monkeypatch.context() as patch:
        patch.setattr(versions, "add", crash)
        with pytest.raises(Crash):
            run(job_id)
    with database() as session:
        assert models.get(session, "m").versions == [1]
        assert sweeping.tidy(session, files()) == [], "the attempt may still be at work"
        expire(session, job_id)
        assert sweeping.tidy(session, files()) == [f"models/{job_id}.1.1"]
    run(job_id)
    present = sorted(path.name for path in files().path("models").iterdir())
    assert present == [f"{job_id}.1.0", f"{job_id}.2.1", f"{job_id}.2.2"]
    with database() as session:
        assert sweeping.tidy(session, files()) == []


@on_sqlite
@pytest.mark.parametrize(
    ("changes", "pointer"),
    [
        ({"params": {"C": 1.0}}, "/params/C"),
        *[
            ({"solver": name}, "/path")
            for name, kind in SOLVERS.items()
            if not issubclass(kind.Params, SingleLabelParams)
        ][:1],
    ],
)
def test_a_path_that_makes_no_sense_is_refused(
    changes: dict[str, Any], pointer: str, database: sessionmaker[Session], dataset: Callable[..., str]
) -> None:
    dataset()
    with pytest.raises(InvalidInput) as refused:
        _submit(database, "m", **{"params": {}, **changes})
    assert [item.pointer for item in refused.value.errors] == [pointer]


@pytest.mark.parametrize("path", [[], [0.0], [-1.0], [float("inf")], [1.0, 2.0, 1.0], ["x"]])
def test_a_path_holds_distinct_positive_numbers(path: list[Any]) -> None:
    with pytest.raises(ValueError, match="path"):
        TrainRequest(solver="weston_watkins", dataset="d", model="m", path=path)
